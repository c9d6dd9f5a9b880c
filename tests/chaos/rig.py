"""A pipeline whose runners can be killed and replaced, over one transport and its stores."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chaos.faults import Fault, FaultyQueue, FaultySessions, World
from chaos.oracle import History, Run
from turnline.agent import AgentRegistry, FatalAgentError, Reply, Turn, agent
from turnline.frontdoor import Admission, Admitted, Submission
from turnline.hosting import Backoff, ConsumeLoop, ConsumeOptions, LeaseKeeper
from turnline.protocol import BEGINNING, ChatRequest, DeliveryMode, ReplyKey, SessionKey
from turnline.protocol.clock import Clock, SystemClock
from turnline.responder.handler import AnswerHandler, ResponderOptions
from turnline.responder.signals import ResponderSignals
from turnline.runner.handler import RunnerOptions, TurnHandler
from turnline.runner.publish import Patience, Publisher
from turnline.runner.signals import RunnerSignals
from turnline.store import New, StoredReply
from turnline.store.memory import (
    MemoryResponseOptions,
    MemoryResponseStore,
    MemorySessionOptions,
    MemorySessionStore,
)
from turnline.telemetry import Metrics, configure_tracing
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

LEASE_SECONDS = 0.5
ANSWER_SECONDS = 20.0
MAX_ATTEMPTS = 3
QUEUES = InMemoryOptions(ack_wait=LEASE_SECONDS)

Speak = Callable[[Turn], AsyncIterator[str]]


async def three_words(turn: Turn) -> AsyncIterator[str]:
    """The usual agent of these tests: streams its prompt's echo in three pieces."""
    for index in range(3):
        await asyncio.sleep(0)
        yield f"{turn.prompt}-{index} "


@dataclass(slots=True)
class Rig:
    """Stores and queues that outlive runners, and what was seen of them."""

    transport: InMemoryTransport
    replies: MemoryResponseStore
    sessions: MemorySessionStore
    clock: Clock
    tasks: asyncio.TaskGroup
    admission: Admission
    history: History = field(default_factory=History)
    speak: Speak = three_words
    conclude: Callable[[Turn], Reply] | None = None
    agents: AgentRegistry | None = None
    worlds: list[World] = field(default_factory=list)

    async def submit(
        self, session_id: str, request_id: str, *, prompt: str = "", budget: float = 60.0
    ) -> Admitted:
        """Have a turn admitted, and note it as accepted."""
        admitted = await self.admission.submit(
            Submission(
                session_id=session_id,
                request_id=request_id,
                request=ChatRequest(prompt=prompt or request_id),
                delivery_mode=DeliveryMode.KEEP_STREAM,
                budget=budget,
            )
        )
        self.history.accepted.append((session_id, request_id))
        return admitted

    async def answer(self, admitted: Admitted) -> StoredReply:
        """Read a turn's stream to its end and note what was seen."""
        items = []
        async with asyncio.timeout(ANSWER_SECONDS):
            async for item in self.replies.stream(admitted.reply_key, BEGINNING):
                items.append(item)
        self.history.streams[admitted.request_id] = items
        reply = items[-1]
        assert isinstance(reply, StoredReply)
        self.history.replies[admitted.request_id] = reply
        return reply

    async def answered_with(self, key: ReplyKey, kind: type[object]) -> None:
        """Wait until the stored answer is of a kind: a replaced end notifies nobody."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                reply = await self.replies.get(key)
                if isinstance(reply, StoredReply) and isinstance(reply.payload, kind):
                    return
                await asyncio.sleep(0.005)

    async def note_histories(self) -> History:
        """Note what each session's history holds at the end, and give the whole record."""
        for session_id in {session_id for session_id, _ in self.history.accepted}:
            begun = await self.sessions.begin_turn(
                SessionKey("", session_id), "look", lease=LEASE_SECONDS
            )
            assert isinstance(begun, New), begun
            await self.sessions.abandon_turn(begun.claim)
            self.history.histories[session_id] = [
                record.request_id for record in begun.session.history
            ]
        return self.history

    def start_runner(self, fault: Fault | None = None, *, concurrency: int = 50) -> World:
        """Start a runner; it runs until it dies or the rig ends."""
        world = World(fault)
        self.worlds.append(world)
        self.tasks.create_task(self._run(world, concurrency))
        return world

    def start_draining_runner(self) -> tuple[asyncio.Event, asyncio.Task[None]]:
        """Start a runner that drains, with hardly any grace, when its event is set."""
        world, stop = World(), asyncio.Event()
        self.worlds.append(world)
        return stop, self.tasks.create_task(self._run(world, 10, stop))

    async def _run(self, world: World, concurrency: int, stop: asyncio.Event | None = None) -> None:
        """Run a runner until its world ends or it drained, then cancel what is left of it."""
        metrics = Metrics(process=False)
        keeper = LeaseKeeper(metrics)
        handler = TurnHandler(
            agents=self.agents or self._agents(world),
            sessions=FaultySessions(self.sessions, world),
            publisher=Publisher(
                FaultyQueue(self.transport.output, world),
                Patience(seconds=2.0, backoff=Backoff(base=0.005, cap=0.05)),
            ),
            keeper=keeper,
            clock=self.clock,
            signals=RunnerSignals(metrics, configure_tracing(None, "test"), self.clock),
            options=RunnerOptions(
                max_attempts=MAX_ATTEMPTS,
                lease_seconds=LEASE_SECONDS,
                turn_timeout=60.0,
                store_timeout=0.3,
            ),
        )
        loop = ConsumeLoop(
            queue=FaultyQueue(self.transport.input, world),
            handler=handler,
            answer_exhausted=handler.answer_exhausted,
            keeper=keeper,
            metrics=metrics,
            options=ConsumeOptions(
                name="input",
                consumers=2,
                max_concurrency=concurrency,
                lease_seconds=LEASE_SECONDS,
                max_attempts=MAX_ATTEMPTS,
                backoff=Backoff(base=0.01, cap=0.05),
                settle_timeout=0.3,
            ),
        )
        async with asyncio.TaskGroup() as parts:
            kept = parts.create_task(keeper.run())
            worked = parts.create_task(loop.run(stop or asyncio.Event(), grace=0.01))
            died = parts.create_task(_wait(world.died))
            await asyncio.wait([worked, died], return_when=asyncio.FIRST_COMPLETED)
            for part in (worked, died, kept):
                part.cancel()

    def _agents(self, world: World) -> AgentRegistry:
        registry = AgentRegistry()

        @agent("echo", registry=registry)
        async def echo(turn: Turn) -> AsyncIterator[str | Reply]:
            run = Run(turn.session_id, turn.request_id, self.history.tick())
            self.history.runs.append(run)
            async for text in self.speak(turn):
                if world.died.is_set():
                    await asyncio.Event().wait()
                yield text
            if "refuse" in turn.prompt:
                raise FatalAgentError("no", status_code=402)
            if not world.died.is_set():
                run.ended = self.history.tick()
            if self.conclude is not None:
                yield self.conclude(turn)

        return registry


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


@asynccontextmanager
async def open_rig(
    queues: InMemoryOptions = QUEUES,
    *,
    replies_kept: int = 10_000,
    clock: Clock | None = None,
) -> AsyncIterator[Rig]:
    """Open queues, stores and a responder; runners are the test's to start."""
    clock = clock or SystemClock()
    transport = InMemoryTransport(queues, clock)
    replies, sessions = (
        MemoryResponseStore(MemoryResponseOptions(max_replies=replies_kept), clock),
        MemorySessionStore(MemorySessionOptions(), clock),
    )
    admission = Admission(
        queue=transport.input,
        replies=replies,
        sessions=sessions,
        clock=clock,
        accepting=lambda: True,
    )
    metrics = Metrics(process=False)
    keeper = LeaseKeeper(metrics)
    responder = ConsumeLoop(
        queue=transport.output,
        handler=AnswerHandler(
            replies=replies,
            push=None,
            signals=ResponderSignals(metrics, configure_tracing(None, "test"), clock),
            options=ResponderOptions(default_mode=DeliveryMode.KEEP),
        ),
        keeper=keeper,
        metrics=metrics,
        options=ConsumeOptions(
            name="output",
            consumers=1,
            max_concurrency=100,
            lease_seconds=LEASE_SECONDS,
            max_attempts=MAX_ATTEMPTS,
            backoff=Backoff(base=0.01),
        ),
    )
    async with transport, asyncio.TaskGroup() as tasks:
        rig = Rig(transport, replies, sessions, clock, tasks, admission)
        parts = [
            tasks.create_task(keeper.run()),
            tasks.create_task(responder.run(asyncio.Event(), grace=0.0)),
        ]
        yield rig
        for world in rig.worlds:
            world.die()
        for part in parts:
            part.cancel()
