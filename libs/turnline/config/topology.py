"""Whether settings fit the process they are for: pure rules over several settings at once.

What a single setting may be is checked when it is loaded.  Here stands what depends on the layout:
a queue in memory has no second process, and processes that share turns must share stores.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from turnline.config.settings import Settings

ORCHESTRATOR_GRACE_SECONDS = 30


class Topology(StrEnum):
    """Which part of the pipeline a process is."""

    SINGLE_PROCESS = "single-process"
    IO_HANDLER = "io-handler"
    REQUEST_HANDLER = "request-handler"
    RESPONDER = "responder"
    RUNNER = "runner"
    GATEWAY = "gateway"
    PUSH_ENDPOINT = "push-endpoint"
    SCALER = "scaler"


class SettingWarning(NamedTuple):
    """A setting that works but is likely not meant.

    Attributes:
        setting: its dotted key.
        reason: what follows from it, and the way out.
    """

    setting: str
    reason: str


_SENDS_TURNS = frozenset({Topology.IO_HANDLER, Topology.REQUEST_HANDLER, Topology.GATEWAY})
_TAKES_ANSWERS = frozenset({Topology.IO_HANDLER, Topology.RESPONDER})
_BOTH_QUEUES = frozenset({Topology.RUNNER, Topology.SCALER, Topology.SINGLE_PROCESS})
_REST = frozenset({Topology.IO_HANDLER, Topology.REQUEST_HANDLER, Topology.RESPONDER})
_WEBSOCKET = frozenset({Topology.GATEWAY, *_TAKES_ANSWERS})
_SHARED_STORES = "valkey, redis or dynamodb"


def topology_faults(settings: Settings, *, topology: Topology) -> tuple[str, ...]:
    """List what keeps a process of this kind from working; empty when nothing does.

    Each line names the setting, what is wrong and the fix.
    """
    return tuple(_faults(settings, topology))


def topology_warnings(settings: Settings, *, topology: Topology) -> tuple[SettingWarning, ...]:
    """List what works but is likely not meant."""
    return tuple(_warnings(settings, topology))


def _faults(settings: Settings, topology: Topology) -> Iterator[str]:
    if topology is Topology.PUSH_ENDPOINT:
        yield from _token_faults(settings)
        yield from _table_faults(settings)
        return
    transport = settings.execution.queues.type
    if transport == "in_memory":
        if topology is not Topology.SINGLE_PROCESS:
            yield (
                "execution.queues.type: in_memory lives inside one process, which a separate "
                f"{topology.value} cannot reach; choose nats, kafka or sqs, or run everything in "
                "one process with IOHandler.run()"
            )
        return
    if transport == "sqs":
        yield from _sqs_faults(settings, topology)
    if topology is Topology.SCALER and settings.api.grpc_port is None:
        yield "api.grpc_port: is not set, but KEDA asks there; set a port such as 9090"
    if topology in (Topology.SINGLE_PROCESS, Topology.SCALER):
        return
    yield from _reply_faults(settings, topology)
    if topology in _WEBSOCKET and (topology is Topology.GATEWAY or _pushes_only(settings)):
        yield from _push_faults(settings)


def _sqs_faults(settings: Settings, topology: Topology) -> Iterator[str]:
    both = topology in _BOTH_QUEUES
    queues = settings.execution.queues
    needed = {
        "input": (queues.input.url, both or topology in _SENDS_TURNS),
        "output": (queues.output.url, both or topology in _TAKES_ANSWERS),
    }
    for name, (url, needs) in needed.items():
        key = f"execution.queues.{name}.url"
        if needs and url is None:
            yield f"{key}: is not set, and sqs has no other way to find its queue; set the URL"
        elif url is not None and not url.endswith(".fifo"):
            yield f"{key}: names no FIFO queue, so turns would lose their order; use a .fifo queue"


def _reply_faults(settings: Settings, topology: Topology) -> Iterator[str]:
    execution = settings.execution
    kept = execution.mode in ("rest_sync", "rest_async") and topology in _REST
    if kept and execution.response_store.type == "in_memory":
        yield (
            f"execution.response_store.type: is in_memory, but on {execution.queues.type} answers "
            f"and their callers meet across processes; use {_SHARED_STORES}"
        )


def _pushes_only(settings: Settings) -> bool:
    """Whether answers can reach callers over sockets only."""
    execution = settings.execution
    streams_kept = execution.mode == "stream" and execution.response_store.type != "in_memory"
    return execution.mode in ("async", "stream") and not streams_kept


def _push_faults(settings: Settings) -> Iterator[str]:
    yield from _token_faults(settings)
    if settings.session.type == "in_memory":
        yield (
            "session.type: is in_memory, but pods look up each other's client sockets in the "
            f"session store; use {_SHARED_STORES}"
        )
    yield from _table_faults(settings)


def _token_faults(settings: Settings) -> Iterator[str]:
    if settings.websocket_api.push_auth_token is None:
        yield (
            "websocket_api.push_auth_token: is not set, but pods push answers to each other; set "
            "one secret for all of them, such as `openssl rand -hex 32` gives"
        )


def _table_faults(settings: Settings) -> Iterator[str]:
    session = settings.session
    table = session.connection_store.table_name or settings.websocket_api.connection_table
    if session.type == "dynamodb" and table is None:
        yield (
            "session.connection_store.table_name: is not set, but dynamodb sessions keep client "
            "sockets in a table of their own; name the existing connections table"
        )


def _warnings(settings: Settings, topology: Topology) -> Iterator[SettingWarning]:
    if topology is Topology.PUSH_ENDPOINT:
        if settings.session.type == "in_memory":
            yield SettingWarning(
                "session.type",
                "in_memory keeps client sockets in each process, so this one finds none of the "
                f"gateways'; use {_SHARED_STORES}",
            )
        return
    if topology is Topology.SCALER:
        return
    yield from _wait_warnings(settings)
    yield from _size_warnings(settings)
    if settings.execution.queues.type == "in_memory":
        return
    if topology is Topology.SINGLE_PROCESS and "in_memory" in _store_types(settings):
        yield SettingWarning(
            "execution.queues.type",
            f"{settings.execution.queues.type} with an in_memory store is right only while exactly "
            f"one process runs; use {_SHARED_STORES} before starting a second one",
        )
    elif topology is Topology.RUNNER and settings.session.type == "in_memory":
        yield SettingWarning(
            "session.type",
            "in_memory keeps histories in each runner: a session that moves to another runner "
            f"starts anew, and a redelivered turn may run twice; use {_SHARED_STORES}",
        )
    yield from _stream_warnings(settings, topology)
    yield from _broker_warnings(settings)


def _store_types(settings: Settings) -> tuple[str, str]:
    return settings.execution.response_store.type, settings.session.type


def _wait_warnings(settings: Settings) -> Iterator[SettingWarning]:
    execution = settings.execution
    store = execution.response_store
    waits = store.retry_count * store.delay
    untouched = not {"retry_count", "delay"} & store.model_fields_set
    if untouched and execution.mode == "rest_sync":
        yield SettingWarning(
            "execution.response_store.retry_count",
            f"declaring the block made callers wait {waits:g} s instead of 60 s; set retry_count "
            "and delay to say how long they wait",
        )
    if execution.drain_grace >= ORCHESTRATOR_GRACE_SECONDS:
        yield SettingWarning(
            "execution.drain_grace",
            f"orchestrators kill a process {ORCHESTRATOR_GRACE_SECONDS} s after SIGTERM unless "
            "told otherwise; raise their grace period above this value, or lower it",
        )


def _size_warnings(settings: Settings) -> Iterator[SettingWarning]:
    if settings.api.max_file_size > settings.api.max_body_bytes:
        yield SettingWarning(
            "api.max_file_size",
            "is above api.max_body_bytes, which refuses such a request first; raise that one too",
        )
    if settings.session.cache is not None:
        yield SettingWarning("session.cache", "has no effect; remove the block")


def _stream_warnings(settings: Settings, topology: Topology) -> Iterator[SettingWarning]:
    if topology is Topology.GATEWAY and settings.execution.response_store.type == "in_memory":
        yield SettingWarning(
            "execution.response_store.type",
            "in_memory keeps answers in each process, so frames that are sent again, resume or "
            f"cancel a turn find none of another pod's; use {_SHARED_STORES}",
        )
    if settings.execution.mode != "stream" or topology not in _TAKES_ANSWERS:
        return
    if settings.execution.response_store.type == "in_memory":
        yield SettingWarning(
            "execution.response_store.type",
            f"in_memory keeps no chunks for other processes, so streams are served over /ws only; "
            f"use {_SHARED_STORES} for SSE",
        )
    elif settings.websocket_api.push_auth_token is None:
        yield SettingWarning(
            "websocket_api.push_auth_token",
            "is not set, so streams are served over SSE only and sockets get no chunks",
        )


def _broker_warnings(settings: Settings) -> Iterator[SettingWarning]:
    queues = settings.execution.queues
    if queues.type == "kafka" and settings.session.type not in ("redis", "valkey"):
        yield SettingWarning(
            "session.type",
            "delivery counts and deduplication on kafka follow redis or valkey sessions; with "
            f"{settings.session.type} they are lost with the process",
        )
    asked = "max_messages_per_session" in queues.sqs.model_fields_set
    if queues.type == "sqs" and asked and settings.session.type not in ("redis", "valkey"):
        yield SettingWarning(
            "execution.queues.sqs.max_messages_per_session",
            f"has no effect with {settings.session.type} sessions: SQS counts no session, and the "
            "count is kept on redis or valkey",
        )
    by_partition = queues.type == "nats" and queues.nats.max_ack_pending is not None
    if by_partition and queues.nats.partitions < queues.input.no_of_consumers:
        yield SettingWarning(
            "execution.queues.nats.partitions",
            f"{queues.nats.partitions} partitions leave some of the "
            f"{queues.input.no_of_consumers} consumers without work; raise the one or lower the "
            "other",
        )
