"""Asking for turns as a client does, over REST and over gRPC alike.

What is asked and told is the same value either way, so that a test of a client mode is written
once and runs over both.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import grpc.aio
import httpx
import orjson
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from e2e.process import Server
from turnline.v1 import chat_service_pb2 as pb
from turnline.v1.chat_pb2 import ChatRequest, TurnEnd
from turnline.v1.chat_service_pb2_grpc import ChatServiceStub
from turnline.v1.chunk_pb2 import Chunk, EventType, Position
from turnline.v1.failure_pb2 import Failure

SURFACES = ("rest", "grpc")

over_both = pytest.mark.parametrize("surface", SURFACES)
"""Runs a test over each surface; it takes the name as `surface`."""

SERVED = MappingProxyType({"AK_API__GRPC_PORT": "0"})
"""Settings of a server that serves both."""

Place = tuple[int, int]

_CHAT = "/api/v1/chat"
_SECONDS = 40.0
_STATES = {"CANCELLED": "queued", "CANCELLING": "running", "DONE": "done"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is asked; empty where it is left open."""

    prompt: str
    session_id: str = "s1"
    request_id: str = ""
    agent: str = ""
    user_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a caller is told in the end.

    Attributes:
        status: HTTP status of the outcome, whatever it came over.
        code / message: why there is no answer; empty where there is one.
    """

    status: int
    result: str = ""
    session_id: str = ""
    request_id: str = ""
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One chunk: its place, the type of its event, and the text it adds."""

    place: Place
    kind: str
    delta: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A whole stream: its chunks, and every end it told, in order."""

    pieces: list[Piece] = field(default_factory=list)
    ends: list[Told] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What the chunks say."""
        return "".join(piece.delta for piece in self.pieces)


class Caller(Protocol):
    """One user's client of a server."""

    async def chat(self, turn: Turn) -> Told:
        """Ask and wait for the end."""
        ...

    async def submit(self, turn: Turn) -> Told:
        """Ask and come back later; 202 if it was taken."""
        ...

    async def reply(self, request_id: str, *, wait: float = 0.0) -> Told:
        """Come back for the end; `reply_not_ready` if there is none yet."""
        ...

    async def stream(self, turn: Turn) -> Streamed:
        """Ask, and read the answer as it is made."""
        ...

    async def resume(self, request_id: str, after: Place) -> Streamed:
        """Read a stream on from behind a place."""
        ...

    async def cancel(self, request_id: str) -> str | Told:
        """Stop a turn; says what it was doing, or why not."""
        ...


@asynccontextmanager
async def caller(server: Server, surface: str, *, token: str = "") -> AsyncIterator[Caller]:
    """Make a client; with a `token`, one that signs in."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if surface == "rest":
        async with server.client() as client:
            client.headers.update(headers)
            yield RestCaller(client)
    else:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            yield GrpcCaller(channel, tuple(headers.items()))


class RestCaller:
    """Over REST; a turn is named by its `Idempotency-Key`."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def chat(self, turn: Turn) -> Told:
        """See `Caller`."""
        return _told(await self._post(turn))

    async def submit(self, turn: Turn) -> Told:
        """See `Caller`."""
        return _told(await self._post(turn, prefer="respond-async"))

    async def reply(self, request_id: str, *, wait: float = 0.0) -> Told:
        """See `Caller`."""
        query = {"request_id": request_id, "wait": str(wait)}
        return _told(await self._client.get(_CHAT, params=query))

    async def stream(self, turn: Turn) -> Streamed:
        """See `Caller`."""
        return _streamed(await self._post(turn, accept="text/event-stream"))

    async def resume(self, request_id: str, after: Place) -> Streamed:
        """See `Caller`."""
        headers = {"accept": "text/event-stream", "last-event-id": f"{after[0]}-{after[1]}"}
        query = {"request_id": request_id}
        return _streamed(await self._client.get(_CHAT, params=query, headers=headers))

    async def cancel(self, request_id: str) -> str | Told:
        """See `Caller`."""
        answer = await self._client.delete(_CHAT, params={"request_id": request_id})
        return _STATES[answer.json()["status"]] if answer.is_success else _told(answer)

    async def _post(self, turn: Turn, **headers: str) -> httpx.Response:
        fields = {"session_id": turn.session_id, "agent": turn.agent, "user_id": turn.user_id}
        body = {"prompt": turn.prompt, **{name: text for name, text in fields.items() if text}}
        if turn.request_id:
            headers["idempotency-key"] = turn.request_id
        return await self._client.post(_CHAT, json=body, headers=headers)


def _told(answer: httpx.Response) -> Told:
    body = answer.json()
    return _told_of(body.get("detail", body), answer.status_code)


def _told_of(body: Mapping[str, Any], status: int) -> Told:
    return Told(
        status=status,
        result=body.get("result", ""),
        session_id=body.get("session_id", ""),
        request_id=body.get("request_id", ""),
        code=body.get("code", ""),
        message=body.get("error", "") if "code" in body else "",
    )


def _streamed(answer: httpx.Response) -> Streamed:
    streamed = Streamed()
    for block in answer.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" not in lines:
            continue
        frame = orjson.loads(lines["data"])
        if frame["done"]:
            text = frame.get("result", streamed.text)
            streamed.ends.append(_told_of({**frame, "result": text}, frame["status_code"]))
        else:
            attempt, _, index = lines["id"].partition("-")
            kind, delta = frame["event"]["type"], frame.get("delta", "")
            piece = Piece(place=(int(attempt), int(index)), kind=kind, delta=delta)
            streamed.pieces.append(piece)
    return streamed


class GrpcCaller:
    """Over gRPC."""

    def __init__(self, channel: grpc.aio.Channel, metadata: tuple[tuple[str, str], ...]) -> None:
        self._stub = ChatServiceStub(channel)
        self._metadata = metadata

    async def chat(self, turn: Turn) -> Told:
        """See `Caller`."""
        request = pb.ChatServiceChatRequest(
            session_id=turn.session_id, request_id=turn.request_id, request=_request(turn)
        )
        try:
            answer = await self._stub.Chat(request, metadata=self._metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            return _refusal(error)
        return _told_at(answer.end)

    async def submit(self, turn: Turn) -> Told:
        """See `Caller`."""
        request = pb.SubmitRequest(
            session_id=turn.session_id, request_id=turn.request_id, request=_request(turn)
        )
        try:
            taken = await self._stub.Submit(request, metadata=self._metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            return _refusal(error)
        return Told(status=202, session_id=taken.session_id, request_id=taken.request_id)

    async def reply(self, request_id: str, *, wait: float = 0.0) -> Told:
        """See `Caller`."""
        request = pb.GetReplyRequest(request_id=request_id)
        request.wait.FromMilliseconds(int(wait * 1000))
        try:
            found = await self._stub.GetReply(request, metadata=self._metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            return _refusal(error)
        if found.HasField("pending"):
            return Told(status=404, code="reply_not_ready", request_id=request_id)
        return _told_at(found.end)

    async def stream(self, turn: Turn) -> Streamed:
        """See `Caller`."""
        request = pb.StreamChatRequest(
            session_id=turn.session_id, request_id=turn.request_id, request=_request(turn)
        )
        return await self._read(request)

    async def resume(self, request_id: str, after: Place) -> Streamed:
        """See `Caller`."""
        place = Position(attempt=after[0], index=after[1])
        return await self._read(pb.StreamChatRequest(request_id=request_id, after=place))

    async def cancel(self, request_id: str) -> str | Told:
        """See `Caller`."""
        request = pb.CancelRequest(request_id=request_id)
        try:
            answer = await self._stub.Cancel(request, metadata=self._metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            return _refusal(error)
        return pb.TurnState.Name(answer.state).removeprefix("TURN_STATE_").lower()

    async def _read(self, request: pb.StreamChatRequest) -> Streamed:
        streamed = Streamed()
        call = self._stub.StreamChat(request, metadata=self._metadata, timeout=_SECONDS)
        async for item in call:
            if item.HasField("chunk"):
                streamed.pieces.append(_piece(item.chunk))
            elif item.HasField("end"):
                streamed.ends.append(_told_at(item.end))
        return streamed


def _request(turn: Turn) -> ChatRequest:
    return ChatRequest(prompt=turn.prompt, agent=turn.agent, user_id=turn.user_id)


def _told_at(end: TurnEnd) -> Told:
    return Told(
        status=end.status_code,
        result=end.reply.result,
        session_id=end.session_id,
        request_id=end.request_id,
        code=end.failure.code,
        message=end.failure.message,
    )


def _piece(chunk: Chunk) -> Piece:
    kind = EventType.Name(chunk.event.type).removeprefix("EVENT_TYPE_").lower()
    delta = chunk.event.content if kind == "text_delta" else ""
    return Piece(place=(chunk.attempt, chunk.index), kind=kind, delta=delta)


def _refusal(error: grpc.aio.AioRpcError) -> Told:
    trailing = dict(error.trailing_metadata() or ())
    raw = trailing.get("grpc-status-details-bin", b"")
    info, failure = ErrorInfo(), Failure()
    for detail in Status.FromString(raw if isinstance(raw, bytes) else b"").details:
        detail.Unpack(info)
        detail.Unpack(failure)
    if not failure.code:
        raise error
    return Told(
        status=failure.status_code,
        session_id=info.metadata.get("session_id", ""),
        request_id=info.metadata.get("request_id", ""),
        code=failure.code,
        message=failure.message,
    )
