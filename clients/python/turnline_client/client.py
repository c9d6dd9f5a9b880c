"""The asynchronous client: a turn's answer, its events, or its name to come back with."""

import asyncio
import uuid
from typing import Self, TypeVar

import grpc.aio
from google.protobuf.message import Message

from turnline_client._wire import chat_pb2
from turnline_client._wire import chat_service_pb2 as pb
from turnline_client.channel import Channel, Tls, Token, Unary
from turnline_client.errors import closed, from_rpc
from turnline_client.messages import (
    read_admitted,
    read_end,
    read_state,
    write_position,
    write_request,
)
from turnline_client.retry import Deadline, Retries, RetryPolicy, pause_for
from turnline_client.stream import ChatStream
from turnline_client.values import Admitted, ChatRequest, Position, Reply, TurnState

TIMEOUT = 300.0
"""Seconds a call may take, where nobody says otherwise."""
# A server may wait less than it is asked to.
_ASK_AGAIN_SECONDS = 0.2

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class AsyncClient:
    """A client of one server; use as an async context manager, on one loop.

    Every method raises TurnlineError (and what `token` raises), and tries again by itself what may
    be tried again.  `request_id` names a turn, and is made here unless given: the same one asks for
    the same turn, which runs once.  Cancelling a call leaves its turn running; `cancel` stops that.

    Args of the constructor:
        target: host:port, or another name that gRPC resolves.
        token: goes with each call as a bearer token; a function is asked for it each time.
        tls: how the server is known; None speaks plain text.
        timeout: seconds a call may take with all its tries, unless the call says otherwise; None
            has no limit.
        retry: how often and how soon to try again.
        allow_plaintext_token: sends the token without TLS to a host that is not this one, where
            everybody on the way can read it; without it that is a ValueError.
    """

    def __init__(
        self,
        target: str,
        *,
        token: Token | None = None,
        tls: Tls | None = None,
        timeout: float | None = TIMEOUT,
        retry: RetryPolicy | None = None,
        allow_plaintext_token: bool = False,
    ) -> None:
        self._timeout = timeout
        self._policy = retry or RetryPolicy()
        self._channel = Channel(
            target, token, tls, self._policy, allow_plaintext_token=allow_plaintext_token
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; what runs, or is asked later, ends with the code `cancelled`."""
        await self._channel.close()

    async def chat(
        self,
        request: ChatRequest | str,
        *,
        session_id: str,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Ask, and wait for the answer.

        Args:
            request: what to run; a text is its prompt.
            timeout: seconds it may take with all tries; None means the client's.
        """
        message = pb.ChatServiceChatRequest(
            session_id=session_id, request_id=request_id or _new_id(), request=_message(request)
        )
        answer = await self._try(self._channel.chat, message, message.request_id, timeout)
        return read_end(answer.end)

    def stream(
        self,
        request: ChatRequest | str,
        *,
        session_id: str,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> ChatStream:
        """Ask, and read the answer as it is made; see `ChatStream`.

        A cut connection is made anew and the stream goes on where it was.  Nothing is sent before
        the first item is asked for; `timeout` begins now.
        """
        message = pb.StreamChatRequest(
            session_id=session_id, request_id=request_id or _new_id(), request=_message(request)
        )
        return ChatStream(self._channel, message, self._retries(timeout))

    def resume(
        self, request_id: str, *, after: Position | None = None, timeout: float | None = None
    ) -> ChatStream:
        """Read the stream of a turn that was admitted before, from behind a place."""
        place = write_position(after or Position())
        message = pb.StreamChatRequest(request_id=request_id, after=place)
        return ChatStream(self._channel, message, self._retries(timeout))

    async def submit(
        self,
        request: ChatRequest | str,
        *,
        session_id: str,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Admitted:
        """Ask, and come back for the answer with `reply` or `resume`."""
        message = pb.SubmitRequest(
            session_id=session_id, request_id=request_id or _new_id(), request=_message(request)
        )
        answer = await self._try(self._channel.submit, message, message.request_id, timeout)
        return read_admitted(answer)

    async def reply(
        self, request_id: str, *, wait: float = 0.0, timeout: float | None = None
    ) -> Reply | None:
        """Give the answer of a turn; None if it has no end yet.  Reading destroys nothing.

        Args:
            wait: seconds to wait for the end; a server that waits less is asked again.
        """
        patience = Deadline(wait)
        retries = self._retries(timeout)
        while True:
            left = patience.left() or 0.0
            message = pb.GetReplyRequest(request_id=request_id)
            message.wait.FromNanoseconds(int(left * 1e9))
            answer = await self._try_with(retries, self._channel.get_reply, message, request_id)
            if answer.HasField("end"):
                return read_end(answer.end)
            lefts = (patience.left(), retries.deadline.left())
            if min(left for left in lefts if left is not None) <= _ASK_AGAIN_SECONDS:
                return None
            retries.moved_on()
            await pause_for(_ASK_AGAIN_SECONDS, self._channel.closed, request_id)

    async def cancel(self, request_id: str, *, timeout: float | None = None) -> TurnState:
        """Stop a turn, queued or running; its end is then the failure `turn_cancelled`."""
        message = pb.CancelRequest(request_id=request_id)
        return read_state(await self._try(self._channel.cancel, message, request_id, timeout))

    async def _try(
        self,
        method: Unary[Request, Response],
        message: Request,
        request_id: str,
        timeout: float | None,
    ) -> Response:
        return await self._try_with(self._retries(timeout), method, message, request_id)

    async def _try_with(
        self,
        retries: Retries,
        method: Unary[Request, Response],
        message: Request,
        request_id: str,
    ) -> Response:
        channel = self._channel
        while True:
            if channel.closed.is_set():
                raise closed(request_id)
            try:
                return await method(message, retries.deadline.left())
            except grpc.aio.AioRpcError as error:
                failure = from_rpc(error, request_id=request_id)
            except asyncio.CancelledError:
                if channel.closed_under_us():
                    raise closed(request_id) from None
                raise
            await retries.wait(failure, channel.closed)

    def _retries(self, timeout: float | None) -> Retries:
        seconds = self._timeout if timeout is None else timeout
        return Retries(self._policy, Deadline(seconds))


def _new_id() -> str:
    return str(uuid.uuid4())


def _message(request: ChatRequest | str) -> chat_pb2.ChatRequest:
    return write_request(ChatRequest(prompt=request) if isinstance(request, str) else request)
