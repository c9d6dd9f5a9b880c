"""Agents written in Go and in TypeScript, in processes of their own, behind the whole pipeline."""

import asyncio
import json
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import httpx
import pytest
import pytest_asyncio

from agent_hosts import build
from e2e.process import Server, dev, serving
from turnline.testing.missing import missing
from turnline.testing.servers.process import end_with_parent, free_ports
from turnline.v1 import agent_service_pb2 as pb
from turnline.v1.agent_service_pb2_grpc import AgentServiceStub

# The first test of a host waits for its compiler.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]

AGENTS = Path(build.__file__).with_name("agents.py")
CHAT = "/api/v1/chat"
DEADLINE = 60.0
NEEDS = {"go": "go", "typescript": "npm"}


@dataclass(slots=True)
class Installed:
    """A host that can be killed and started again at the same address, and its pipeline."""

    command: Sequence[str]
    port: int
    host: asyncio.subprocess.Process
    pipeline: Server

    async def ask(self, prompt: str, session: str) -> httpx.Response:
        async with self.pipeline.client() as client:
            return await client.post(CHAT, json={"prompt": prompt, "session_id": session})

    async def kill(self) -> None:
        self.host.send_signal(signal.SIGKILL)
        await self.host.wait()

    async def start(self) -> None:
        self.host = await started(self.command, self.port)

    @asynccontextmanager
    async def events(self, prompt: str) -> AsyncIterator[AsyncIterator[dict[str, object]]]:
        """Give the events of a turn's stream."""
        headers = {"accept": "text/event-stream"}
        body = {"prompt": prompt, "session_id": f"s-{prompt}"}
        async with (
            self.pipeline.client() as client,
            client.stream("POST", CHAT, json=body, headers=headers) as answer,
        ):
            yield parsed(answer)


async def parsed(answer: httpx.Response) -> AsyncIterator[dict[str, object]]:
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def said(event: dict[str, object]) -> str:
    """Give the piece of the answer that an event brings; empty for others."""
    return str(event.get("delta", ""))


async def hanging(events: AsyncIterator[dict[str, object]]) -> dict[str, object]:
    """Read on until the agent has said that it hangs; give the event that says so."""
    async for event in events:
        if "HANG" in said(event):
            return event
    raise AssertionError


async def started(command: Sequence[str], port: int) -> asyncio.subprocess.Process:
    """Start a host and wait until it listens."""
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--listen", f"127.0.0.1:{port}"),
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=end_with_parent,
    )
    assert await said_by(process) == f"listening on 127.0.0.1:{port}"
    return process


async def said_by(host: asyncio.subprocess.Process) -> str:
    """Wait for the next line that a host prints."""
    assert host.stdout is not None
    async with asyncio.timeout(DEADLINE):
        return (await host.stdout.readline()).decode().rstrip()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=sorted(build.HOSTS))
async def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installed]:
    """Build a host, and run it and a pipeline whose one agent it has."""
    language: str = request.param
    if shutil.which(NEEDS[language]) is None:
        missing(f"{NEEDS[language]} is not on the PATH: no host in {language} can be built")
    command = build.HOSTS[language](tmp_path_factory.mktemp(language))
    [port] = free_ports(1)
    directory = tmp_path_factory.mktemp("pipeline")
    settings = {"AGENT_HOST": f"127.0.0.1:{port}"}
    async with serving(directory, *dev(AGENTS), settings=settings) as pipeline:
        made = Installed(command, port, await started(command, port), pipeline)
        try:
            yield made
        finally:
            if made.host.returncode is None:
                await made.kill()


async def test_turns_are_answered_with_history_kept_by_the_pipeline(installed: Installed) -> None:
    answers = [await installed.ask(f"say it {number}", "s1") for number in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["result"] for answer in answers] == ["SAY IT 0", "SAY IT 1"]
    assert [answer.json()["turns"] for answer in answers] == [1, 2]


async def test_words_are_streamed_as_they_are_said(installed: Installed) -> None:
    async with asyncio.timeout(DEADLINE), installed.events("one two") as events:
        seen = [event async for event in events]

    assert "".join(said(event) for event in seen) == "ONE TWO"
    assert seen[-1]["done"] is True


async def test_a_refusal_of_the_agent_is_the_callers_answer(installed: Installed) -> None:
    answer = await installed.ask("the forbidden word", "s2")

    assert answer.status_code == 403
    assert answer.json()["detail"]["error"] == "That is not said here"


async def test_a_turn_whose_host_is_killed_is_answered_once_by_the_next_one(
    installed: Installed,
) -> None:
    prompt = "say hang"
    async with asyncio.timeout(DEADLINE), installed.events(prompt) as events:
        await hanging(events)
        await installed.kill()
        await installed.start()
        rest = [event async for event in events]

    assert rest[-1]["done"] is True
    assert rest[-1].get("error") is None
    again = await installed.ask("and now", f"s-{prompt}")
    assert again.json()["turns"] == 2


async def test_a_turn_waits_for_a_host_that_is_away(installed: Installed) -> None:
    await installed.kill()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(installed.ask("anybody there", "s3"))
        while not installed.pipeline.events("turn.admitted"):  # noqa: ASYNC110 - told by a file
            await asyncio.sleep(0.02)
        await installed.start()

    assert asked.result().json()["result"] == "ANYBODY THERE"


async def test_a_cancelled_turn_stops_at_the_host_and_frees_its_session(
    installed: Installed,
) -> None:
    prompt = "please hang"
    async with asyncio.timeout(DEADLINE), installed.events(prompt) as events:
        event = await hanging(events)
        async with installed.pipeline.client() as client:
            told = await client.delete(CHAT, params={"request_id": str(event["request_id"])})
        rest = [event async for event in events]

    assert told.status_code == 202
    assert rest[-1]["done"] is True
    assert await said_by(installed.host) == f"left: {prompt}"
    after = await installed.ask("and now", f"s-{prompt}")
    assert after.json()["turns"] == 1


async def test_the_host_says_which_agents_it_has(installed: Installed) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{installed.port}") as channel:
        listed = await AgentServiceStub(channel).ListAgents(
            pb.ListAgentsRequest(), timeout=DEADLINE, wait_for_ready=True
        )

    assert [agent.name for agent in listed.agents] == ["shout"]
