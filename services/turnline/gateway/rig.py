"""For this room's tests: clients, frames as responders push them, and a gateway on its ports.

A client talks over WebSocket or over gRPC, in the same words.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import MappingProxyType

from starlette.applications import Starlette

from turnline.auth import AuthValidator, ValidationResult
from turnline.auth.port import Context
from turnline.config import Settings
from turnline.frontdoor import Admission, StreamFrames, chat_response_frame
from turnline.gateway.custom import RouteHandler
from turnline.gateway.grpc_service import make_service
from turnline.gateway.rig_talks import Conversation, GrpcTalk, Talk, call_at, socket_at
from turnline.gateway.routes import SOCKET_PATH
from turnline.gateway.wiring import open_gateway, open_hub
from turnline.hosting import Backends, WebOptions, WebServer, open_backends
from turnline.hosting.grpc_port import open_server
from turnline.hosting.parts import Server
from turnline.protocol import (
    BEGINNING,
    ChatEvent,
    ChatReply,
    Chunk,
    Envelope,
    EventType,
    Position,
)
from turnline.protocol.clock import SystemClock
from turnline.push import Frame, PushSignals, Routes, UserPush
from turnline.store import LOCAL_ENDPOINT, ConnectionStore, StoredReply, StreamItem

Handlers = Mapping[str, RouteHandler]

BODY = {"prompt": "p", "session_id": "s"}
"""A chat body that asks for something."""

_PATIENCE = 10.0


class Client:
    """Whoever is at the other end.

    Attributes:
        seen: frames it has read.
        closed: code and reason it was closed with; None while it is open.
        arrived / ended: set when a frame came, and when it was closed.
        reading: cleared, it reads nothing more.
        broken: raised by the next write.
        slow: frames dropped because it read too slowly, each time.
    """

    def __init__(self) -> None:
        self.seen: list[Frame] = []
        self.closed: tuple[int, str] | None = None
        self.arrived = asyncio.Event()
        self.ended = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self.broken: Exception | None = None
        self.slow: list[int] = []

    async def send(self, frame: Frame) -> None:
        if self.broken is not None:
            raise self.broken
        self.seen.append(frame)
        self.arrived.set()
        await self.reading.wait()

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self.ended.set()


def chunk(index: int, *, attempt: int = 1, turn: str = "r") -> Frame:
    return {
        "delta": f"{attempt}.{index} ",
        "event": {"type": "text_delta", "content": f"{attempt}.{index} "},
        "done": False,
        "request_id": turn,
        "session_id": "s",
        "attempt": attempt,
        "index": index,
        "type": "STREAM_CHUNK",
    }


def done(index: int, *, attempt: int = 1, turn: str = "r", **fields: object) -> Frame:
    return {
        "done": True,
        "request_id": turn,
        "session_id": "s",
        "attempt": attempt,
        "index": index,
        "type": "STREAM_CHUNK",
        **fields,
    }


def restart(attempt: int) -> Frame:
    return {
        "event": {"type": "restart", "attempt": attempt},
        "done": False,
        "request_id": "r",
        "session_id": "s",
        "attempt": attempt,
        "type": "STREAM_CHUNK",
    }


def gap(first: int, last: int, *, attempt: int = 1) -> Frame:
    return {
        "event": {"type": "gap", "first": first, "last": last},
        "done": False,
        "request_id": "r",
        "session_id": "s",
        "attempt": attempt,
        "type": "STREAM_CHUNK",
    }


class NamedByToken(AuthValidator):
    """Takes a token for its user's name; `<name>@<seconds>` ends, `bad<why>` is refused."""

    async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        """Judge a token."""
        if token.startswith("bad"):
            return ValidationResult(is_valid=False, error_msg=token.removeprefix("bad"))
        if token == "nobody":
            return ValidationResult(is_valid=True)
        name, _, seconds = token.partition("@")
        expires_at = time.time() + float(seconds) if seconds else None
        return ValidationResult(is_valid=True, claims={"userId": name}, expires_at=expires_at)


class Served:
    """A gateway on ports of this machine; the test is its runner and responder.

    Attributes:
        accepting: set to False to refuse new work.
        over: what `connect` and `held` connect over.
    """

    def __init__(self, settings: Settings, backends: Backends, routes: Handlers, over: str) -> None:
        self.backends = backends
        self.over = over
        self.accepting = True
        self.hub = open_hub(settings, backends, endpoint=LOCAL_ENDPOINT)
        self.push = UserPush(
            connections=backends.stores.connections,
            routes=Routes(local=self.hub),
            signals=PushSignals(backends.metrics),
            clock=backends.clock,
        )
        self.admission = Admission(
            queue=backends.transport.input,
            replies=backends.stores.replies,
            sessions=backends.stores.sessions,
            clock=backends.clock,
            accepting=lambda: self.accepting,
        )
        self.gateway = open_gateway(
            settings,
            backends,
            hub=self.hub,
            admission=self.admission,
            validator=NamedByToken(),
            routes=routes,
            accepting=lambda: self.accepting,
        )
        options = WebOptions(
            host="127.0.0.1",
            port=0,
            max_frame_bytes=settings.websocket_api.max_frame_bytes,
            close_seconds=1.0,
        )
        self.web = WebServer(Starlette(), options)
        self.web.serve_sockets(SOCKET_PATH, self.gateway.endpoint)
        self.draining = asyncio.Event()
        service = make_service(self.gateway.grpc_desk)
        self.grpc = open_server(settings, [service], self.draining) if over == "grpc" else None
        self._consumer = backends.transport.input.consumer()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"ws://127.0.0.1:{self.web.port}/ws"

    def socket(
        self, token: str = "u", *, max_queue: int = 1_000
    ) -> AbstractAsyncContextManager[Talk]:
        """Open a client's WebSocket that reads ahead by so many frames."""
        return socket_at(self.web.port, token, max_queue=max_queue)

    def call(self, token: str = "u") -> AbstractAsyncContextManager[GrpcTalk]:
        """Open a client's connection over gRPC."""
        if self.grpc is None:
            raise AssertionError("not served over gRPC")
        return call_at(self.grpc.port, token)

    def connect(self, token: str = "u") -> AbstractAsyncContextManager[Conversation]:
        """Open a client's connection."""
        return self.call(token) if self.over == "grpc" else self.socket(token)

    @asynccontextmanager
    async def held(self, token: str = "u") -> AsyncIterator[Conversation]:
        """Open a client's connection and wait until frames can be pushed to it."""
        async with self.connect(token) as talk:
            await talk.ask(route="no such route")
            yield talk

    async def take(self) -> Envelope:
        """Take the next admitted turn off the queue."""
        async with asyncio.timeout(_PATIENCE), self._consumer as consumer:
            delivery = await consumer.receive()
        await delivery.ack()
        return delivery.envelope

    async def stream(self, turn: Envelope, first: int, *texts: str, push: bool = True) -> None:
        """Keep and push text chunks of a turn, as a responder does."""
        chunks = [
            Chunk(
                attempt=1,
                index=first + place,
                event=ChatEvent(type=EventType.TEXT_DELTA, content=text),
            )
            for place, text in enumerate(texts)
        ]
        await self.backends.stores.replies.append(
            turn.reply_key, session_id=turn.session_id, chunks=chunks
        )
        if push:
            await self._push(turn, chunks, first)

    async def reply(self, turn: Envelope, text: str = "done", *, count: int = 0) -> None:
        """Keep and push the end of a turn that streamed so many chunks."""
        reply = StoredReply(
            request_id=turn.request_id,
            session_id=turn.session_id,
            status_code=200,
            payload=ChatReply(result=text),
            attempt=1,
            chunk_count=count,
        )
        await self.backends.stores.replies.put(turn.reply_key, reply)
        if turn.delivery_mode.streams:
            await self._push(turn, [reply], count)
        elif turn.delivery_mode.pushes:
            await self.push.push_or_hold(turn.user_id, [chat_response_frame(reply)])

    async def _push(self, turn: Envelope, items: Sequence[StreamItem], first: int) -> None:
        after = Position(1, first - 1) if first else BEGINNING
        frames = StreamFrames(session_id=turn.session_id, request_id=turn.request_id, after=after)
        await self.push.push(
            turn.user_id,
            [
                {**frame, "type": "STREAM_CHUNK"}
                for item in items
                for _, frame in frames.frames(item)
            ],
        )

    async def holds(self, count: int) -> None:
        """Return once it holds exactly `count` sockets."""
        async with asyncio.timeout(_PATIENCE):
            while self.hub.count != count:  # noqa: ASYNC110 - sockets end without telling
                await asyncio.sleep(0.005)

    def counted(self, series: str) -> float:
        """Read a series of the metrics; 0 if there is none."""
        lines = self.backends.metrics.render()[0].decode().splitlines()
        found = [line for line in lines if line.startswith(f"turnline_{series} ")]
        return float(found[0].rpartition(" ")[2]) if found else 0.0


@asynccontextmanager
async def served(
    routes: Handlers = MappingProxyType({}),
    *,
    over: str = "websocket",
    connections: ConnectionStore | None = None,
    **websocket_api: object,
) -> AsyncIterator[Served]:
    """Serve a gateway over real queues and stores in memory, or over a given connection store."""
    settings = Settings.model_validate(
        {"websocket_api": websocket_api, "api": {"host": "127.0.0.1", "grpc_port": 0}}
    )
    stop = asyncio.Event()
    async with open_backends(settings, SystemClock()) as backends, asyncio.TaskGroup() as tasks:
        if connections is not None:
            backends = replace(backends, stores=replace(backends.stores, connections=connections))
        rig = Served(settings, backends, routes, over)
        servers: list[Server] = [rig.web, *([rig.grpc] if rig.grpc is not None else ())]
        for server in servers:
            tasks.create_task(server.run(stop))
        for server in servers:
            await server.started.wait()
        try:
            yield rig
        finally:
            rig.draining.set()
            stop.set()


def places(frames: Sequence[Frame]) -> list[int | str]:
    """What a client sees of a stream: indices, names of events that are no text, and the end."""
    return [
        "done" if f["done"] else f["event"]["type"] if "delta" not in f else f["index"]
        for f in frames
    ]


async def start_streaming(rig: Served, talk: Conversation, request_id: str = "r") -> Envelope:
    """Ask for a stream, and take its turn off the queue."""
    queued = await talk.ask(request_id=request_id, stream=True, body=BODY)
    if queued["type"] != "CHAT_QUEUED":
        raise AssertionError(queued)
    return await rig.take()
