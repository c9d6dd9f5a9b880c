"""A turn's stream that goes on after a cut connection, from the last position seen."""

import asyncio
from collections.abc import AsyncIterator
from typing import Self

import grpc.aio

from turnline_client._wire import chat_service_pb2 as pb
from turnline_client.channel import Channel
from turnline_client.errors import STREAM_GAP, TurnlineError, closed, from_rpc
from turnline_client.messages import read_admitted, read_chunk, read_end, write_position
from turnline_client.retry import Retries
from turnline_client.values import Admitted, Position, Reply, Restart, StreamItem

# With it a server sends a stream's reader away, who has waited for long, to come back.
_STILL_RUNNING = "reply_not_ready"

_Call = grpc.aio.UnaryStreamCall[pb.StreamChatRequest, pb.StreamChatResponse]


class ChatStream:
    """The items of one turn as they come; made by `AsyncClient.stream` and `resume`.

    An async iterator for one reader, and an async context manager.  Leaving it early leaves the
    turn running; `cancel` stops that.

    Attributes:
        request_id: of the turn.
        position: of the last chunk given; pass it to `resume` to go on in another process.
    """

    def __init__(self, channel: Channel, request: pb.StreamChatRequest, retries: Retries) -> None:
        self.request_id = request.request_id
        place = request.after
        self.position = Position(place.attempt, place.index) if place.attempt else Position()
        self._channel = channel
        self._request = request
        self._retries = retries
        self._call: _Call | None = None
        self._admitted = False
        self._ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop reading."""
        self._ended = True
        self._leave()

    def _leave(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def __aiter__(self) -> AsyncIterator[StreamItem]:
        return self

    async def __anext__(self) -> StreamItem:
        """Wait for the next item; cancelling the wait loses nothing.

        Raises:
            TurnlineError: the turn failed or was refused, the server stays away, the deadline
                passed, or pieces are no longer kept (`stream_gap`; the turn goes on, and `reply`
                gives its whole answer).  Nothing comes after it.
        """
        try:
            while not self._ended:
                message = await self._read()
                item = self._item(message) if message is not None else None
                if item is not None:
                    self._retries.moved_on()
                    self._ended = isinstance(item, Reply)
                    return item
        except asyncio.CancelledError:
            # The library has given up the call; the next wait makes it anew.
            self._leave()
            if self._channel.closed_under_us():
                self._ended = True
                raise closed(self.request_id) from None
            raise
        except BaseException:
            await self.aclose()
            raise
        self._leave()
        raise StopAsyncIteration

    async def _read(self) -> pb.StreamChatResponse | None:
        """Give the next message; None where the connection has to be made anew."""
        try:
            if self._call is None:
                if self._channel.closed.is_set():
                    raise closed(self.request_id)
                self._call = self._channel.stream(self._request, self._retries.deadline.left())
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            failure = from_rpc(error, request_id=self.request_id)
        else:
            if isinstance(message, pb.StreamChatResponse):
                return message
            # A proxy on the way may end a stream well.
            failure = TurnlineError(
                "unavailable",
                "the stream ended before its turn did",
                retryable=True,
                request_id=self.request_id,
            )
        self._call = None
        if failure.code == _STILL_RUNNING:
            self._retries.moved_on()
        await self._retries.wait(failure, self._channel.closed)
        return None

    def _item(self, message: pb.StreamChatResponse) -> StreamItem | None:
        """Give what a message is for the reader; None if nothing."""
        match message.WhichOneof("item"):
            case "admitted":
                return self._on_admitted(read_admitted(message.admitted))
            case "chunk":
                chunk = read_chunk(message.chunk)
                self._move(chunk.position)
                return chunk
            case "restart":
                self._move(Position(message.restart.attempt, -1))
                return Restart(attempt=message.restart.attempt)
            case "gap":
                gap = message.gap
                text = f"chunks {gap.first} to {gap.last} of attempt {gap.attempt} are gone"
                raise TurnlineError(STREAM_GAP, text, request_id=self.request_id)
            case "end":
                return read_end(message.end)
            case _:
                return None

    def _on_admitted(self, admitted: Admitted) -> Admitted | None:
        if self._admitted:
            return None
        self._admitted = True
        # From now on it is known by its name.
        self._request.ClearField("request")
        self._request.ClearField("session_id")
        return admitted

    def _move(self, position: Position) -> None:
        self.position = position
        self._request.after.CopyFrom(write_position(position))
