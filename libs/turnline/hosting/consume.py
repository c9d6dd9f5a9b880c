"""The consume loop: from deliveries to settlements, for every queue and every service.

Fetch one delivery per free slot, run the handler under a kept lease, settle by what it returned.
Order is the transport's promise (ADR 0003), so slots need no knowledge of sessions.  Cancelling a
worker hands its delivery back unspent; whatever a handler does, its delivery ends settled or, when
the lease is lost, left for whoever holds it now.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from turnline.errors import Code, FencedError, TransportUnavailableError, TurnlineError
from turnline.hosting.backoff import Backoff
from turnline.hosting.leases import LeaseKeeper
from turnline.protocol.deadline import within
from turnline.telemetry import Metrics, bind_turn, get_logger, names
from turnline.transport import (
    Ack,
    Bury,
    Consumer,
    Delivery,
    Queue,
    Release,
    Retry,
    Settlement,
)

_log = get_logger("hosting")

_STOP_SECONDS = 0.25

Handler = Callable[[Delivery], Awaitable[Settlement]]
AnswerExhausted = Callable[[Delivery], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """Bounds of one loop.

    Attributes:
        name: `input` or `output`, for logs.
        consumers: readers of the queue, 1 or more (the guide's `no_of_consumers`).
        max_concurrency: deliveries worked on at once, over all readers.
        lease_seconds: the transport's lease; renewed every third of it.
        max_attempts: deliveries before one whose handler breaks is buried.
        backoff: pauses before a retry for which the handler names no time.
        settle_timeout: seconds to keep trying to settle; after that it is left to its lease.
    """

    name: str
    consumers: int
    max_concurrency: int
    lease_seconds: float
    max_attempts: int
    backoff: Backoff
    settle_timeout: float = 15.0


class ConsumeLoop:
    """Runs one handler over one queue until told to drain."""

    def __init__(
        self,
        *,
        queue: Queue,
        handler: Handler,
        options: ConsumeOptions,
        keeper: LeaseKeeper,
        metrics: Metrics,
        answer_exhausted: AnswerExhausted | None = None,
    ) -> None:
        """Wire it.

        Args:
            answer_exhausted: called before a delivery is buried because its handler broke, so
                that whoever waits for it is told; None where nobody waits.
        """
        self._queue = queue
        self._handler = handler
        self._answer_exhausted = answer_exhausted
        self._options = options
        self._keeper = keeper
        self._metrics = metrics
        self._retries = metrics.counter(names.RETRIES_TOTAL, cause="handler")
        self._settle_retries = metrics.counter(names.RETRIES_TOTAL, cause="settle")
        self._slots = asyncio.Semaphore(options.max_concurrency)
        self._working: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._reading = False

    @property
    def in_flight(self) -> int:
        """Deliveries being worked on now."""
        return len(self._working)

    @property
    def reading(self) -> bool:
        """Whether it takes deliveries; False before `run`, while draining and after a crash."""
        return self._reading

    async def run(self, stop: asyncio.Event, *, grace: float) -> None:
        """Consume until `stop` is set, then finish what runs within `grace` seconds.

        What is not finished by then is cancelled and handed back without spending an attempt;
        code that does not stop when cancelled is waited for `_STOP_SECONDS` more at most.
        Returns when every delivery is settled or left.
        """
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(self._read(tasks)) for _ in range(self._options.consumers)]
            self._reading = True
            try:
                await stop.wait()
            finally:
                self._reading = False
            for reader in readers:
                reader.cancel()
            await self._finish(grace)

    async def _finish(self, grace: float) -> None:
        try:
            async with asyncio.timeout(grace):
                await self._idle.wait()
        except TimeoutError:
            self._cancel_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._idle.wait()
            # Whoever waits for code that does not stop leaves it behind when cancelled again.
            self._cancel_all()

    def _cancel_all(self) -> None:
        for worker in list(self._working):
            worker.cancel()

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        failures = 0
        async with self._queue.consumer() as consumer:
            while True:
                await self._slots.acquire()
                try:
                    delivery = await self._receive(consumer)
                except BaseException:
                    self._slots.release()
                    raise
                if delivery is None:
                    self._slots.release()
                    failures += 1
                    await asyncio.sleep(self._options.backoff.pause(failures))
                    continue
                failures = 0
                self._start(tasks, delivery)

    async def _receive(self, consumer: Consumer) -> Delivery | None:
        try:
            return await consumer.receive()
        except TransportUnavailableError as error:
            _log.warning("dependency.unavailable", dependency="transport", reason=error.message)
            return None

    def _start(self, tasks: asyncio.TaskGroup, delivery: Delivery) -> None:
        worker = tasks.create_task(self._work(delivery))
        self._working.add(worker)
        self._idle.clear()
        worker.add_done_callback(self._ended)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._slots.release()
        self._working.discard(worker)
        if not self._working:
            self._idle.set()

    async def _work(self, delivery: Delivery) -> None:
        envelope = delivery.envelope
        ids = {"request_id": envelope.request_id, "session_id": envelope.session_id}
        with bind_turn(**ids, attempt=delivery.attempt):
            await self._handle_and_settle(delivery)

    async def _handle_and_settle(self, delivery: Delivery) -> None:
        try:
            async with self._keeper.held(delivery.renew, seconds=self._options.lease_seconds):
                settlement = await self._handle(delivery)
                await self._settle(delivery, settlement)
        except FencedError:
            # Not ours any more: it was, or will be, delivered again.
            _log.warning("delivery.left", queue=self._options.name)
        except asyncio.CancelledError:
            await asyncio.shield(self._settle(delivery, Release()))
            raise

    async def _handle(self, delivery: Delivery) -> Settlement:
        try:
            return await self._handler(delivery)
        except FencedError:
            return Release()
        except TurnlineError as error:
            burial = Bury(f"{error.code.value}: {error.message}", error.code)
            return await self._after_failure(delivery, burial, error)
        except Exception as error:  # noqa: BLE001 - a broken handler must not end the loop
            burial = Bury(f"handler raised {type(error).__name__}", Code.INTERNAL)
            return await self._after_failure(delivery, burial, error)

    async def _after_failure(
        self, delivery: Delivery, burial: Bury, error: Exception
    ) -> Settlement:
        _log.error(
            "delivery.handler_failed",
            queue=self._options.name,
            code=burial.code.value,
            exc_info=error,
        )
        if delivery.attempt < self._options.max_attempts:
            self._retries.inc()
            return Retry()
        if self._answer_exhausted is not None:
            try:
                await self._answer_exhausted(delivery)
            except Exception as unanswered:  # noqa: BLE001 - the next delivery answers
                _log.error(
                    "delivery.handler_failed",
                    queue=self._options.name,
                    code=Code.INTERNAL.value,
                    exc_info=unanswered,
                )
                return Retry()
        return burial

    async def _settle(self, delivery: Delivery, settlement: Settlement) -> None:
        """Settle, or leave the delivery to its lease; raises nothing but CancelledError."""
        try:
            await within(self._options.settle_timeout, self._insist(delivery, settlement))
        except FencedError:
            _log.warning("delivery.left", queue=self._options.name)
        except TimeoutError:
            _log.error("delivery.unsettled", queue=self._options.name)
        except Exception as error:  # noqa: BLE001 - a broken adapter must not end the loop
            _log.error("delivery.unsettled", queue=self._options.name, exc_info=error)

    async def _insist(self, delivery: Delivery, settlement: Settlement) -> None:
        failures = 0
        while True:
            try:
                await self._apply(delivery, settlement)
                return
            except TransportUnavailableError:
                failures += 1
                self._settle_retries.inc()
                await asyncio.sleep(Backoff(base=0.05, cap=2.0).pause(failures))

    async def _apply(self, delivery: Delivery, settlement: Settlement) -> None:
        match settlement:
            case Ack():
                await delivery.ack()
            case Retry(after=after):
                pause = self._options.backoff.pause(delivery.attempt)
                await delivery.retry(pause if after is None else after)
            case Release():
                await delivery.release()
            case Bury(reason=reason, code=code):
                await delivery.dead_letter(reason)
                self._metrics.counter(
                    names.DEAD_LETTERS_TOTAL, queue=self._options.name, reason_code=code.value
                ).inc()
                _log.error(
                    "delivery.dead_lettered",
                    queue=self._options.name,
                    reason=reason,
                    code=code.value,
                )
            case _:
                assert_never(settlement)
