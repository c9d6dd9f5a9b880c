"""The `turnline` command against real processes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from signal import SIGTERM

import pytest
from click.testing import CliRunner, Result

from e2e.process import ADMIN_TOKEN, APPS, Server, cli, dev, run, serving, spawned
from e2e.proxy import proxied
from turnline.cli.main import main

CHAT = "/api/v1/chat"
WAIT_SECONDS = 30.0
AGENTS = str(APPS / "e2e_agents.py")

GREETER = """
from turnline.agent import Turn, agent

@agent("greeter")
async def greeter(turn: Turn) -> str:
    return "{greeting}, " + turn.prompt
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    settings = {
        "AK_EXECUTION__QUEUES__TYPE": "in_memory",
        "AK_EXECUTION__QUEUES__INPUT__MAX_RECEIVE_COUNT": "1",
    }
    async with serving(tmp_path / "app", *dev(), settings=settings) as server:
        yield server


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that only a file of another process tells."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)


async def command(server: Server, *args: str) -> Result:
    """Run an operator's command; the server is another process."""
    everything = [*args, "--url", server.url, "--token", ADMIN_TOKEN]
    return await asyncio.to_thread(CliRunner().invoke, main, everything)


async def dlq(server: Server, *args: str, code: int = 0) -> str:
    line = ["dlq", "--url", server.url, "--token", ADMIN_TOKEN, *args]
    result = await asyncio.to_thread(CliRunner().invoke, main, line)
    assert result.exit_code == code, result.output
    return result.output


# --- dev and serve ------------------------------------------------------------------------------


async def test_dev_says_where_it_serves_which_agents_once_it_is_ready(server: Server) -> None:
    [line] = server.stdout.splitlines()

    assert line.startswith("Turnline serves echo, hold, ")
    assert f" on {server.url} " in line


async def test_dev_answers_with_the_edited_agent(tmp_path: Path) -> None:
    file = tmp_path / "agents" / "greeter_agent.py"
    await asyncio.to_thread(file.parent.mkdir)
    await asyncio.to_thread(file.write_text, GREETER.format(greeting="Hello"))
    arguments = cli("dev", "--port", "0", str(file))
    async with serving(tmp_path / "app", *arguments) as server:
        before = await greet(server)
        await asyncio.to_thread(file.write_text, GREETER.format(greeting="Goodbye"))
        await until(lambda: len(server.events("process.ready")) == 2)
        await server.is_ready()
        after = await greet(server)
        server.signal(SIGTERM)
        ended = await server.ended()

    assert (before, after) == ("Hello, you", "Goodbye, you")
    assert "reloading: 1 file(s) changed" in ended.stderr
    assert len(server.events("process.stopped")) == 2
    assert ended.code == 0


async def greet(server: Server) -> str:
    async with server.client() as client:
        answer = await client.post(CHAT, json={"prompt": "you", "session_id": "s"})
    result: str = answer.json()["result"]
    return result


async def test_dev_listens_on_loopback_unless_told_otherwise(tmp_path: Path) -> None:
    # An empty variable counts as unset.
    async with serving(tmp_path, *dev(), settings={"AK_API__HOST": ""}) as server:
        assert f"on http://127.0.0.1:{server.port} " in server.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty_agent.py registers no agent"),
        (
            "from turnline.agent import agent\n"
            "@agent('a')\ndef a(turn): return ''\n"
            "@agent('a')\ndef b(turn): return ''\n",
            "agent 'a': this name is registered already",
        ),
    ],
)
async def test_dev_says_what_is_wrong_with_a_file(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "empty_agent.py"
    await asyncio.to_thread(file.write_text, text)

    ended = await run(tmp_path, *dev(file))

    assert ended.code == 1
    assert reason in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_serve_all_runs_the_pipeline_with_the_agents_of_a_file(tmp_path: Path) -> None:
    arguments = cli("serve", "all", "--agents", AGENTS)
    async with serving(tmp_path, *arguments) as server, server.client() as client:
        answer = await client.post(CHAT, json={"prompt": "x", "session_id": "s"})

    assert answer.json()["result"] == "x "


async def test_serve_tells_why_a_part_of_its_own_cannot_run(tmp_path: Path) -> None:
    ended = await run(tmp_path, *cli("serve", "runner", "--agents", AGENTS))

    assert ended.code == 78
    assert "in_memory lives inside one process" in ended.stderr


# --- chat ---------------------------------------------------------------------------------------


async def test_chat_prints_the_answer_to_one_question(server: Server, tmp_path: Path) -> None:
    arguments = cli("chat", "--url", server.ws_url, "hello there")

    ended = await run(tmp_path / "chat", *arguments)

    assert (ended.code, ended.stdout) == (0, "hello there \n")


async def test_chat_takes_the_path_of_its_url_and_sends_the_token_as_it_is_told(
    server: Server, tmp_path: Path
) -> None:
    arguments = ("--agent", "counter", "--token", "you & me", "--token-in", "query", "one")

    ended = await run(tmp_path / "chat", *cli("chat", "--url", f"{server.ws_url}/ws/", *arguments))

    assert ended.stdout == "count=1 history=[] user=you & me\n"


async def test_chat_asks_line_by_line_in_one_session(server: Server, tmp_path: Path) -> None:
    arguments = cli("chat", "--url", server.ws_url, "--agent", "counter", "--token", "me")

    ended = await run(tmp_path / "chat", *arguments, stdin=b"one\n\ntwo\n")

    assert ended.code == 0
    assert ended.stdout.splitlines() == [
        "count=1 history=[] user=me",
        "count=2 history=[one] user=me",
    ]


async def test_chat_exits_1_when_the_answer_is_an_error(server: Server, tmp_path: Path) -> None:
    arguments = cli("chat", "--url", server.ws_url, "--agent", "refusing", "x")

    ended = await run(tmp_path / "chat", *arguments)

    assert (ended.code, ended.stdout.strip()) == (1, "")
    assert "[no credit for x]" in ended.stderr


async def test_chat_goes_on_where_its_connection_was_cut(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with proxied(server.port) as proxy:
        url = f"ws://127.0.0.1:{proxy.port}"
        arguments = cli("chat", "--url", url, "--agent", "hold", str(gate))
        async with spawned(tmp_path / "chat", *arguments) as chat:
            await until(lambda: chat.stdout == "holding ")
            proxy.cut()
            await asyncio.to_thread(gate.touch)
            ended = await chat.ended()

    assert (ended.code, ended.stdout) == (0, "holding done\n")
    assert "reconnecting" in ended.stderr
    assert proxy.accepted == 2


async def test_chat_gives_up_on_a_server_that_is_not_there(tmp_path: Path) -> None:
    ended = await run(tmp_path, *cli("chat", "--url", "ws://127.0.0.1:1", "x"))

    assert ended.code == 1
    assert "lost the server" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_chat_does_not_try_again_when_it_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path / "app", str(APPS / "io_app.py")) as server:
        ended = await run(tmp_path / "chat", *cli("chat", "--url", server.ws_url, "x"))

    assert ended.code == 1
    assert "the server refused" in ended.stderr
    assert "reconnecting" not in ended.stderr


# --- queues and dlq -----------------------------------------------------------------------------


async def test_queues_shows_what_waits_and_runs(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with server.client() as client, asyncio.TaskGroup() as tasks:
        body = {"prompt": str(gate), "session_id": "s", "agent": "hold"}
        tasks.create_task(client.post(CHAT, json=body))
        await server.has_queued(running=1, waiting=0)
        shown = await command(server, "queues")
        await asyncio.to_thread(gate.touch)

    header, first, second = [line.split() for line in shown.output.splitlines()]
    assert header == ["queue", "waiting", "in", "flight", "dead", "oldest"]
    assert first[:4] == ["input", "0", "1", "0"]
    assert second[:4] == ["output", "0", "0", "0"]


async def test_a_dead_letter_is_listed_shown_and_redriven(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    body = {"prompt": str(gate), "session_id": "s1", "request_id": "r1", "agent": "gated"}
    async with server.client() as client:
        failed = await client.post(CHAT, json=body)
        listed = await dlq(server, "list")
        letter_id = listed.split()[0]
        shown = await dlq(server, "show", letter_id)
        await asyncio.to_thread(gate.touch)
        redriven = await dlq(server, "redrive", letter_id)
        await server.has_queued(running=0, waiting=0)
        answer = await client.get(CHAT, params={"request_id": "r1", "wait": "5"})
        left = await dlq(server, "list")

    assert failed.status_code == 500
    assert "request r1 session s1" in listed
    assert "agent_failed" in listed
    assert str(gate) not in listed
    details, raw = shown.rsplit("raw: ", 1)
    assert json.loads(details)["request_id"] == "r1"
    assert str(gate) in raw
    assert redriven == f"redriven: {letter_id}\n"
    assert answer.json()["result"] == "open"
    assert left == "no dead letters on input\n"


async def test_dead_letters_are_purged_one_by_one_or_all(server: Server) -> None:
    async with server.client() as client:
        for index in range(3):
            body = {"prompt": "x", "session_id": f"s{index}", "agent": "broken"}
            await client.post(CHAT, json=body)
    first = (await dlq(server, "list", "--limit", "1")).split()[0]
    neither = await dlq(server, "purge", code=2)
    one = await dlq(server, "purge", first)
    gone = await dlq(server, "show", first, code=1)
    rest = await dlq(server, "purge", "--all")

    assert "give either a LETTER_ID or --all" in neither
    assert (one, rest) == ("purged: 1\n", "purged: 2\n")
    assert "404" in gone


async def test_an_operator_without_the_token_is_refused(server: Server) -> None:
    line = ["queues", "--url", server.url, "--token", "wrong"]
    result = await asyncio.to_thread(CliRunner().invoke, main, line)

    assert result.exit_code == 1
    assert "401: invalid admin token" in result.output


async def test_a_process_without_admin_routes_is_told_from_one_without_the_letter(
    server: Server,
) -> None:
    line = ["dlq", "--url", f"{server.url}/elsewhere", "--token", ADMIN_TOKEN, "list"]
    elsewhere = await asyncio.to_thread(CliRunner().invoke, main, line)

    assert elsewhere.exit_code == 1
    assert "404: no admin routes here; give the URL of a request handler" in elsewhere.output
    assert "no dead letter" in await dlq(server, "show", "nobody", code=1)
