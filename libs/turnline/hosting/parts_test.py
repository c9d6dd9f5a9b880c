"""Parts start and stop in the one right order, within the grace, and fail together."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from turnline.hosting import (
    Backoff,
    ConsumeLoop,
    ConsumeOptions,
    LeaseKeeper,
    Lifecycle,
    Parts,
    State,
    WebOptions,
    WebServer,
    run_parts,
)
from turnline.protocol import ChatReply, ChatRequest, Envelope
from turnline.protocol.clock import SystemClock
from turnline.telemetry import Metrics
from turnline.testing import FakeClock
from turnline.transport import Ack, Delivery, Queue, Settlement
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

DEADLINE = 10.0
QUESTION = Envelope(request_id="r1", session_id="s1", payload=ChatRequest(prompt="x"))
ANSWER = Envelope(request_id="r1", session_id="s1", payload=ChatReply(result="y"))


@dataclass(slots=True)
class Story:
    """What happened, in order."""

    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    said: list[str] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def on_ready(self) -> None:
        self.said.append("ready")
        self.ready.set()

    async def run(self, parts: Parts, *, grace: float = 5.0) -> None:
        async with asyncio.timeout(DEADLINE):
            await run_parts(parts, self.lifecycle, grace=grace, on_ready=self.on_ready)

    async def background(self) -> None:
        self.said.append("background began")
        try:
            await asyncio.Event().wait()
        finally:
            self.said.append("background ended")

    async def farewell(self) -> None:
        assert self.lifecycle.closing.is_set()
        self.said.append("farewell")


@pytest.fixture
async def transport() -> AsyncIterator[InMemoryTransport]:
    async with InMemoryTransport(InMemoryOptions(), SystemClock()) as transport:
        yield transport


@pytest.fixture
def story() -> Story:
    return Story()


def loop_over(queue: Queue, handler: object) -> ConsumeLoop:
    metrics = Metrics(process=False)
    options = ConsumeOptions(
        name="input",
        consumers=1,
        max_concurrency=10,
        lease_seconds=60.0,
        max_attempts=3,
        backoff=Backoff(base=0.0),
    )
    assert callable(handler)
    return ConsumeLoop(
        queue=queue, handler=handler, options=options, keeper=LeaseKeeper(metrics), metrics=metrics
    )


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


def web() -> WebServer:
    app = Starlette(routes=[Route("/hello", hello)])
    return WebServer(app, WebOptions(host="127.0.0.1", port=0))


async def test_a_drain_finishes_turns_lets_answers_out_says_farewell_and_closes(
    transport: InMemoryTransport, story: Story
) -> None:
    started = asyncio.Event()
    server = web()
    url = f"http://127.0.0.1:{server.port}/hello"

    async def run_turn(_: Delivery) -> Settlement:
        started.set()
        await story.lifecycle.draining.wait()
        story.said.append("turn ended")
        await transport.output.send(ANSWER)
        return Ack()

    async def take_answer(_: Delivery) -> Settlement:
        await FakeClock().run_ready()  # whoever does not wait for it is faster
        story.said.append("answer taken")
        return Ack()

    async def farewell() -> None:
        await story.farewell()
        async with httpx.AsyncClient() as client:
            story.said.append((await client.get(url)).text)

    parts = Parts(
        web=server,
        runner=loop_over(transport.input, run_turn),
        responder=loop_over(transport.output, take_answer),
        output=transport.output,
        background=[story.background],
        farewells=[farewell],
    )
    await transport.input.send(QUESTION)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(story.run(parts))
        await started.wait()
        await story.ready.wait()
        story.lifecycle.drain()

    assert story.said == [
        "background began",
        "ready",
        "turn ended",
        "answer taken",
        "farewell",
        "hello",
        "background ended",
    ]
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(url)


async def test_it_is_ready_only_when_the_server_answers(story: Story) -> None:
    server = web()
    url = f"http://127.0.0.1:{server.port}/hello"

    async with asyncio.TaskGroup() as tasks, httpx.AsyncClient() as client:
        tasks.create_task(story.run(Parts(web=server)))
        await story.ready.wait()
        state = story.lifecycle.state
        answer = await client.get(url)
        story.lifecycle.drain()

    assert (state, answer.text) == (State.READY, "hello")


async def test_a_drain_during_start_up_is_never_ready(story: Story) -> None:
    story.lifecycle.drain()

    await story.run(Parts(web=web(), farewells=[story.farewell]))

    assert story.said == ["farewell"]
    assert story.lifecycle.state is State.CLOSING


async def test_farewells_that_hang_do_not_outlast_the_grace(story: Story) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    story.lifecycle.drain()
    began = loop.time()

    await story.run(Parts(background=[story.background], farewells=[hang]), grace=0.1)

    assert loop.time() - began < 1.5
    assert story.said[-1] == "background ended"


async def test_turns_that_outlast_the_grace_are_handed_back(
    transport: InMemoryTransport, story: Story
) -> None:
    started = asyncio.Event()

    async def run_turn(_: Delivery) -> Settlement:
        started.set()
        await asyncio.Event().wait()
        return Ack()

    await transport.input.send(QUESTION)
    parts = Parts(runner=loop_over(transport.input, run_turn), farewells=[story.farewell])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(story.run(parts, grace=0.1))
        await started.wait()
        story.lifecycle.drain()

    stats = await transport.input.stats()
    assert (stats.waiting, stats.in_flight) == (1, 0)
    assert story.said == ["ready", "farewell"]


async def test_a_part_that_fails_ends_all(transport: InMemoryTransport, story: Story) -> None:
    async def fail() -> None:
        await story.ready.wait()
        raise RuntimeError("a part broke")

    async def never(_: Delivery) -> Settlement:
        return Ack()

    parts = Parts(
        web=web(),
        runner=loop_over(transport.input, never),
        background=[story.background, fail],
    )
    with pytest.raises(ExceptionGroup) as raised:
        await story.run(parts)

    assert raised.group_contains(RuntimeError, match="a part broke")
    assert story.said[-1] == "background ended"
