"""Starting: all faults are told at once with exit code 78; entry points do what they say."""

import socket
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from e2e.process import APPS, dev, run, serving
from e2e.tokens import token_for

CHAT = "/api/v1/chat"


async def test_all_faults_of_the_configuration_are_told_at_once(tmp_path: Path) -> None:
    settings = {
        "AK_EXECUTION__MAX_CONCURRENCY": "0",
        "AK_EXECUTION__MODE": "rest_snyc",
        "AK_EXECUTION__QUEUES__INPUT__NO_OF_CONSUMERS": "many",
        "AK_EXECUTOIN__MODE": "stream",
    }

    ended = await run(tmp_path, *dev(), settings=settings)

    assert ended.code == 78
    for name in settings:
        assert name in ended.stderr, name
    assert "Traceback" not in ended.stderr


async def test_a_fault_in_the_yaml_file_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("execution:\n  mode: rest_sync\n  typo: 1\n")

    ended = await run(tmp_path, *dev())

    assert ended.code == 78
    assert "execution.typo" in ended.stderr
    assert "config.yaml:3" in ended.stderr


async def test_a_port_in_use_is_told_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        ended = await run(tmp_path, str(APPS / "rest_app.py"), settings={"AK_API__PORT": str(port)})

    assert ended.code == 78
    assert f"127.0.0.1:{port}" in ended.stderr
    assert "AK_API__PORT" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("app", ["runner_app.py", "gateway_app.py"])
async def test_a_part_of_its_own_refuses_in_memory_with_the_reason(
    tmp_path: Path, app: str
) -> None:
    ended = await run(tmp_path, str(APPS / app))

    assert ended.code == 78
    assert "in_memory lives inside one process" in ended.stderr
    assert "IOHandler.run()" in ended.stderr


@pytest.mark.parametrize(
    ("app", "fault"),
    [
        ("rest_app.py", "execution.queues.type: is nats"),
        ("io_app.py", "execution.response_store.type: is in_memory"),
    ],
)
async def test_on_a_broker_a_layout_that_cannot_work_is_refused_with_the_reason(
    tmp_path: Path, app: str, fault: str
) -> None:
    settings = {"AK_EXECUTION__QUEUES__TYPE": "nats"}

    ended = await run(tmp_path, str(APPS / app), settings=settings)

    assert ended.code == 78
    assert fault in ended.stderr


async def test_a_setting_that_is_likely_not_meant_is_warned_of(tmp_path: Path) -> None:
    settings = {"AK_EXECUTION__DRAIN_GRACE": "45"}

    async with serving(tmp_path, *dev(), settings=settings) as server:
        warnings = server.events("config.warning")

    assert [entry["setting"] for entry in warnings] == ["execution.drain_grace"]


async def test_a_bare_rest_api_serves_the_whole_pipeline_without_sockets(tmp_path: Path) -> None:
    async with serving(tmp_path, str(APPS / "rest_app.py")) as server:
        async with server.client() as client:
            answer = await client.post(CHAT, json={"prompt": "hi", "session_id": "s"})
            agents = await client.get("/api/v1/agents")
        with pytest.raises(InvalidStatus):
            await connect(f"{server.ws_url}/ws?token=x")

    assert answer.json()["result"] == "hi "
    assert agents.json()["agents"][0] == "echo"


async def test_a_handler_of_ones_own_runs_inline_outside_the_pipeline(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, str(APPS / "inline_app.py")) as server,
        server.client() as client,
    ):
        own = await client.get("/custom/greet")
        chat = await client.post(CHAT, json={"prompt": "hi", "session_id": "s"})

    assert own.json() == {"hello": "inline"}
    assert chat.status_code == 404


async def test_an_io_handler_with_a_validator_adds_sockets_and_demands_tokens_on_rest(
    tmp_path: Path,
) -> None:
    body = {"prompt": "hi", "session_id": "s"}
    token = token_for("u1")
    async with serving(tmp_path, str(APPS / "io_app.py")) as server:
        async with server.client() as client:
            without = await client.post(CHAT, json=body)
            headers = {"authorization": f"Bearer {token}"}
            with_token = await client.post(CHAT, json=body, headers=headers)
        async with connect(f"{server.ws_url}/ws?token={token}") as client_socket:
            pong = await client_socket.ping()
            await pong

    assert without.status_code == 401
    assert without.headers["www-authenticate"] == "Bearer"
    assert with_token.json()["result"] == "hi "


@pytest.mark.parametrize(("level", "shown"), [(None, False), ("INFO", True)])
async def test_the_level_of_other_loggers_is_a_setting_and_warning_if_unset(
    tmp_path: Path, level: str | None, shown: bool
) -> None:
    settings = {} if level is None else {"AK_LOGGING__SYSTEM__LEVEL": level}
    app = APPS / "logging_app.py"
    async with serving(tmp_path, str(app), settings=settings) as server, server.client() as client:
        await client.post(CHAT, json={"prompt": "x", "session_id": "s"})
        messages = {entry["message"] for entry in server.events("library.message")}

    assert ("an agent's remark" in messages) is shown
    assert "an agent's warning" in messages


@pytest.mark.parametrize(("level", "shown"), [(None, True), ("warning", False)])
async def test_the_level_of_our_own_loggers_is_a_setting_and_info_if_unset(
    tmp_path: Path, level: str | None, shown: bool
) -> None:
    settings = {} if level is None else {"AK_LOGGING__AK__LEVEL": level}

    # An address of nobody (RFC 5737) ends it once it has logged.
    ended = await run(tmp_path, *dev(), settings={**settings, "AK_API__HOST": "203.0.113.1"})

    assert ("process.starting" in ended.stderr) is shown


async def test_sync_agents_get_as_many_threads_as_are_set(tmp_path: Path) -> None:
    settings = {"AK_EXECUTION__SYNC_AGENT_THREADS": "1", "AK_EXECUTION__TURN_TIMEOUT": "0.5"}
    async with (
        serving(tmp_path, *dev(), settings=settings) as server,
        server.client() as client,
    ):
        headers = {"prefer": "respond-async, wait=20"}
        body = {"prompt": "x", "session_id": "s1", "agent": "blocking"}
        blocked = await client.post(CHAT, json=body, headers=headers)  # keeps the only thread
        body = {"prompt": "x", "session_id": "s2", "agent": "upper"}
        other = await client.post(CHAT, json=body, headers=headers)

    assert blocked.status_code == 504
    assert other.status_code in (500, 504)


@pytest.mark.parametrize(
    "module",
    ["gateway.main", "pipeline.entry", "request_handler.main", "responder.main", "runner.main"],
)
async def test_a_process_without_a_grpc_port_does_not_even_load_grpc(
    tmp_path: Path, module: str
) -> None:
    code = f"import sys, turnline.{module}; sys.exit('grpc' in sys.modules)"

    ended = await run(tmp_path, "-c", code)

    assert ended.code == 0, ended.stderr
