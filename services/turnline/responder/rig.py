"""For this room's tests: a responder's handler over real stores and a real queue."""

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turnline.errors import StoreUnavailableError
from turnline.hosting import Backoff
from turnline.protocol import (
    ChatEvent,
    ChatReply,
    ChatRequest,
    Chunk,
    DeliveryMode,
    Envelope,
    EventType,
    ReplyKey,
    TraceContext,
)
from turnline.push import Frame, PushSignals, Routes, UserPush
from turnline.responder.handler import AnswerHandler, ResponderOptions
from turnline.responder.signals import ResponderSignals
from turnline.store import LOCAL_ENDPOINT, Connection, StoredReply
from turnline.store.memory import (
    MemoryConnectionOptions,
    MemoryConnectionStore,
    MemoryResponseOptions,
    MemoryResponseStore,
)
from turnline.telemetry import Metrics, configure_tracing
from turnline.testing import FakeClock
from turnline.transport import Settlement
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

REQUEST = Envelope(
    request_id="r",
    session_id="s",
    scope="u",
    user_id="u",
    delivery_mode=DeliveryMode.PUSH_STREAM,
    payload=ChatRequest(prompt="hi"),
    trace=TraceContext(traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"),
)


class Sockets:
    """The sockets of this process, as far as pushing goes.

    Attributes:
        open: ids of those that are held.
        seen: frames by connection.
    """

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.seen: dict[str, list[Frame]] = {}

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        if connection_id in self.open:
            self.seen.setdefault(connection_id, []).extend(frames)
        return connection_id in self.open


class FlakyStore(MemoryResponseStore):
    """Fails so many writes of ends before it works.

    Attributes:
        failures: writes that will fail yet.
    """

    failures = 0

    async def put(self, key: ReplyKey, reply: StoredReply) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("away")
        await super().put(key, reply)


class Rig:
    """A responder's handler over real stores and a real queue."""

    def __init__(
        self,
        *,
        mode: DeliveryMode = DeliveryMode.KEEP,
        patience: float = 60.0,
        pushes: bool = True,
        inbox: bool = True,
        max_attempts: int = 3,
        spans: InMemorySpanExporter | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.sockets = Sockets()
        self.replies = FlakyStore(MemoryResponseOptions(), self.clock)
        self.connections = MemoryConnectionStore(MemoryConnectionOptions(), self.clock)
        self.metrics = Metrics(process=False)
        self.tracing = configure_tracing(None, "test", spans, strict=True)
        self.handler = AnswerHandler(
            replies=self.replies,
            push=self._push() if pushes else None,
            signals=ResponderSignals(self.metrics, self.tracing, self.clock),
            options=ResponderOptions(
                default_mode=mode,
                inbox=inbox,
                max_attempts=max_attempts,
                patience=patience,
                backoff=Backoff(base=0.001, cap=0.002),
            ),
        )

    def _push(self) -> UserPush:
        return UserPush(
            connections=self.connections,
            routes=Routes(local=self.sockets),
            signals=PushSignals(self.metrics),
            clock=self.clock,
        )

    async def open(self, connection_id: str = "c1") -> None:
        self.sockets.open.add(connection_id)
        await self.connections.add(
            Connection(user_id="u", connection_id=connection_id, endpoint=LOCAL_ENDPOINT)
        )

    async def take(self, envelope: Envelope) -> Settlement:
        """Send an envelope over a queue to the handler."""
        transport = InMemoryTransport(InMemoryOptions(), self.clock)
        async with transport, transport.output.consumer() as consumer:
            await transport.output.send(envelope)
            return await self.handler(await consumer.receive())

    async def stored(self) -> StoredReply:
        reply = await self.replies.get(REQUEST.reply_key)
        if not isinstance(reply, StoredReply):
            raise TypeError(f"not ended: {reply}")
        return reply

    def frames(self, connection_id: str = "c1") -> list[tuple[Any, ...]]:
        """What a socket saw: (attempt, index, delta or event type, done)."""
        return [
            (
                frame.get("attempt"),
                frame.get("index"),
                frame.get("delta", frame.get("event", {}).get("type")),
                frame["done"],
            )
            for frame in self.sockets.seen.get(connection_id, [])
        ]


def chunks(first: int, *texts: str, attempt: int = 1) -> Envelope:
    events = [ChatEvent(type=EventType.TEXT_DELTA, content=text) for text in texts]
    made = [
        Chunk(attempt=attempt, index=first + place, event=event)
        for place, event in enumerate(events)
    ]
    return REQUEST.answer(attempt=attempt, chunks=made)


def reply(count: int, *, attempt: int = 1, text: str = "all") -> Envelope:
    return REQUEST.answer(
        attempt=attempt, payload=ChatReply(result=text), status_code=200, chunk_count=count
    )
