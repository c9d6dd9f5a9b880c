"""The objects as Kubernetes resources for NACK, NATS's own controller.  Pure.

https://github.com/nats-io/nack, `jetstream.nats.io/v1beta2`; field names checked on 2026-11-30.
"""

from collections.abc import Mapping
from decimal import Decimal

import yaml

from turnline.transport.nats.topology import SECOND, ConsumerSpec, Spec, StreamSpec, Topology

_API_VERSION = "jetstream.nats.io/v1beta2"

_STREAM_FIELDS = {
    "description": "description",
    "subjects": "subjects",
    "storage": "storage",
    "num_replicas": "replicas",
    "retention": "retention",
    "discard": "discard",
    "discard_new_per_subject": "discardPerSubject",
    "max_msgs": "maxMsgs",
    "max_msgs_per_subject": "maxMsgsPerSubject",
    "max_age": "maxAge",
    "duplicate_window": "duplicateWindow",
    "allow_direct": "allowDirect",
}
_CONSUMER_FIELDS = {
    "durable_name": "durableName",
    "filter_subject": "filterSubject",
    "deliver_policy": "deliverPolicy",
    "ack_policy": "ackPolicy",
    "ack_wait": "ackWait",
    "max_deliver": "maxDeliver",
    "max_ack_pending": "maxAckPending",
    "max_waiting": "maxWaiting",
}
_DURATIONS = {"max_age", "duplicate_window", "ack_wait"}


def manifests_of(topology: Topology) -> str:
    """Write all objects as one YAML text of several documents."""
    documents = [_stream(spec) for spec in topology.streams]
    documents += [_consumer(spec) for spec in topology.consumers]
    return yaml.safe_dump_all(documents, sort_keys=False)


def _stream(spec: StreamSpec) -> dict[str, object]:
    return _resource("Stream", spec.name, {"name": spec.name} | _fields(spec, _STREAM_FIELDS))


def _consumer(spec: ConsumerSpec) -> dict[str, object]:
    fields = {"streamName": spec.stream} | _fields(spec, _CONSUMER_FIELDS)
    return _resource("Consumer", spec.name, fields)


def _fields(spec: Spec, names: Mapping[str, str]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for field, value in spec.config.items():
        if field not in _DURATIONS:
            fields[names[field]] = list(value) if isinstance(value, tuple) else value
        elif value:
            # Left out where it is none: an empty text is no duration to the controller.
            fields[names[field]] = _duration(int(str(value)))
    return fields


def _duration(nanoseconds: int) -> str:
    """Write it as Go reads it: decimal seconds, without an exponent."""
    return f"{Decimal(nanoseconds) / SECOND:f}s"


def _resource(kind: str, name: str, spec: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": _API_VERSION,
        "kind": kind,
        "metadata": {"name": name.lower().replace("_", "-")},
        "spec": spec,
    }
