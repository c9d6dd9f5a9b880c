"""For this room's tests: the real routes, queue and stores, with a scripted runner behind them.

What a turn does is said by its prompt, words separated by spaces:

    hold            wait for `Rig.released` before anything else
    chunks=N        stream N text deltas "w0 ", "w1 ", ...
    pause=N         wait for `Rig.released` after the first N of them
    status=N        answer with this status
    fail            end with an `agent_failed` failure
    anything else   is echoed
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette

from turnline.auth import AuthValidator, ValidationResult
from turnline.errors import AgentFailedError
from turnline.frontdoor import Admission, web_app
from turnline.hosting import WebOptions, WebServer
from turnline.protocol import (
    ChatEvent,
    ChatReply,
    ChatRequest,
    Chunk,
    Envelope,
    EventType,
    Failure,
)
from turnline.protocol.clock import Clock, SystemClock
from turnline.request_handler import (
    BodyLimits,
    ChatHandler,
    ChatOptions,
    EventStreamOptions,
    ReplyMode,
    RestOptions,
    RestParts,
    WaitingRoom,
    build_routes,
)
from turnline.store import StoredReply
from turnline.store.memory import (
    MemoryResponseOptions,
    MemoryResponseStore,
    MemorySessionOptions,
    MemorySessionStore,
)
from turnline.telemetry import Metrics, configure_tracing
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport


class TokenIsUser(AuthValidator):
    """Takes tokens `user-<id>`; `old-<id>` is one that ended long ago."""

    async def validate(self, token: str, context: object = None) -> ValidationResult:
        """See `AuthValidator.validate`."""
        kind, _, user = token.partition("-")
        expires_at = 1.0 if kind == "old" else None
        return ValidationResult(
            is_valid=kind in ("user", "old"),
            claims={"userId": user},
            error_msg="Unknown token",
            expires_at=expires_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RigOptions:
    """What a test may vary."""

    mode: ReplyMode = ReplyMode.SYNC
    reply_budget: float = 5.0
    heartbeat: float = 15.0
    idle: float = 30.0
    max_body_bytes: int = 100_000
    max_file_bytes: int = 50_000
    max_messages: int = 10_000
    max_messages_per_session: int = 100
    max_chunks_per_reply: int = 100_000
    running: bool = True
    keeps_answers: bool = True
    validator: AuthValidator | None = None
    knows_agent: Callable[[str], bool] | None = None


class WatchedRoom(WaitingRoom):
    """A waiting room that lets a test wait until so many are in it."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    def enter(self, call: Callable[[], None]) -> None:
        """See `WaitingRoom.enter`."""
        super().enter(call)
        self._changed.set()

    def leave(self, call: Callable[[], None]) -> None:
        """See `WaitingRoom.leave`."""
        super().leave(call)
        self._changed.set()

    async def holds(self, count: int) -> None:
        """Return once exactly `count` wait."""
        while self.waiting != count:
            self._changed.clear()
            await self._changed.wait()


@dataclass(slots=True, kw_only=True)
class Rig:
    """What a test works with.

    Attributes:
        parts: what every surface works on.
        envelopes: what reached the runner, in order.
        released: lets turns go on that hold or pause.
        accepting: set to False to refuse new turns.
    """

    app: Starlette
    handler: ChatHandler
    waiting: WatchedRoom
    replies: MemoryResponseStore
    transport: InMemoryTransport
    client: httpx.AsyncClient
    metrics: Metrics
    parts: RestParts
    envelopes: list[Envelope] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    accepting: bool = True

    async def chat(self, prompt: str = "hello", **fields: object) -> httpx.Response:
        """POST a turn of session `s1`, with further body fields."""
        return await self.client.post(
            "/api/v1/chat", json={"prompt": prompt, "session_id": "s1", **fields}
        )

    async def poll(self, request_id: str, **parameters: str) -> httpx.Response:
        """GET the answer of a turn."""
        return await self.client.get(
            "/api/v1/chat", params={"request_id": request_id, **parameters}
        )


@asynccontextmanager
async def open_rig(options: RigOptions | None = None) -> AsyncIterator[Rig]:
    """Run the routes in this process, called without a network."""
    options = options or RigOptions()
    clock = SystemClock()
    transport = InMemoryTransport(_bounds(options), clock)
    replies = MemoryResponseStore(
        MemoryResponseOptions(max_chunks_per_reply=options.max_chunks_per_reply), clock
    )
    waiting = WatchedRoom()
    admission = Admission(
        queue=transport.input,
        replies=replies,
        sessions=MemorySessionStore(MemorySessionOptions(), clock),
        clock=clock,
        accepting=lambda: rig.accepting,
        knows_agent=options.knows_agent,
    )
    handler = _handler(options, admission, replies, waiting, clock)
    parts = _parts(options, handler, waiting, clock)
    app = web_app(build_routes(parts))
    asgi = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        httpx.AsyncClient(transport=asgi, base_url="http://turnline") as client,
        transport,
        asyncio.TaskGroup() as tasks,
    ):
        rig = Rig(
            app=app,
            handler=handler,
            waiting=waiting,
            replies=replies,
            transport=transport,
            client=client,
            metrics=parts.metrics,
            parts=parts,
        )
        runner = tasks.create_task(_run(rig) if options.running else asyncio.sleep(0))
        try:
            yield rig
        finally:
            runner.cancel()


@asynccontextmanager
async def serve(rig: Rig) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the rig's app on a port of this machine and give a client of it."""
    server = WebServer(rig.app, WebOptions(host="127.0.0.1", port=0, close_seconds=1.0))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run(stop))
        await server.started.wait()
        url = f"http://127.0.0.1:{server.port}"
        try:
            async with httpx.AsyncClient(base_url=url, timeout=10.0) as client:
                yield client
        finally:
            stop.set()


def _bounds(options: RigOptions) -> InMemoryOptions:
    return InMemoryOptions(
        max_messages=options.max_messages,
        max_messages_per_session=options.max_messages_per_session,
    )


def _handler(
    options: RigOptions,
    admission: Admission,
    replies: MemoryResponseStore,
    waiting: WaitingRoom,
    clock: Clock,
) -> ChatHandler:
    return ChatHandler(
        admission=admission,
        replies=replies,
        waiting=waiting,
        clock=clock,
        options=ChatOptions(reply_budget=options.reply_budget, turn_timeout=60.0),
    )


def _parts(
    options: RigOptions, handler: ChatHandler, waiting: WaitingRoom, clock: Clock
) -> RestParts:
    limits = BodyLimits(
        max_bytes=options.max_body_bytes, max_file_bytes=options.max_file_bytes, timeout=5.0
    )
    stream = EventStreamOptions(
        heartbeat=options.heartbeat, idle=options.idle, opening=0.05, retry_seconds=lambda: 1.5
    )
    return RestParts(
        handler=handler,
        waiting=waiting,
        clock=clock,
        options=RestOptions(
            mode=options.mode, limits=limits, stream=stream, keeps_answers=options.keeps_answers
        ),
        metrics=Metrics(process=False),
        tracing=configure_tracing(None, "turnline"),
        validator=options.validator,
        agents=lambda: ["echo", "echo2"],
    )


async def _run(rig: Rig) -> None:
    async with asyncio.TaskGroup() as turns, rig.transport.input.consumer() as consumer:
        while True:
            delivery = await consumer.receive()
            rig.envelopes.append(delivery.envelope)
            await delivery.ack()
            turns.create_task(_turn(rig, delivery.envelope))


async def _turn(rig: Rig, envelope: Envelope) -> None:
    request = envelope.payload
    words = request.prompt.split() if isinstance(request, ChatRequest) else []
    numbers = {
        name: int(value)
        for name, _, value in (word.partition("=") for word in words)
        if value.isascii() and value.isdigit()
    }
    if "hold" in words:
        await rig.released.wait()
    deltas = [f"w{index} " for index in range(numbers.get("chunks", 0))]
    for index, text in enumerate(deltas):
        if index == numbers.get("pause"):
            await rig.released.wait()
        event = ChatEvent(type=EventType.TEXT_DELTA, message_id="m", content=text)
        chunk = Chunk(attempt=1, index=index, event=event)
        await rig.replies.append(envelope.reply_key, session_id=envelope.session_id, chunks=[chunk])
    payload: ChatReply | Failure = ChatReply(result="".join(deltas) or f"echo: {' '.join(words)}")
    status = numbers.get("status", 200)
    if "fail" in words:
        payload = Failure.from_error(AgentFailedError("The agent failed"))
        status = payload.status_code
    reply = StoredReply(
        request_id=envelope.request_id,
        session_id=envelope.session_id,
        status_code=status,
        payload=payload,
        attempt=1,
        chunk_count=len(deltas),
    )
    await rig.replies.put(envelope.reply_key, reply)
