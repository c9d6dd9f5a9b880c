"""A seeded random workload: senders, readers that misbehave, and a written history."""

import asyncio
import random
from dataclasses import dataclass, field

from turnline.testing.conformance.transport.history import Event, What
from turnline.testing.conformance.transport.rig import Rig
from turnline.transport import Delivery

_STEP_SECONDS = 0.5  # with a real broker a finished run is seen this late
END_OF_FORCE = 4  # from this attempt on a turn is acked, so that every run ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How readers treat what they get, as weights.

    Attributes:
        pause: of a retry, in seconds.
    """

    ack: int = 6
    retry: int = 1
    release: int = 1
    bury: int = 1
    crash: int = 0
    pause: float = 0.3

    def choose(self, chance: random.Random, attempt: int) -> What:
        """Pick what becomes of a delivery."""
        if attempt >= END_OF_FORCE:
            return What.ACKED
        weights = {
            What.ACKED: self.ack,
            What.RETRIED: self.retry,
            What.RELEASED: self.release,
            What.BURIED: self.bury,
            What.CRASHED: self.crash,
        }
        return chance.choices(list(weights), list(weights.values()))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Sessions with turns, sent and read all at once.

    Attributes:
        give_up: a reader gives up a wait and begins anew after up to this many steps; 0 never.
        copies: every turn is sent this many times.
    """

    seed: int
    sessions: int = 8
    turns: int = 8
    readers: int = 4
    mix: Mix = Mix()
    give_up: int = 0
    copies: int = 1


@dataclass(slots=True)
class _Run:
    """The state one run shares between its tasks."""

    rig: Rig
    load: Workload
    chance: random.Random
    left: int
    events: list[Event] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)


async def run_workload(rig: Rig, load: Workload) -> list[Event]:
    """Run until every turn was acked or buried; give what happened, in order.

    Raises:
        TimeoutError: it did not end within the harness's patience, ten times over.
    """
    run = _Run(rig, load, random.Random(load.seed), load.sessions * load.turns)
    async with asyncio.timeout(rig.harness.patience_seconds * 10):
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(_read(run)) for _ in range(load.readers)]
            for number in range(load.sessions):
                tasks.create_task(_send(run, f"session-{number}"))
            while not run.done.is_set():
                await rig.time.pass_seconds(min(_STEP_SECONDS, rig.lease_seconds / 4))
            for reader in readers:
                reader.cancel()
    return run.events


async def _send(run: _Run, session_id: str) -> None:
    for number in range(run.load.turns):
        request_id = f"{session_id}-turn-{number}"
        run.events.append(Event(What.SENT, session_id, request_id))
        envelope = run.rig.envelope(session_id, request_id)
        new = [await run.rig.queue.send(envelope) for _ in range(run.load.copies)]
        assert new == [True] + [False] * (run.load.copies - 1)
        await _steps(run, 3)


async def _read(run: _Run) -> None:
    async with run.rig.queue.consumer() as consumer:
        while True:
            async with asyncio.TaskGroup() as tasks:
                wait = tasks.create_task(consumer.receive())
                if run.load.give_up:
                    await _steps(run, run.load.give_up)
                    wait.cancel()
            if not wait.cancelled():
                await _handle(run, wait.result())


async def _handle(run: _Run, delivery: Delivery) -> None:
    envelope = delivery.envelope
    names = (envelope.session_id, envelope.request_id, delivery.attempt)
    run.events.append(Event(What.RECEIVED, *names))
    await _steps(run, 4)
    fate = run.load.mix.choose(run.chance, delivery.attempt)
    run.events.append(Event(fate, *names))
    match fate:
        case What.RETRIED:
            await delivery.retry(run.chance.random() * run.load.mix.pause)
        case What.RELEASED:
            await delivery.release()
        case What.CRASHED:
            await run.rig.harness.crash(delivery)
        case What.BURIED:
            await delivery.dead_letter("drew the short straw")
        case _:
            await delivery.ack()
    if fate in (What.ACKED, What.BURIED):
        run.left -= 1
        if run.left <= 0:
            run.done.set()


async def _steps(run: _Run, most: int) -> None:
    """Let the others run up to `most` times."""
    for _ in range(run.chance.randint(0, most)):
        await asyncio.sleep(0)
