"""What a client frame does: chat, cancel, resume, or a custom route.

Knows no web framework: it takes frames and a `Socket`, and answers through the socket.  Custom
routes bypass the queue (guide): they are answered here, at once.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from turnline.errors import InternalError, InvalidRequestError, NotFoundError, TurnlineError
from turnline.frontdoor import (
    Admission,
    Admitted,
    StreamFrames,
    Submission,
    chat_response_frame,
)
from turnline.gateway.frames import ClientFrame, failed, queued, read_frame, succeeded
from turnline.gateway.sockets import Socket
from turnline.protocol import (
    BEGINNING,
    DeliveryMode,
    Position,
    ReplyKey,
    new_request_id,
)
from turnline.protocol.json_body import parse_chat_body
from turnline.store import Cancelled, ResponseStore, StoredReply
from turnline.telemetry import get_logger

_log = get_logger("gateway")

RouteMessage = dict[str, Any]
RouteReply = Mapping[str, Any] | None
RouteHandler = Callable[[RouteMessage], RouteReply | Awaitable[RouteReply]]
Spawn = Callable[[Coroutine[Any, Any, None]], Awaitable[None]]

CANCEL_ROUTE = "cancel"
RESUME_ROUTE = "resume"
RESERVED_ROUTES = frozenset({CANCEL_ROUTE, RESUME_ROUTE})

_CANCEL_STATES = {
    Cancelled.QUEUED: "CANCELLED",
    Cancelled.RUNNING: "CANCELLING",
    Cancelled.DONE: "DONE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """Bounds of the gateway.

    Attributes:
        chat_route: name of the chat route (`websocket_api.chat_route`).
        streams: whether chat answers stream when the frame does not say (`execution.mode`).
        turn_timeout: seconds a turn may take.
        route_timeout: seconds a custom route may take.
        resume_idle: seconds a resumed stream may be silent before the resume ends.
    """

    chat_route: str
    streams: bool
    turn_timeout: float
    route_timeout: float = 30.0
    resume_idle: float = 600.0


class FrameHandler:
    """Handles the frames of all sockets of this pod."""

    def __init__(
        self,
        *,
        admission: Admission,
        replies: ResponseStore,
        routes: Mapping[str, RouteHandler],
        options: GatewayOptions,
    ) -> None:
        self._admission = admission
        self._replies = replies
        self._routes = routes
        self._options = options

    async def handle(self, socket: Socket, text: str, spawn: Spawn) -> None:
        """Act on one text frame; every outcome, good or bad, is a frame to the socket.

        Returns when a chat frame is admitted, so that turns are accepted in the order they were
        sent; everything else goes on in a task made by `spawn`.
        """
        try:
            frame = read_frame(text, chat_route=self._options.chat_route)
        except TurnlineError as error:
            socket.answer(failed(error))
            return
        work = self._guarded(socket, frame)
        if frame.route == self._options.chat_route:
            await work
        else:
            await spawn(work)

    async def _guarded(self, socket: Socket, frame: ClientFrame) -> None:
        try:
            await self._dispatch(socket, frame)
        except TurnlineError as error:
            socket.answer(failed(error, request_id=frame.request_id))
        except Exception as error:
            _log.error("request.failed", surface="websocket", exc_info=error)
            internal = InternalError("Request processing failed")
            socket.answer(failed(internal, request_id=frame.request_id))

    async def _dispatch(self, socket: Socket, frame: ClientFrame) -> None:
        if frame.route == self._options.chat_route:
            await self._chat(socket, frame)
        elif frame.route == CANCEL_ROUTE:
            await self._cancel(socket, frame)
        elif frame.route == RESUME_ROUTE:
            await self._resume(socket, frame)
        elif (route := self._routes.get(frame.route)) is not None:
            await self._custom(socket, frame, route)
        else:
            raise NotFoundError(f"Route {frame.route[:64]!r} not found", field="route")

    async def _chat(self, socket: Socket, frame: ClientFrame) -> None:
        body = parse_chat_body(frame.body)
        stream = self._options.streams if frame.stream is None else frame.stream
        submission = Submission(
            session_id=body.session_id,
            request=body.request,
            delivery_mode=DeliveryMode.PUSH_STREAM if stream else DeliveryMode.PUSH,
            budget=self._options.turn_timeout,
            request_id=frame.request_id or body.request_id or new_request_id(),
            scope=socket.user_id,
        )
        request_id = submission.request_id
        socket.expect_ack(request_id)
        try:
            admitted = await self._admission.submit(submission)
        except TurnlineError as error:
            socket.ack(request_id, failed(error, request_id=request_id))
            return
        ack = queued(
            request_id=request_id, session_id=body.session_id, user_id=socket.user_id
        )
        socket.ack(request_id, ack)
        if admitted.known:
            await self._replay(socket, admitted, stream=stream)

    async def _replay(self, socket: Socket, admitted: Admitted, *, stream: bool) -> None:
        """Answer a frame whose turn has ended already; a running one is pushed when it ends."""
        reply = await self._replies.get(admitted.reply_key)
        if not isinstance(reply, StoredReply):
            return
        if not stream:
            socket.answer(chat_response_frame(reply))
            return
        frames = StreamFrames(
            session_id=reply.session_id, request_id=reply.request_id, after=BEGINNING
        )
        for _, frame in frames.frames(reply):
            socket.answer({**frame, "type": "STREAM_CHUNK"})

    async def _cancel(self, socket: Socket, frame: ClientFrame) -> None:
        if not frame.request_id:
            raise InvalidRequestError("request_id is required", field="request_id")
        state = await self._admission.cancel(ReplyKey(socket.user_id, frame.request_id))
        socket.answer(succeeded({"state": _CANCEL_STATES[state]}, request_id=frame.request_id))

    async def _resume(self, socket: Socket, frame: ClientFrame) -> None:
        """Stream a turn's chunks behind the client's position until its end."""
        if not frame.request_id:
            raise InvalidRequestError("request_id is required", field="request_id")
        after = _position(frame.body.get("after"))
        key = ReplyKey(socket.user_id, frame.request_id)
        found = await self._replies.get(key)
        if found is None:
            raise NotFoundError("No turn of this request_id", field="request_id")
        if not socket.start_resume(frame.request_id):
            raise InvalidRequestError("This turn is being resumed already", field="request_id")
        frames = StreamFrames(
            session_id=found.session_id, request_id=found.request_id, after=after
        )
        try:
            async with asyncio.timeout(self._options.resume_idle) as idle:
                async for item in self._replies.stream(key, after):
                    for _, chunk in frames.frames(item):
                        socket.answer({**chunk, "type": "STREAM_CHUNK"})
                    await socket.drained()
                    now = asyncio.get_running_loop().time()
                    idle.reschedule(now + self._options.resume_idle)
        except TimeoutError:
            _log.info("stream.idle", request_id=frame.request_id)
        finally:
            socket.end_resume(frame.request_id)

    async def _custom(self, socket: Socket, frame: ClientFrame, route: RouteHandler) -> None:
        message = {"message": dict(frame.raw), "user_id": socket.user_id}
        try:
            async with asyncio.timeout(self._options.route_timeout):
                reply = await _call(route, message)
            orjson.dumps(reply)
        except Exception as error:
            _log.error("route.failed", route=frame.route, exc_info=error)
            raise InternalError("Route handler encountered an error") from error
        if reply is not None:
            socket.answer(succeeded(reply, request_id=frame.request_id))


async def _call(route: RouteHandler, message: RouteMessage) -> RouteReply:
    if inspect.iscoroutinefunction(route):
        reply: RouteReply = await route(message)
        return reply
    result = await asyncio.to_thread(route, message)
    return await result if inspect.isawaitable(result) else result


def _position(value: object) -> Position:
    if value in (None, ""):
        return BEGINNING
    try:
        return Position.parse(str(value))
    except ValueError:
        raise InvalidRequestError(
            "after must be a position such as '1-5'", field="after"
        ) from None
