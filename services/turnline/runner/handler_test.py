"""Steps of a turn that the tests of whole pipelines (tests/chaos) do not single out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from turnline.agent import AgentRegistry, Turn, agent
from turnline.errors import Code, StoreUnavailableError, TransportUnavailableError
from turnline.hosting import Backoff, LeaseKeeper, alongside
from turnline.protocol import (
    ChatReply,
    ChatRequest,
    DeliveryMode,
    Envelope,
    Failure,
    SessionKey,
)
from turnline.protocol.clock import SystemClock
from turnline.runner.handler import RunnerOptions, TurnHandler
from turnline.runner.publish import Patience, Publisher
from turnline.runner.signals import RunnerSignals
from turnline.store import Begun, New, Outcome
from turnline.store.memory import MemorySessionOptions, MemorySessionStore
from turnline.telemetry import Metrics, captured_logs, configure_tracing
from turnline.transport import Ack, Bury, Release, Retry, Settlement
from turnline.transport.in_memory import InMemoryOptions, InMemoryQueue, InMemoryTransport

REQUEST = Envelope(request_id="r", session_id="s", payload=ChatRequest(prompt="a b c"))


class FlakyQueue(InMemoryQueue):
    """Refuses so many sends before it takes any.

    Attributes:
        refusing: how many it refuses yet.
    """

    refusing = 0

    async def send(self, envelope: Envelope) -> bool:
        if self.refusing and not isinstance(envelope.payload, ChatReply):
            self.refusing -= 1
            raise TransportUnavailableError("away")
        return await super().send(envelope)


class FlakySessions(MemorySessionStore):
    """Answers so many claims with an error."""

    failures = 0

    async def begin_turn(self, key: SessionKey, request_id: str, *, lease: float) -> Begun:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("away")
        return await super().begin_turn(key, request_id, lease=lease)


class Rig:
    """A turn handler over real queues and stores.

    Attributes:
        prompts: what the agent was asked, in order.
    """

    def __init__(self) -> None:
        clock = SystemClock()
        options = InMemoryOptions(max_bytes=4_000)
        self.transport = InMemoryTransport(InMemoryOptions(), clock)
        self.output = FlakyQueue(name="output", options=options, max_per_session=0, clock=clock)
        self.sessions = FlakySessions(MemorySessionOptions(), clock)
        self.metrics = Metrics(process=False)
        self.keeper = LeaseKeeper(self.metrics)
        self.prompts: list[str] = []
        self.handler = TurnHandler(
            agents=self._agents(),
            sessions=self.sessions,
            publisher=Publisher(self.output, Patience(seconds=0.0, backoff=Backoff(base=0.001))),
            keeper=self.keeper,
            clock=clock,
            signals=RunnerSignals(self.metrics, configure_tracing(None, "test"), clock),
            options=RunnerOptions(max_attempts=3, lease_seconds=5.0, turn_timeout=5.0),
        )

    def _agents(self) -> AgentRegistry:
        registry = AgentRegistry()

        @agent("echo", registry=registry)
        async def echo(turn: Turn) -> AsyncIterator[str]:
            self.prompts.append(turn.prompt)
            if turn.prompt == "fail":
                raise RuntimeError
            for word in turn.prompt.split():
                yield word

        return registry

    async def handle(self, envelope: Envelope) -> Settlement:
        """Have a request delivered and handled."""
        async with self.transport.input.consumer() as consumer:
            await self.transport.input.send(envelope)
            return await self.handler(await consumer.receive())

    async def published(self) -> list[Envelope]:
        """Take everything off the output queue."""
        envelopes = []
        async with self.output.consumer() as consumer:
            while (await self.output.stats()).waiting:
                delivery = await consumer.receive()
                envelopes.append(delivery.envelope)
                await delivery.ack()
        return envelopes

    async def commit(self, outcome: Outcome) -> None:
        """Have the turn ended in the ledger, as an earlier delivery would."""
        begun = await self.sessions.begin_turn(REQUEST.session_key, "r", lease=5.0)
        assert isinstance(begun, New)
        await self.sessions.commit_turn(begun.claim, outcome, record=None, state={})

    def retries(self, cause: str) -> float:
        """How many tries were made again for a cause."""
        lines = self.metrics.render()[0].decode().splitlines()
        name = f'turnline_retries_total{{cause="{cause}"}} '
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


@asynccontextmanager
async def a_rig() -> AsyncIterator[Rig]:
    rig = Rig()
    rig.output.open()
    async with asyncio.timeout(30), rig.transport, alongside(rig.keeper.run):
        yield rig


TOO_LARGE = Outcome(payload=ChatReply(result="x" * 5_000), status_code=200, attempt=1, fence=1)


async def test_a_turn_is_run_committed_and_published() -> None:
    async with a_rig() as rig:
        assert await rig.handle(REQUEST) == Ack()
        (answer,) = await rig.published()

    assert answer.payload == ChatReply(result="abc")


@pytest.mark.parametrize(
    ("mode", "chunks"),
    [
        (DeliveryMode.UNSPECIFIED, False),
        (DeliveryMode.KEEP, False),
        (DeliveryMode.PUSH, False),
        (DeliveryMode.KEEP_STREAM, True),
        (DeliveryMode.PUSH_STREAM, True),
    ],
)
async def test_chunks_are_published_where_somebody_wants_them(
    mode: DeliveryMode, chunks: bool
) -> None:
    async with a_rig() as rig:
        await rig.handle(replace(REQUEST, delivery_mode=mode))
        answers = await rig.published()

    assert any(answer.chunks for answer in answers) is chunks
    assert {answer.delivery_mode for answer in answers} == {mode}


async def test_an_agent_nobody_registered_is_an_answer_and_no_retry() -> None:
    request = replace(REQUEST, payload=ChatRequest(prompt="p", agent="nobody"))
    async with a_rig() as rig:
        assert await rig.handle(request) == Ack()
        (answer,) = await rig.published()

    assert isinstance(answer.payload, Failure)
    assert (answer.payload.code, answer.status_code) == (Code.UNKNOWN_AGENT, 400)


async def test_a_failure_stands_behind_the_pieces_of_all_attempts() -> None:
    late = replace(REQUEST, deadline=SystemClock().time() - 1.0)
    async with a_rig() as rig:
        for _ in range(4):
            begun = await rig.sessions.begin_turn(REQUEST.session_key, "r", lease=5.0)
            assert isinstance(begun, New)
            await rig.sessions.abandon_turn(begun.claim)
        with captured_logs():
            settlement = await rig.handle(late)
        (answer,) = await rig.published()

    assert isinstance(settlement, Bury)
    assert (answer.attempt, answer.status_code) == (5, 504)


async def test_what_is_no_request_is_buried() -> None:
    async with a_rig() as rig:
        settlement = await rig.handle(replace(REQUEST, payload=ChatReply(result="no")))

    assert isinstance(settlement, Bury)


async def test_a_turn_that_ended_is_published_again_and_not_run() -> None:
    async with a_rig() as rig:
        await rig.commit(replace(TOO_LARGE, payload=ChatReply(result="kept")))
        with captured_logs():
            assert await rig.handle(REQUEST) == Ack()
        (answer,) = await rig.published()

    assert (answer.payload, rig.prompts) == (ChatReply(result="kept"), [])


async def test_an_ended_turn_too_large_for_this_queue_is_explained_and_not_run() -> None:
    async with a_rig() as rig:
        await rig.commit(TOO_LARGE)
        with captured_logs():
            assert await rig.handle(REQUEST) == Ack()
        (answer,) = await rig.published()

    assert isinstance(answer.payload, Failure)
    assert (answer.payload.code, answer.status_code) == (Code.PAYLOAD_TOO_LARGE, 413)
    assert rig.prompts == []


async def test_an_explanation_that_cannot_be_published_now_is_handed_back() -> None:
    async with a_rig() as rig:
        await rig.commit(TOO_LARGE)
        rig.output.refusing = 1
        with captured_logs():
            assert await rig.handle(REQUEST) == Release()

        assert await rig.published() == []
        assert rig.retries("transport") == 1


async def test_a_last_failure_that_may_have_been_published_is_said_again_and_nothing_run() -> None:
    async with a_rig() as rig, rig.transport.input.consumer() as consumer:
        await rig.transport.input.send(replace(REQUEST, payload=ChatRequest(prompt="fail")))
        settlements = []
        for attempt in range(1, 5):
            rig.output.refusing = int(attempt == 3)
            delivery = await consumer.receive()
            with captured_logs():
                settlements.append(await rig.handler(delivery))
            await delivery.retry(0.0)
        (failure,) = await rig.published()

    assert [type(each) for each in settlements] == [Retry, Retry, Retry, Bury]
    assert (rig.prompts, failure.status_code) == (["fail"] * 3, 500)


async def test_a_session_store_that_is_away_for_a_moment_is_asked_again() -> None:
    async with a_rig() as rig:
        rig.sessions.failures = 2
        with captured_logs() as logs:
            assert await rig.handle(REQUEST) == Ack()

    assert rig.retries("store") == 2
    assert [record["event"] for record in logs].count("dependency.unavailable") == 2
