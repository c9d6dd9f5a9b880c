"""Loading settings: sources, precedence, origins and faults."""

from pathlib import Path

import pytest

from turnline.config import Loaded, Settings, load_settings
from turnline.errors import ConfigurationError

WEAK = "aaaaaaaaaaaaaaaaaaaaaaaa"
STRONG = "0123456789abcdef0123456789abcdef"


def load(
    cwd: Path, *, yaml: str | None = None, dotenv: str | None = None, **environ: str
) -> Loaded:
    if yaml is not None:
        (cwd / "config.yaml").write_text(yaml, encoding="utf-8")
    if dotenv is not None:
        (cwd / ".env").write_text(dotenv, encoding="utf-8")
    return load_settings(environ=environ, cwd=cwd)


def faults(
    cwd: Path, *, yaml: str | None = None, dotenv: str | None = None, **environ: str
) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        load(cwd, yaml=yaml, dotenv=dotenv, **environ)
    return caught.value.faults


def test_without_any_source_all_settings_have_their_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path)

    assert loaded.settings == Settings()
    assert loaded.origin("execution.mode") == "default"
    assert loaded.pod_ip == ""


def test_environment_beats_dotenv_beats_yaml_beats_default(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        yaml="api:\n  host: yaml\n  port: 1\n  sse_heartbeat: 2\n",
        dotenv="OTHER=x\nAK_API__HOST=dotenv\nAK_API__PORT=3\n",
        AK_API__HOST="env",
        HOME="/root",
    )

    assert (loaded.settings.api.host, loaded.origin("api.host")) == ("env", "env AK_API__HOST")
    assert (loaded.settings.api.port, loaded.origin("api.port")) == (3, ".env:3")
    assert loaded.settings.api.sse_heartbeat == 2
    assert loaded.origin("api.sse_heartbeat") == "config.yaml:4"
    assert loaded.origin("api.max_body_bytes") == "default"


def test_names_of_variables_have_no_case_and_empty_values_count_as_unset(tmp_path: Path) -> None:
    loaded = load(tmp_path, ak_Execution__MODE="stream", AK_API__HOST="", AK_NO_SUCH="")

    assert loaded.settings.execution.mode == "stream"
    assert loaded.settings.api.host == "0.0.0.0"


def test_a_block_as_json_merges_with_its_keys_set_one_by_one(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        yaml="execution: {queues: {type: kafka, output: {no_of_consumers: 9}}}",
        AK_EXECUTION__QUEUES='{"type": "nats", "input": {"no_of_consumers": 7, "url": null}}',
        AK_EXECUTION__QUEUES__INPUT__NO_OF_CONSUMERS="8",
    )

    queues = loaded.settings.execution.queues
    assert (queues.type, queues.input.no_of_consumers, queues.output.no_of_consumers) == (
        "nats",
        8,
        9,
    )
    assert loaded.origin("execution.queues.type") == "env AK_EXECUTION__QUEUES"


def test_client_config_keeps_dotted_names_and_merges_by_name(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        yaml="execution:\n  queues:\n    type: kafka\n    kafka:\n      client_config:\n"
        "        security.protocol: SASL_SSL\n        linger.ms: 5\n",
        AK_EXECUTION__QUEUES__KAFKA__CLIENT_CONFIG='{"linger.ms": 9}',
    )

    config = loaded.settings.execution.queues.kafka.client_config
    assert config == {"security.protocol": "SASL_SSL", "linger.ms": 9}


@pytest.mark.parametrize(
    ("yaml", "budget"),
    [
        ("", (60, 1)),
        ("execution: {response_store: }", (60, 1)),
        ("execution: {response_store: {}}", (5, 5)),
        ("execution: {response_store: {type: in_memory}}", (5, 5)),
        ("execution: {response_store: {retry_count: 2}}", (2, 5)),
    ],
)
def test_declaring_a_response_store_changes_the_wait(
    tmp_path: Path, yaml: str, budget: tuple[int, float]
) -> None:
    store = load(tmp_path, yaml=yaml).settings.execution.response_store

    assert (store.retry_count, store.delay) == budget


def test_a_queues_block_without_type_is_a_fault_whatever_declares_it(tmp_path: Path) -> None:
    text = "must be set when its block is declared; set it to one of in_memory, sqs, kafka, nats"
    assert faults(tmp_path, AK_EXECUTION__QUEUES__BATCH_SIZE="2") == (
        f"env AK_EXECUTION__QUEUES__BATCH_SIZE: execution.queues.type: {text}",
    )
    assert faults(tmp_path, yaml="execution:\n  queues: {}\n") == (
        f"config.yaml:2: execution.queues.type: {text}",
    )


def test_every_fault_of_every_source_is_told_at_once(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        yaml="execution:\n  mode: REST_ASYNC\n  mode: stream\ntypo: 1\nsession:\n  lease: .inf\n",
        dotenv="AK_API__PORT=http\nnot a line\n",
        AK_SESION__TYPE="valkey",
        AK_EXECUTION__QUEUES="{",
    )

    origins = sorted(fault.split(": ")[0] for fault in found)
    assert origins == [
        ".env:1",
        ".env:2",
        "config.yaml:3",
        "config.yaml:4",
        "config.yaml:6",
        "env AK_EXECUTION__QUEUES",
        "env AK_SESION__TYPE",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("AK_SESION__TYPE", "valkey", "did you mean AK_SESSION__TYPE?"),
        ("AK_RESPONSE_STORE__TYPE", "redis", "did you mean AK_EXECUTION__RESPONSE_STORE__TYPE?"),
        ("AK_API__PROT", "1", "did you mean AK_API__PORT?"),
        ("AK_EXECUTION__MODE", "REST_ASYNC", "did you mean rest_async?"),
        ("AK_EXECUTION__MODE", "realtime", "realtime is not supported; use stream or async"),
        ("AK_SESSION__TYPE", "cosmosdb", "cosmosdb sessions are not supported; use valkey"),
        ("AK_SESSION__TYPE", "firestore", "firestore sessions are not supported; use valkey"),
        ("AK_API__PORT", "80x", "'80x' is not allowed; use a whole number from 0 to 65535"),
        ("AK_TELEMETRY__METRICS", "maybe", "'maybe' is not allowed; use true or false"),
        ("AK_SESSION__LEASE", "nan", "use a number from 0.05 to 3600"),
        ("AK_TELEMETRY", "[1]", "is one value where a block of keys belongs"),
        ("AK_API__PORT__X", "1", "is a block where one value belongs"),
        ("AK_SESSION__REDIS__URL", "http://x", "it starts with redis:// or rediss://"),
        ("AK_SESSION__REDIS__URL", "redis://x", "type is not, so in_memory would be used"),
        ("AK_SESSION__TYPE", "dynamodb", "dynamodb.table_name is not set"),
        ("AK_API__CUSTOM_ROUTER_PREFIX", "custom", "must start with /"),
    ],
)
def test_a_fault_names_its_variable_and_the_fix(
    tmp_path: Path, variable: str, value: str, told: str
) -> None:
    (fault,) = faults(tmp_path, **{variable: value})

    assert fault.startswith(f"env {variable}: ")
    assert told in fault


@pytest.mark.parametrize("count", ["0", "-4", "1025"])
@pytest.mark.parametrize("queue", ["INPUT", "OUTPUT"])
def test_a_consumer_count_out_of_range_is_refused(tmp_path: Path, queue: str, count: str) -> None:
    (fault,) = faults(
        tmp_path,
        AK_EXECUTION__QUEUES__TYPE="in_memory",
        **{f"AK_EXECUTION__QUEUES__{queue}__NO_OF_CONSUMERS": count},
    )

    assert f"'{count}' is not allowed; use a whole number from 1 to 1024" in fault


def test_a_yaml_boolean_is_no_number(tmp_path: Path) -> None:
    assert faults(tmp_path, yaml="api:\n  port: yes\n") == (
        "config.yaml:2: api.port: is a boolean where a number belongs; write the number",
    )


@pytest.mark.parametrize("key", ["websocket_api.push_auth_token", "api.admin_token"])
@pytest.mark.parametrize("token", ["x", WEAK, "short-token-15c", "ümlaut0123456789abcdef"])
def test_a_weak_token_is_refused_and_never_shown(tmp_path: Path, key: str, token: str) -> None:
    block, name = key.split(".")
    (fault,) = faults(tmp_path, yaml=f"{block}:\n  {name}: {token}\n")

    assert fault.startswith(f"config.yaml:2: {key}: ")
    assert token not in fault or token == "x"


def test_neither_secrets_nor_values_of_unknown_keys_reach_a_fault(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        yaml="api:\n  admin_tokn: hunter2-yaml\n  admin_token: [hunter2-list]\n"
        "session:\n  valkey:\n    url: 'vk://:hunter2-url@host'\n",
        AK_ADMIN_TOKEN="hunter2-env",
        AK_EXECUTION__QUEUES='{"hunter2-json',
    )

    assert len(found) == 5
    assert "hunter2" not in "\n".join(found)


def test_one_variable_set_twice_to_different_values_is_a_fault(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, AK_API__PORT="1", ak_api__port="2")

    assert "also set as AK_API__PORT" in fault


def test_the_override_names_the_file_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("api: {port: 1}")
    (tmp_path / "other.yaml").write_text("api: {port: 2}")

    loaded = load(tmp_path, AK_CONFIG_PATH_OVERRIDE="other.yaml")
    (fault,) = faults(tmp_path, AK_CONFIG_PATH_OVERRIDE="missing.yaml")

    assert loaded.settings.api.port == 2
    assert loaded.origin("api.port") == "other.yaml:1"
    assert fault == "missing.yaml: the file does not exist; correct the path or create it"


def test_a_path_argument_beats_the_override(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("api: {port: 3}")
    environ = {"AK_CONFIG_PATH_OVERRIDE": "missing.yaml"}

    loaded = load_settings(environ=environ, cwd=tmp_path, path=tmp_path / "a.yaml")

    assert loaded.settings.api.port == 3


def test_files_that_cannot_be_read_are_faults(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    (tmp_path / ".env").write_bytes(b"AK_API__HOST=\xff")

    found = faults(tmp_path)

    assert found == (
        ".env: is no UTF-8 text; save it as UTF-8",
        "config.yaml: cannot be read: Is a directory; make it a readable file",
    )


def test_pod_ip_is_carried_but_is_no_setting(tmp_path: Path) -> None:
    assert load(tmp_path, AK_POD_IP="10.0.0.7").pod_ip == "10.0.0.7"
    assert load(tmp_path, dotenv="ak_pod_ip='10.0.0.8'").pod_ip == "10.0.0.8"


def test_a_secret_file_stands_in_for_its_reference(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "push").write_text(STRONG + "\n")
    (secrets / "pw").write_text("hunter2")

    loaded = load(
        tmp_path,
        yaml="websocket_api:\n  push_auth_token: <file:push>\n",
        AK_SECRETS_PATH=str(secrets),
        AK_SESSION__TYPE="valkey",
        AK_SESSION__VALKEY__URL="valkey://:<file:pw>@host:1",
    )

    token = loaded.settings.websocket_api.push_auth_token
    assert token is not None
    assert token.get_secret_value() == STRONG
    assert loaded.settings.session.valkey.url == "valkey://:hunter2@host:1"
    assert loaded.secret_keys == {"websocket_api.push_auth_token", "session.valkey.url"}
    assert loaded.origin("websocket_api.push_auth_token") == "config.yaml:2"


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("<file:missing>", "cannot be read: No such file or directory"),
        ("<file:../config.yaml>", "is no name of a file inside AK_SECRETS_PATH"),
        ("<file:/etc/passwd>", "is no name of a file inside AK_SECRETS_PATH"),
        ("<file:>", "is no name of a file inside AK_SECRETS_PATH"),
        ("<file:binary>", "is no UTF-8 text"),
        ("<file:huge>", "is over 65536 bytes"),
    ],
)
def test_a_secret_file_that_cannot_be_used_is_a_fault(
    tmp_path: Path, reference: str, told: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "huge").write_bytes(b"x" * 65_537)

    (fault,) = faults(tmp_path, AK_SECRETS_PATH=str(tmp_path), AK_API__HOST=reference)

    assert fault.startswith("env AK_API__HOST: api.host: ")
    assert told in fault


def test_a_secret_reference_without_a_directory_is_a_fault(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, AK_API__HOST="<file:host>")

    assert "AK_SECRETS_PATH is not set" in fault


def test_a_secret_of_the_wrong_kind_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("hunter2")

    (fault,) = faults(tmp_path, AK_SECRETS_PATH=str(tmp_path), AK_API__PORT="<file:port>")

    assert "whole number" in fault
    assert "hunter2" not in fault


def test_settings_cannot_be_changed_and_hide_secrets_in_their_text(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        AK_API__ADMIN_TOKEN=STRONG,
        AK_SESSION__TYPE="redis",
        AK_SESSION__REDIS__URL="redis://u:hunter2@host",
        AK_EXECUTION__QUEUES__TYPE="kafka",
        AK_EXECUTION__QUEUES__KAFKA__CLIENT_CONFIG='{"sasl.password": "pw77"}',
    )

    with pytest.raises(ValueError, match="frozen"):
        loaded.settings.api.port = 1
    text = repr(loaded) + str(loaded.settings)
    assert STRONG not in text
    assert "hunter2" not in text
    assert "pw77" not in text


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AK_GATEWAY_SERVICE_HOST", "10.0.0.1"),
        ("AK_GATEWAY_SERVICE_PORT", "8000"),
        ("AK_GATEWAY_SERVICE_PORT_HTTP", "8000"),
        ("AK_GATEWAY_PORT", "tcp://10.0.0.1:8000"),
        ("AK_GATEWAY_PORT_8000_TCP", "tcp://10.0.0.1:8000"),
        ("AK_GATEWAY_PORT_8000_TCP_ADDR", "10.0.0.1"),
    ],
)
def test_what_kubernetes_sets_for_a_service_is_no_setting(
    tmp_path: Path, variable: str, value: str
) -> None:
    assert load(tmp_path, **{variable: value}).settings == Settings()


@pytest.mark.parametrize("variable", ["AK_API_PORT", "AK_WEBSOCKET_API_PUSH_PORT"])
def test_a_setting_written_with_too_few_underscores_is_told(tmp_path: Path, variable: str) -> None:
    (fault,) = faults(tmp_path, **{variable: "80"})

    assert fault.startswith(f"env {variable}: no setting has this name; did you mean AK_")
