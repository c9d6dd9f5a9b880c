"""The topics as Kubernetes resources for Strimzi, a Kafka operator.  Pure.

https://strimzi.io, `kafka.strimzi.io/v1`; field names checked on 2026-11-30.
"""

from collections.abc import Sequence

import yaml

from turnline.transport.kafka.topology import TopicSpec

_API_VERSION = "kafka.strimzi.io/v1"
# Which cluster of the operator's they belong to; the operator reads it off this label.
_CLUSTER_LABEL = "strimzi.io/cluster"
_CLUSTER = "kafka"


def manifests_of(topology: Sequence[TopicSpec]) -> str:
    """Write all topics as one YAML text of several documents, for a cluster named `kafka`."""
    return yaml.safe_dump_all([_topic(spec) for spec in topology], sort_keys=False)


def _topic(spec: TopicSpec) -> dict[str, object]:
    return {
        "apiVersion": _API_VERSION,
        "kind": "KafkaTopic",
        "metadata": {
            "name": spec.name.lower().replace("_", "-"),
            "labels": {_CLUSTER_LABEL: _CLUSTER},
        },
        "spec": {
            "topicName": spec.name,
            "partitions": spec.partitions,
            "replicas": spec.replicas,
            "config": dict(spec.config),
        },
    }
