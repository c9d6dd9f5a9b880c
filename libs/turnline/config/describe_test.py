"""Showing settings, and the settings' own documentation."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from turnline.config import (
    Loaded,
    Settings,
    describe,
    effective_yaml,
    json_schema,
    load_settings,
)
from turnline.config.faults import limit
from turnline.config.layers import Path as KeyPath
from turnline.config.suggest import block_of, fields

TOKEN = "0123456789abcdef0123456789abcdef"
VALUES = {path: field for path, field in fields().items() if not block_of(field.annotation)}


def loaded(tmp_path: Path, **environ: str) -> Loaded:
    return load_settings(environ=environ, cwd=tmp_path)


def test_every_setting_is_listed_with_its_origin(tmp_path: Path) -> None:
    rows = {row.key: row for row in describe(loaded(tmp_path, AK_API__PORT="1"))}

    assert set(rows) >= {".".join(path) for path in VALUES} - {"session.cache.size"}
    assert rows["api.port"] == ("api.port", 1, "env AK_API__PORT")
    assert rows["api.host"] == ("api.host", "0.0.0.0", "default")


def test_no_secret_is_shown(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("hunter2-host")
    given = loaded(
        tmp_path,
        AK_API__ADMIN_TOKEN=TOKEN,
        AK_API__HOST="<file:host>",
        AK_SECRETS_PATH=str(tmp_path),
        AK_EXECUTION__QUEUES__TYPE="nats",
        AK_EXECUTION__QUEUES__NATS__URL="nats://hunter2-a@one,nats://u:hunter2-b@two",
        AK_EXECUTION__QUEUES__KAFKA__CLIENT_CONFIG='{"sasl.password": "hunter2-c", "acks": 1}',
        AK_TELEMETRY__OTLP_ENDPOINT="https://x/?api_key=hunter2-d&y=1",
    )

    rows = {row.key: row.value for row in describe(given)}
    text = effective_yaml(given)

    assert "hunter2" not in f"{rows} {text}"
    assert TOKEN not in f"{rows} {text}"
    assert rows["execution.queues.nats.url"] == "nats://**********@one,nats://**********@two"
    assert rows["execution.queues.kafka.client_config.acks"] == 1
    assert rows["telemetry.otlp_endpoint"] == "https://x/?api_key=**********&y=1"


def test_effective_yaml_loads_to_the_same_settings(tmp_path: Path) -> None:
    first = loaded(
        tmp_path,
        AK_EXECUTION__MODE="stream",
        AK_EXECUTION__QUEUES='{"type": "kafka", "kafka": {"client_config": {"a.b": "c"}}}',
        AK_SESSION__CACHE__SIZE="3",
    )

    (tmp_path / "config.yaml").write_text(effective_yaml(first))

    assert loaded(tmp_path).settings == first.settings


@pytest.mark.parametrize("path", fields(), ids=".".join)
def test_every_setting_is_described(path: KeyPath) -> None:
    description = fields()[path].description

    assert description
    assert description.endswith(".")


@pytest.mark.parametrize("path", VALUES, ids=".".join)
def test_every_number_has_a_range_and_says_what_zero_means(path: KeyPath) -> None:
    field = VALUES[path]
    if not {int, float} & {field.annotation, *getattr(field.annotation, "__args__", ())}:
        return

    assert limit(field, "ge") is not None
    assert limit(field, "le") is not None
    description = field.description or ""
    assert bool(re.search(r"\b(?<!\d)0: ", description)) == (limit(field, "ge") == 0)
    assert ("Unset: " in description) == (field.default is None)
    assert "Default" in description or field.default is None


def test_the_schema_describes_every_key_and_allows_no_other() -> None:
    schema = json_schema()

    def resolve(node: dict[str, Any]) -> dict[str, Any]:
        options = [option for option in node.get("anyOf", [node]) if option.get("type") != "null"]
        reference = options[0].get("$ref")
        found = schema["$defs"][reference.rsplit("/", 1)[1]] if reference else options[0]
        return cast("dict[str, Any]", found)

    for path in fields():
        node = schema
        for key in path:
            node = resolve(node)
            assert node["additionalProperties"] is False
            node = node["properties"][key]
        assert node["description"]


def test_settings_of_the_guide_keep_their_defaults() -> None:
    guide = yaml.safe_load("""
        execution.mode: rest_sync
        execution.queues.type: in_memory
        execution.queues.input.max_receive_count: 3
        execution.queues.input.no_of_consumers: 5
        execution.queues.output.max_receive_count: 3
        execution.queues.output.no_of_consumers: 2
        execution.queues.batch_size: 1
        execution.queues.in_memory.ack_wait: 10
        execution.queues.in_memory.dedup_window: 300
        execution.queues.nats.url: nats://localhost:4222
        execution.queues.nats.input_stream: AGENT_REQUESTS
        execution.queues.nats.input_subject_prefix: chat.req
        execution.queues.nats.output_stream: AGENT_REPLIES
        execution.queues.nats.output_subject_prefix: chat.out
        execution.queues.nats.partitions: 32
        execution.queues.nats.ack_wait: 10
        execution.queues.nats.retry_backoff: 2
        execution.queues.nats.duplicate_window: 300
        execution.queues.nats.max_age: 86400
        execution.queues.nats.request_timeout: 10
        execution.queues.nats.auto_provision: false
        execution.queues.kafka.bootstrap_servers: localhost:9092
        execution.queues.kafka.input_topic: agent-input
        execution.queues.kafka.output_topic: agent-output
        execution.queues.kafka.group_id: agent-kernel
        execution.queues.kafka.dlq_suffix: .dlq
        execution.queues.kafka.retry_backoff: 2
        execution.queues.kafka.delivery_timeout: 30
        execution.queues.kafka.metadata_timeout: 5
        execution.response_store.retry_count: 60
        execution.response_store.delay: 1
        execution.response_store.redis.url: redis://localhost:6379
        execution.response_store.redis.ttl: 604800
        execution.response_store.redis.prefix: "ak:responses:"
        execution.response_store.valkey.url: valkey://localhost:6379
        execution.response_store.valkey.ttl: 604800
        execution.response_store.valkey.prefix: "ak:responses:"
        session.type: in_memory
        session.redis.url: redis://localhost:6379
        session.redis.ttl: 604800
        session.redis.prefix: "ak:sessions:"
        session.valkey.url: valkey://localhost:6379
        session.valkey.ttl: 604800
        session.valkey.prefix: "ak:sessions:"
        session.connection_store.ttl: 86400
        websocket_api.chat_route: chat
        api.host: 0.0.0.0
        api.port: 8000
        api.enabled_routes.agents: true
        api.custom_router_prefix: /custom
        api.max_file_size: 10485760
        """)

    rows = {row.key: row.value for row in describe(Loaded(settings=Settings()))}

    assert {key: rows[key] for key in guide} == guide
