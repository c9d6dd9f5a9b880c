"""Settings against the process they are for."""

from typing import Any

import pytest

from turnline.config import Settings, Topology, topology_faults, topology_warnings

TOKEN = "0123456789abcdef0123456789abcdef"
BROKER_PROCESSES = [
    t for t in Topology if t not in (Topology.SINGLE_PROCESS, Topology.PUSH_ENDPOINT)
]
VALKEY = {"type": "valkey"}


def settings(
    transport: str = "nats",
    mode: str = "rest_sync",
    *,
    replies: dict[str, Any] | None = None,
    session: dict[str, Any] | None = None,
    queues: dict[str, Any] | None = None,
    **blocks: dict[str, Any],
) -> Settings:
    execution: dict[str, Any] = {"mode": mode, "queues": {"type": transport, **(queues or {})}}
    if replies is not None:
        execution["response_store"] = replies
    return Settings.model_validate({"execution": execution, "session": session or {}, **blocks})


def fault_keys(given: Settings, topology: Topology) -> list[str]:
    return [fault.split(": ")[0] for fault in topology_faults(given, topology=topology)]


def warning_keys(given: Settings, topology: Topology) -> list[str]:
    return [warning.setting for warning in topology_warnings(given, topology=topology)]


@pytest.mark.parametrize("mode", ["rest_sync", "rest_async", "stream", "async"])
def test_the_defaults_fit_a_single_process_in_every_mode(mode: str) -> None:
    assert topology_faults(settings("in_memory", mode), topology=Topology.SINGLE_PROCESS) == ()
    assert topology_warnings(Settings(), topology=Topology.SINGLE_PROCESS) == ()


@pytest.mark.parametrize("topology", BROKER_PROCESSES)
def test_in_memory_refuses_every_process_of_its_own(topology: Topology) -> None:
    assert fault_keys(settings("in_memory"), topology) == ["execution.queues.type"]


@pytest.mark.parametrize("transport", ["nats", "kafka"])
@pytest.mark.parametrize("mode", ["rest_sync", "rest_async"])
@pytest.mark.parametrize(
    "topology", [Topology.IO_HANDLER, Topology.REQUEST_HANDLER, Topology.RESPONDER]
)
def test_rest_on_a_broker_needs_a_shared_response_store(
    transport: str, mode: str, topology: Topology
) -> None:
    without, shared = settings(transport, mode), settings(transport, mode, replies=VALKEY)

    assert fault_keys(without, topology) == ["execution.response_store.type"]
    assert fault_keys(shared, topology) == []


@pytest.mark.parametrize("kind", ["redis", "valkey"])
@pytest.mark.parametrize("mode", ["rest_sync", "stream", "async"])
def test_answers_undeclared_are_kept_on_the_server_of_shared_sessions(kind: str, mode: str) -> None:
    url = f"{kind}://sessions:6379"
    given = settings(mode=mode, session={"type": kind, kind: {"url": url, "ttl": 5}})

    store = given.execution.response_store
    assert (store.type, getattr(store, kind).url) == (kind, url)
    assert (store.retry_count, store.delay) == (60, 1)
    assert fault_keys(given, Topology.REQUEST_HANDLER) == []
    assert warning_keys(given, Topology.REQUEST_HANDLER) == []


@pytest.mark.parametrize(
    ("transport", "replies", "session"),
    [
        ("in_memory", None, VALKEY),
        ("nats", {"type": "in_memory"}, VALKEY),
        ("nats", None, {"type": "dynamodb", "dynamodb": {"table_name": "sessions"}}),
        ("nats", None, None),
    ],
)
def test_answers_stay_in_the_process_that_has_no_others_or_is_told_so(
    transport: str, replies: dict[str, Any] | None, session: dict[str, Any] | None
) -> None:
    given = settings(transport, replies=replies, session=session)

    assert given.execution.response_store.type == "in_memory"


def test_a_gateway_whose_answers_no_other_process_sees_is_warned_of() -> None:
    push = {"push_auth_token": TOKEN}
    alone = settings(
        mode="async", replies={"type": "in_memory"}, session=VALKEY, websocket_api=push
    )
    shared = settings(mode="async", session=VALKEY, websocket_api=push)

    assert warning_keys(alone, Topology.GATEWAY) == ["execution.response_store.type"]
    assert warning_keys(shared, Topology.GATEWAY) == []


def test_a_runner_needs_no_response_store() -> None:
    assert fault_keys(settings("nats"), Topology.RUNNER) == []


@pytest.mark.parametrize("mode", ["rest_sync", "stream", "async"])
def test_a_gateway_needs_a_push_token_and_shared_sessions_in_every_mode(mode: str) -> None:
    ready = settings(mode=mode, session=VALKEY, websocket_api={"push_auth_token": TOKEN})

    assert fault_keys(settings(mode=mode, replies=VALKEY), Topology.GATEWAY) == [
        "websocket_api.push_auth_token",
        "session.type",
    ]
    assert fault_keys(ready, Topology.GATEWAY) == []


@pytest.mark.parametrize("topology", [Topology.IO_HANDLER, Topology.RESPONDER])
@pytest.mark.parametrize("mode", ["stream", "async"])
def test_who_can_answer_over_sockets_only_needs_a_push_token_and_shared_sessions(
    mode: str, topology: Topology
) -> None:
    assert fault_keys(settings(mode=mode), topology) == [
        "websocket_api.push_auth_token",
        "session.type",
    ]


def test_streams_kept_in_a_shared_store_need_no_sockets_but_a_warning_says_so() -> None:
    given = settings(mode="stream", replies=VALKEY, session=VALKEY)

    assert fault_keys(given, Topology.RESPONDER) == []
    assert warning_keys(given, Topology.RESPONDER) == ["websocket_api.push_auth_token"]


@pytest.mark.parametrize("place", ["session", "websocket_api"])
def test_dynamodb_sessions_need_a_connections_table(place: str) -> None:
    table: dict[str, Any] = {"type": "dynamodb", "dynamodb": {"table_name": "sessions"}}
    push: dict[str, Any] = {"push_auth_token": TOKEN}
    without = settings(mode="async", session=table, websocket_api=push)
    if place == "session":
        table = {**table, "connection_store": {"table_name": "sockets"}}
    else:
        push = {**push, "connection_table": "sockets"}
    ready = settings(mode="async", session=table, websocket_api=push)

    assert fault_keys(without, Topology.GATEWAY) == ["session.connection_store.table_name"]
    assert fault_keys(ready, Topology.GATEWAY) == []


@pytest.mark.parametrize(
    ("topology", "needed"),
    [
        (Topology.RUNNER, ["input", "output"]),
        (Topology.IO_HANDLER, ["input", "output"]),
        (Topology.REQUEST_HANDLER, ["input"]),
        (Topology.RESPONDER, ["output"]),
        (Topology.SINGLE_PROCESS, ["input", "output"]),
    ],
)
def test_each_process_on_sqs_needs_the_urls_of_its_own_queues(
    topology: Topology, needed: list[str]
) -> None:
    given = settings("sqs", replies=VALKEY)

    assert fault_keys(given, topology) == [f"execution.queues.{name}.url" for name in needed]


def test_an_sqs_queue_that_is_not_fifo_is_refused() -> None:
    queues = {"input": {"url": "https://sqs/1/in"}, "output": {"url": "https://sqs/1/out.fifo"}}

    assert fault_keys(settings("sqs", queues=queues), Topology.RUNNER) == [
        "execution.queues.input.url"
    ]


def test_a_sessions_share_that_sqs_cannot_keep_is_warned_of_where_it_is_set() -> None:
    urls = {"input": {"url": "https://sqs/1/in.fifo"}, "output": {"url": "https://sqs/1/out.fifo"}}
    queues = {**urls, "sqs": {"max_messages_per_session": 5}}
    table = {"type": "dynamodb", "dynamodb": {"table_name": "sessions"}}

    assert warning_keys(settings("sqs", session=table, queues=queues), Topology.RUNNER) == [
        "execution.queues.sqs.max_messages_per_session"
    ]
    assert warning_keys(settings("sqs", session=VALKEY, queues=queues), Topology.RUNNER) == []
    assert warning_keys(settings("sqs", session=table, queues=urls), Topology.RUNNER) == []


def test_a_runner_with_sessions_in_memory_is_warned_of() -> None:
    assert warning_keys(settings(), Topology.RUNNER) == ["session.type"]
    assert warning_keys(settings(session=VALKEY), Topology.RUNNER) == []


def test_one_process_on_a_broker_with_a_store_in_memory_is_warned_of() -> None:
    assert warning_keys(settings(), Topology.SINGLE_PROCESS) == ["execution.queues.type"]


def test_kafka_without_redis_or_valkey_sessions_is_warned_of() -> None:
    table = {"type": "dynamodb", "dynamodb": {"table_name": "sessions"}}

    assert warning_keys(settings("kafka", session=table), Topology.RUNNER) == ["session.type"]
    assert warning_keys(settings("kafka", session=VALKEY), Topology.RUNNER) == []


def test_more_consumers_than_nats_partitions_are_warned_of() -> None:
    given = settings(session=VALKEY, queues={"nats": {"partitions": 4, "max_ack_pending": 1}})

    assert warning_keys(given, Topology.RUNNER) == ["execution.queues.nats.partitions"]


def test_nats_partitions_without_limits_of_their_own_limit_nobody() -> None:
    given = settings(session=VALKEY, queues={"nats": {"partitions": 4}})

    assert warning_keys(given, Topology.RUNNER) == []


@pytest.mark.parametrize(
    ("blocks", "key"),
    [
        ({"replies": {}}, "execution.response_store.retry_count"),
        ({"api": {"max_file_size": 2048, "max_body_bytes": 1024}}, "api.max_file_size"),
        ({"session": {"cache": {}}}, "session.cache"),
    ],
)
def test_what_is_likely_not_meant_is_warned_of(blocks: dict[str, Any], key: str) -> None:
    assert warning_keys(settings("in_memory", **blocks), Topology.SINGLE_PROCESS) == [key]


def test_a_grace_period_longer_than_orchestrators_give_is_warned_of() -> None:
    given = Settings.model_validate({"execution": {"drain_grace": 30}})

    assert warning_keys(given, Topology.SINGLE_PROCESS) == ["execution.drain_grace"]


def test_every_fault_says_how_to_mend_it() -> None:
    given = settings("sqs", "async")

    for topology in Topology:
        for fault in topology_faults(given, topology=topology):
            assert "; " in fault


@pytest.mark.parametrize("topology", [Topology.RUNNER, Topology.REQUEST_HANDLER])
def test_who_neither_holds_nor_pushes_to_sockets_needs_no_push_token(topology: Topology) -> None:
    assert fault_keys(settings(mode="async"), topology) == []


def test_a_push_endpoint_needs_the_pods_secret_and_no_transport() -> None:
    assert fault_keys(settings("in_memory"), Topology.PUSH_ENDPOINT) == [
        "websocket_api.push_auth_token"
    ]
    given = settings("in_memory", websocket_api={"push_auth_token": TOKEN}, session=VALKEY)
    assert topology_faults(given, topology=Topology.PUSH_ENDPOINT) == ()
    assert warning_keys(given, Topology.PUSH_ENDPOINT) == []


def test_a_push_endpoint_by_itself_is_told_that_it_finds_no_sockets() -> None:
    given = settings("in_memory", websocket_api={"push_auth_token": TOKEN})

    assert warning_keys(given, Topology.PUSH_ENDPOINT) == ["session.type"]
