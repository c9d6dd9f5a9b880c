"""Agents behind gRPC behave as those of the process do, and their host may fail in every way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from typing_extensions import override

from turnline.agent import (
    AgentRegistry,
    FatalAgentError,
    Reply,
    RetryableAgentError,
    Turn,
    agent,
)
from turnline.agent.remote import AgentHost, RemoteAgents, RemoteOptions
from turnline.errors import ConfigurationError
from turnline.protocol import Attachment, ChatEvent, EventType, TurnRecord
from turnline.testing.servers.process import free_ports
from turnline.testing.servers.tls import self_signed
from turnline.v1 import agent_service_pb2 as pb
from turnline.v1.agent_service_pb2_grpc import (
    AgentServiceServicer,
    AgentServiceStub,
    add_AgentServiceServicer_to_server,
)
from turnline.v1.chunk_pb2 import EVENT_TYPE_TEXT_DELTA

DEADLINE = 20.0
SILENCE = 1.0
RECORD = TurnRecord(
    request_id="r0", prompt="hi", reply="ho", agent="a", at=1_700_000_000.5, items=({"n": 1},)
)
SEEN: list[Turn] = []


def a_turn() -> Turn:
    return Turn(request_id="r1", session_id="s1", prompt="hello")


def agents_of_tests() -> AgentRegistry:
    registry = AgentRegistry()

    @agent("streams", description="says it in two pieces", registry=registry)
    async def streams(turn: Turn) -> AsyncIterator[str | Reply]:
        SEEN.append(turn)
        yield "you said "
        yield turn.prompt
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        yield Reply(text="", status_code=201, extra={"k": [1]}, items=({"tool": "t"},))

    @agent("clears", registry=registry)
    async def clears(turn: Turn) -> str:
        turn.state.clear()
        return ""

    @agent("slow", registry=registry)
    async def slow(_: Turn) -> str:
        await asyncio.sleep(2 * SILENCE)
        return "at last"

    @agent("refuses", registry=registry)
    async def refuses(_: Turn) -> str:
        raise FatalAgentError("not for you", status_code=403)

    @agent("limited", registry=registry)
    async def limited(_: Turn) -> str:
        raise RetryableAgentError("rate", retry_after=2.5, spends_attempt=False)

    @agent("breaks", registry=registry)
    async def breaks(_: Turn) -> str:
        raise ValueError("secret")

    return registry


@dataclass(slots=True)
class Hosted:
    """A host under test, and a runner's view of it."""

    port: int
    registry: AgentRegistry

    async def run(self, name: str, turn: Turn) -> list[ChatEvent | Reply]:
        async with asyncio.timeout(DEADLINE):
            return [item async for item in self.registry.get(name).run(turn)]

    async def error(self, name: str) -> Exception:
        with pytest.raises((FatalAgentError, RetryableAgentError)) as raised:
            await self.run(name, a_turn())
        return raised.value


@asynccontextmanager
async def serving(
    servicer: AgentServiceServicer, port: int = 0, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[int]:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    add_AgentServiceServicer_to_server(servicer, server)
    address = f"127.0.0.1:{port}"
    if credentials is None:
        bound = server.add_insecure_port(address)
    else:
        bound = server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)


@asynccontextmanager
async def looking_at(
    port: int, *names: str, options: RemoteOptions | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Hosted]:
    registry = AgentRegistry()
    chosen = options or RemoteOptions(silence=SILENCE)
    remote = RemoteAgents(f"{host}:{port}", names, options=chosen, registry=registry)
    try:
        yield Hosted(port, registry)
    finally:
        await remote.close()


@asynccontextmanager
async def hosted(*names: str) -> AsyncIterator[Hosted]:
    host = AgentHost(agents_of_tests(), heartbeat=SILENCE / 10)
    async with serving(host) as port, looking_at(port, *names) as seen:
        yield seen


class Scripted(AgentServiceServicer):
    """A host that says what a test wants, then ends the call or says no more."""

    def __init__(self, *responses: pb.RunResponse, then: grpc.StatusCode | None = None) -> None:
        self.responses = responses
        self.then = then
        self.hangs = False
        self.left = asyncio.Event()

    @override
    async def Run(
        self, request: pb.RunRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[pb.RunResponse]:
        try:
            for response in self.responses:
                yield response
            if self.then is not None:
                await context.abort(self.then, "said the test")
            if self.hangs:
                await asyncio.Event().wait()
        finally:
            self.left.set()


def delta(text: str) -> pb.RunResponse:
    response = pb.RunResponse()
    response.event.type = EVENT_TYPE_TEXT_DELTA
    response.event.content = text
    return response


async def test_what_an_agent_streams_and_answers_arrives_as_it_was() -> None:
    async with hosted("streams") as host:
        turn = replace(a_turn(), state={"turns": 1})
        items = await host.run("streams", turn)

    texts = [each.content for each in items if isinstance(each, ChatEvent)]
    assert "".join(texts) == "you said hello"
    assert items[-1] == Reply(
        text="you said hello", status_code=201, extra={"k": [1]}, items=({"tool": "t"},)
    )
    assert turn.state == {"turns": 2}


async def test_the_agent_sees_the_whole_turn() -> None:
    turn = replace(
        a_turn(),
        history=(RECORD,),
        state={"a": {"b": [1, 2.5, None]}},
        files=(Attachment(data="aGk=", name="f", mime_type="text/plain"),),
        images=(Attachment(data="https://x/y.png"),),
        user_id="u",
        group_id="g",
        thread_name="t",
        attempt=3,
        deadline=4_000_000_000.25,
        extra={"k": "v"},
    )
    async with hosted("streams") as host:
        SEEN.clear()
        await host.run("streams", turn)

    [seen] = SEEN
    for name in ("request_id", "session_id", "prompt", "user_id", "group_id", "thread_name"):
        assert getattr(seen, name) == getattr(turn, name), name
    for name in ("history", "files", "images", "attempt", "deadline", "extra"):
        assert getattr(seen, name) == getattr(turn, name), name
    assert seen.state["a"] == {"b": [1, 2.5, None]}


async def test_a_state_that_its_agent_cleared_is_empty() -> None:
    turn = replace(a_turn(), state={"a": 1})
    async with hosted("clears") as host:
        await host.run("clears", turn)

    assert turn.state == {}


async def test_an_agent_that_is_silent_for_long_is_waited_for_while_its_host_gives_signs() -> None:
    async with hosted("slow") as host:
        assert (await host.run("slow", a_turn()))[-1] == Reply(text="at last")


async def test_an_agents_refusal_is_its_answer() -> None:
    async with hosted("refuses") as host:
        error = await host.error("refuses")

    assert isinstance(error, FatalAgentError)
    assert (error.message, error.status_code) == ("not for you", 403)


async def test_a_rate_limit_says_how_long_to_wait_and_spares_the_attempt() -> None:
    async with hosted("limited") as host:
        error = await host.error("limited")

    assert isinstance(error, RetryableAgentError)
    assert (error.retry_after, error.spends_attempt) == (2.5, False)


async def test_what_an_agent_did_not_mean_to_raise_is_tried_again_and_tells_no_detail() -> None:
    async with hosted("breaks") as host:
        error = await host.error("breaks")

    assert isinstance(error, RetryableAgentError)
    assert error.spends_attempt
    assert "secret" not in str(error)


async def test_an_agent_its_host_has_not_is_not_tried_again() -> None:
    async with hosted("no-such") as host:
        error = await host.error("no-such")

    assert isinstance(error, FatalAgentError)
    assert str(host.port) not in error.message


async def test_the_host_says_which_agents_it_has() -> None:
    async with (
        hosted() as host,
        grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel,
    ):
        listed = await AgentServiceStub(channel).ListAgents(pb.ListAgentsRequest())

    assert [each.name for each in listed.agents][:2] == ["streams", "clears"]
    assert listed.agents[0].description == "says it in two pieces"


async def test_leaving_a_turn_stops_its_agent_at_the_host() -> None:
    stopped = asyncio.Event()
    registry = AgentRegistry()

    @agent("endless", registry=registry)
    async def endless(_: Turn) -> AsyncIterator[str]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with serving(AgentHost(registry)) as port, looking_at(port, "endless") as host:
        items = host.registry.get("endless").run(a_turn())
        async with asyncio.timeout(DEADLINE):
            await anext(items)
            await items.aclose()  # type: ignore[attr-defined] # a generator, by its contract
            await stopped.wait()


async def test_a_host_that_falls_silent_has_failed_and_its_call_is_cancelled() -> None:
    script = Scripted(delta("a"))
    script.hangs = True
    async with serving(script) as port, looking_at(port, "x") as host:
        error = await host.error("x")
        async with asyncio.timeout(DEADLINE):
            await script.left.wait()

    assert isinstance(error, RetryableAgentError)
    assert error.spends_attempt


@pytest.mark.parametrize(
    ("code", "spends"),
    [
        (None, True),
        (grpc.StatusCode.UNAVAILABLE, True),
        (grpc.StatusCode.INTERNAL, True),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, False),
    ],
)
async def test_a_call_that_ends_without_an_answer_is_tried_again(
    code: grpc.StatusCode | None, spends: bool
) -> None:
    async with serving(Scripted(delta("a"), then=code)) as port, looking_at(port, "x") as host:
        error = await host.error("x")

    assert isinstance(error, RetryableAgentError)
    assert error.spends_attempt is spends


async def test_a_host_that_does_not_know_the_service_is_not_tried_again() -> None:
    async with serving(AgentServiceServicer()) as port, looking_at(port, "x") as host:
        assert isinstance(await host.error("x"), FatalAgentError)


async def test_kinds_of_messages_that_are_newer_are_passed_over() -> None:
    answer = pb.RunResponse()
    answer.reply.text = "a"
    async with (
        serving(Scripted(pb.RunResponse.FromString(b"\xa2\x06\x00"), answer)) as port,
        looking_at(port, "x") as host,
    ):
        assert await host.run("x", a_turn()) == [Reply(text="a")]


async def test_an_event_that_nobody_can_read_ends_the_turn() -> None:
    broken = pb.RunResponse()
    broken.event.content = "of no type"
    async with serving(Scripted(broken)) as port, looking_at(port, "x") as host:
        assert isinstance(await host.error("x"), FatalAgentError)


async def test_a_turn_waits_for_a_host_that_is_away_and_loses_no_attempt() -> None:
    [port] = free_ports(1)
    async with looking_at(port, "streams") as host:
        error = await host.error("streams")
        assert isinstance(error, RetryableAgentError)
        assert not error.spends_attempt

        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(host.run("streams", a_turn()))
            async with serving(AgentHost(agents_of_tests()), port):
                assert isinstance((await asked)[-1], Reply)


async def test_a_host_is_reached_over_tls_and_by_nobody_it_does_not_trust(tmp_path: Path) -> None:
    identity = self_signed(tmp_path)
    pair = [(identity.key.read_bytes(), identity.certificate.read_bytes())]
    trusting = grpc.ssl_channel_credentials(identity.certificate.read_bytes())
    servicer = AgentHost(agents_of_tests())
    async with serving(servicer, credentials=grpc.ssl_server_credentials(pair)) as port:
        options = RemoteOptions(silence=SILENCE, credentials=trusting)
        async with looking_at(port, "streams", options=options, host="localhost") as host:
            assert isinstance((await host.run("streams", a_turn()))[-1], Reply)
        async with looking_at(port, "streams", host="localhost") as stranger:
            assert isinstance(await stranger.error("streams"), RetryableAgentError)


def test_a_name_that_is_taken_is_a_fault_of_the_configuration() -> None:
    registry = agents_of_tests()
    with pytest.raises(ConfigurationError):
        RemoteAgents("127.0.0.1:1", ["streams"], registry=registry)


async def test_an_event_keeps_every_field() -> None:
    event = ChatEvent(
        type=EventType.TOOL_CALL_START, tool_call_id="c", name="t", data={"x": [1, {}]}
    )
    registry = AgentRegistry()

    @agent("eventful", registry=registry)
    async def eventful(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
        yield event
        yield Reply(text="")

    async with serving(AgentHost(registry)) as port, looking_at(port, "eventful") as host:
        assert (await host.run("eventful", a_turn()))[0] == event


async def test_a_turn_that_no_message_can_carry_is_not_tried_again() -> None:
    async with hosted("streams") as host:
        with pytest.raises(FatalAgentError):
            await host.run("streams", replace(a_turn(), state={"n": 2**70}))
