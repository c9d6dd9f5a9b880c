"""What a client frame does: chat, cancel, resume, or a custom route.

Knows no web framework: it takes frames and a `Socket`, and answers through the socket.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from turnline.config import Settings
from turnline.errors import (
    InternalError,
    InvalidRequestError,
    NotFoundError,
    QueueFullError,
    TurnlineError,
)
from turnline.frontdoor import Admission, Admitted, Submission
from turnline.gateway.custom import CustomRoutes
from turnline.gateway.following import Follower, read_position
from turnline.gateway.frames import (
    ClientFrame,
    cancelled,
    check_chat,
    decode_frame,
    failed,
    queued,
    read_frame,
    reply_key,
    request_id_in,
    succeeded,
)
from turnline.gateway.signals import Answered, GatewaySignals
from turnline.gateway.sockets import Socket
from turnline.gateway.work import FrameTasks
from turnline.protocol import BEGINNING, DeliveryMode, new_request_id
from turnline.protocol.json_body import parse_chat_body
from turnline.store import ResponseStore, StoredReply

CANCEL_ROUTE = "cancel"
RESUME_ROUTE = "resume"
RESERVED_ROUTES = frozenset({CANCEL_ROUTE, RESUME_ROUTE})

_ACCEPTED = 202


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """How chat frames are taken.

    Attributes:
        chat_route: name of the chat route (`websocket_api.chat_route`).
        streams: whether chat answers stream when the frame does not say (`execution.mode`).
        turn_timeout: seconds a turn may take.
    """

    chat_route: str
    streams: bool
    turn_timeout: float


def gateway_options(settings: Settings) -> GatewayOptions:
    """Read how chat frames are taken."""
    return GatewayOptions(
        chat_route=settings.websocket_api.chat_route,
        streams=settings.execution.mode == "stream",
        turn_timeout=settings.execution.turn_timeout,
    )


class FrameHandler:
    """Handles the frames of all sockets of this pod."""

    def __init__(
        self,
        *,
        admission: Admission,
        replies: ResponseStore,
        follower: Follower,
        routes: CustomRoutes,
        signals: GatewaySignals,
        options: GatewayOptions,
    ) -> None:
        self._admission = admission
        self._replies = replies
        self._follower = follower
        self._routes = routes
        self._signals = signals
        self._options = options

    async def handle(self, socket: Socket, said: str | Mapping[str, Any], work: FrameTasks) -> None:
        """Act on one frame, JSON text or an object; every outcome is a frame to the socket.

        Returns when a chat frame is admitted, so that turns are accepted in the order they were
        sent; everything else goes on in a task of `work`.
        """
        request_id = ""
        try:
            raw = decode_frame(said) if isinstance(said, str) else said
            request_id = request_id_in(raw)
            frame = read_frame(raw, chat_route=self._options.chat_route)
        except InvalidRequestError as error:
            self.refuse(socket, error, request_id=request_id)
            return
        mode = self._mode(frame)

        async def act() -> None:
            await self._guarded(
                socket,
                frame.request_id,
                mode,
                lambda answered: self._dispatch(socket, frame, answered, work),
            )

        if frame.route == self._options.chat_route:
            await act()
        elif not work.start(act):
            self.refuse(socket, _too_much(), request_id=request_id)

    def refuse(self, socket: Socket, error: TurnlineError, *, request_id: str = "") -> None:
        """Answer a frame that nothing was done for."""
        self._signals.refused_frame(self._chat_mode(None), error)
        socket.answer(failed(error, request_id=request_id))

    async def _guarded(
        self,
        socket: Socket,
        request_id: str,
        mode: str,
        act: Callable[[Answered], Awaitable[None]],
    ) -> None:
        try:
            with self._signals.frame(mode) as answered:
                await act(answered)
        except TurnlineError as error:
            socket.answer(failed(error, request_id=request_id))
        except Exception as error:  # noqa: BLE001 - a broken frame must not end the socket
            self._signals.failed(mode, error)
            internal = InternalError("Request processing failed")
            socket.answer(failed(internal, request_id=request_id))

    def _mode(self, frame: ClientFrame) -> str:
        if frame.route == self._options.chat_route:
            return self._chat_mode(frame.stream)
        return frame.route if frame.route in RESERVED_ROUTES else "custom"

    def _chat_mode(self, stream: bool | None) -> str:
        return "stream" if (self._options.streams if stream is None else stream) else "async"

    async def _dispatch(
        self, socket: Socket, frame: ClientFrame, answered: Answered, work: FrameTasks
    ) -> None:
        if frame.route == self._options.chat_route:
            await self._chat(socket, frame, work)
            answered.status = _ACCEPTED
        elif frame.route == CANCEL_ROUTE:
            await self._cancel(socket, frame)
        elif frame.route == RESUME_ROUTE:
            await self._resume(socket, frame)
        else:
            await self._custom(socket, frame)

    async def _chat(self, socket: Socket, frame: ClientFrame, work: FrameTasks) -> None:
        check_chat(frame.body)
        body = parse_chat_body(frame.body)
        mode = self._chat_mode(frame.stream)
        request_id = frame.request_id or body.request_id or new_request_id()
        ids = {"session_id": body.session_id, "request_id": request_id}
        with self._signals.request(mode, **ids) as span, socket.admitting(request_id):
            submission = Submission(
                session_id=body.session_id,
                request=body.request,
                delivery_mode=(DeliveryMode.PUSH_STREAM if mode == "stream" else DeliveryMode.PUSH),
                budget=self._options.turn_timeout,
                request_id=request_id,
                scope=socket.user_id,
                trace=span.context,
            )
            turn = await self._admission.submit(submission)
            if not turn.known:
                socket.forget(request_id)
            socket.expect(request_id, stream=mode == "stream")
            socket.answer(queued(user_id=socket.user_id, **ids))
        if turn.known:
            await self._attach(socket, turn, work, stream=mode == "stream")
        else:
            self._signals.admitted(turn, mode)

    async def _attach(
        self, socket: Socket, turn: Admitted, work: FrameTasks, *, stream: bool
    ) -> None:
        """Bring a client that sent a frame again what it may have missed of its turn.

        A turn that runs is followed, since it may have been admitted by another surface, which
        pushes nothing.  With too many followed already its pushes must do.
        """
        reply = await self._replies.get(turn.reply_key)
        if isinstance(reply, StoredReply):
            self._follower.replay(socket, reply, stream=stream)
            return

        async def follow() -> None:
            await self._guarded(
                socket,
                turn.request_id,
                "resume",
                lambda _: self._follow(socket, turn, stream=stream),
            )

        work.start(follow)

    async def _follow(self, socket: Socket, turn: Admitted, *, stream: bool) -> None:
        request_id = turn.request_id
        after = socket.position(request_id) or BEGINNING
        if socket.has_ended(request_id) or not socket.start_resume(request_id, after):
            return
        try:
            if stream:
                await self._follower.stream(
                    socket, turn.reply_key, session_id=turn.session_id, after=after
                )
            else:
                await self._follower.end(socket, turn.reply_key)
        finally:
            socket.end_resume(request_id)

    async def _cancel(self, socket: Socket, frame: ClientFrame) -> None:
        key = reply_key(frame, socket.user_id)
        state = await self._admission.cancel(key)
        socket.answer(cancelled(state, request_id=key.request_id))

    async def _resume(self, socket: Socket, frame: ClientFrame) -> None:
        """Stream a turn's chunks behind the client's position until its end."""
        key = reply_key(frame, socket.user_id)
        after = read_position(frame.body.get("after"))
        found = await self._replies.get(key)
        if found is None:
            raise NotFoundError("No turn of this request_id", field="request_id")
        if not socket.start_resume(key.request_id, after):
            raise InvalidRequestError("This turn is being resumed already", field="request_id")
        try:
            # From this frame on the turn's frames come in order and from this position.
            state = {"state": "RESUMING", "after": str(after), "session_id": found.session_id}
            socket.answer(succeeded(state, request_id=key.request_id))
            await self._follower.stream(socket, key, session_id=found.session_id, after=after)
        finally:
            socket.end_resume(key.request_id)

    async def _custom(self, socket: Socket, frame: ClientFrame) -> None:
        message = {"message": dict(frame.raw), "user_id": socket.user_id}
        reply = await self._routes.call(frame.route, message)
        if reply is not None:
            socket.answer(succeeded(reply, request_id=frame.request_id))


def _too_much() -> TurnlineError:
    message = "Too many frames of this socket are being worked on; wait for their answers"
    return QueueFullError(message, scope="session", retry_after=1.0)
