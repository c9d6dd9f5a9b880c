"""Client sockets that API Gateway holds: who connects, what frames do, who has left.

API Gateway calls here once for `$connect`, for each frame and for `$disconnect`, from any process.
A call answers with one frame at most; everything else reaches the client by `PostToConnection`,
from whoever takes answers.  Knows no event, no HTTP and no queue.
"""

from collections.abc import Mapping
from typing import Any

from turnline.auth import AuthValidator, authenticate
from turnline.aws.inbox import APART_SECONDS, FRAME_SECONDS, Inbox
from turnline.errors import (
    Code,
    InternalError,
    NotFoundError,
    TurnlineError,
    UnauthenticatedError,
)
from turnline.frontdoor import Admission, StreamFrames, Submission, chat_response_frame
from turnline.gateway.custom import CustomRoutes
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
from turnline.gateway.handler import CANCEL_ROUTE, RESUME_ROUTE, GatewayOptions
from turnline.protocol import BEGINNING, DeliveryMode, new_request_id
from turnline.protocol.json_body import parse_chat_body
from turnline.push import Frame
from turnline.store import (
    Connection,
    ConnectionStore,
    ResponseStore,
    StoredReply,
)
from turnline.telemetry import get_logger

_log = get_logger("aws")

# No user's own: a user id holds no control character.
_OWNER = "\x1fowner-of "


class SocketDesk:
    """Handles what API Gateway tells of its sockets; one instance per process."""

    def __init__(
        self,
        *,
        connections: ConnectionStore,
        replies: ResponseStore,
        admission: Admission,
        routes: CustomRoutes,
        validator: AuthValidator | None,
        options: GatewayOptions,
        inbox: Inbox | None = None,
    ) -> None:
        """Wire it.

        Args:
            validator: None: only an authorizer of API Gateway lets anybody in.
            inbox: brings what is held; None: nothing is.
        """
        self._connections = connections
        self._replies = replies
        self._admission = admission
        self._routes = routes
        self._validator = validator
        self._options = options
        self._inbox = inbox

    async def connect(
        self, connection_id: str, *, endpoint: str, token: str | None, user_id: str = ""
    ) -> str:
        """Let a client in; give whose socket it is.

        Args:
            endpoint: where frames for it are posted.
            token: what the client brought; not looked at where `user_id` is given.
            user_id: whom an authorizer of API Gateway found it to be; empty: none did.

        Raises:
            UnauthenticatedError: no token, or none that is taken.
            StoreUnavailableError: the socket could not be noted.
        """
        if not user_id:
            if self._validator is None:
                raise UnauthenticatedError("Authentication failed")
            identity = await authenticate(self._validator, token, {"surface": "websocket"})
            user_id = identity.user_id
        # Its owner first: a socket that answers can reach can also be asked for.
        await self._connections.add(
            Connection(user_id=_OWNER + connection_id, connection_id=user_id, endpoint=endpoint)
        )
        await self._connections.add(
            Connection(user_id=user_id, connection_id=connection_id, endpoint=endpoint)
        )
        _log.info("connection.opened")
        return user_id

    async def disconnect(self, connection_id: str) -> None:
        """Forget a socket; no-op if it is unknown."""
        user_id = await self._owner(connection_id)
        if user_id is None:
            return
        await self._connections.remove(user_id, connection_id)
        await self._connections.remove(_OWNER + connection_id, user_id)

    async def knows(self, connection_id: str) -> bool:
        """Whether a socket was let in and has not left."""
        return await self._owner(connection_id) is not None

    async def give_held(
        self, connection_id: str, user_id: str, *, endpoint: str, seconds: float = APART_SECONDS
    ) -> None:
        """Send a socket what was held for its user; once it is open, and as often as wanted."""
        if self._inbox is not None:
            await self._inbox.give_to(
                Connection(user_id=user_id, connection_id=connection_id, endpoint=endpoint),
                seconds=seconds,
            )

    async def message(
        self, connection_id: str, text: str, *, endpoint: str, user_id: str = ""
    ) -> Frame | None:
        """Act on one frame of a client; give the frame that answers it, None: nothing to say.

        Every outcome, good or bad, is a frame.  What is held for the user is sent before it.

        Args:
            endpoint: where frames for the socket are posted.
            user_id: as for `connect`; empty: who was let in then.
        """
        request_id = ""
        try:
            raw = decode_frame(text)
            request_id = request_id_in(raw)
            frame = read_frame(raw, chat_route=self._options.chat_route)
            owner = user_id or await self._owner(connection_id)
            if not owner:
                raise UnauthenticatedError("This socket is not known; connect again")
            await self.give_held(connection_id, owner, endpoint=endpoint, seconds=FRAME_SECONDS)
            return await self._act(frame, owner)
        except TurnlineError as error:
            return failed(error, request_id=request_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, its client is answered
            _log.error(
                "request.failed",
                surface="websocket",
                mode="async",
                code=Code.INTERNAL.value,
                exc_info=error,
            )
            return failed(InternalError("Request processing failed"), request_id=request_id)

    async def _owner(self, connection_id: str) -> str | None:
        """Give whose socket it is, by what `connect` noted; None: nobody let it in."""
        found = await self._connections.connections_of(_OWNER + connection_id)
        return found[-1].connection_id if found else None

    async def _act(self, frame: ClientFrame, user_id: str) -> Frame | None:
        if frame.route == self._options.chat_route:
            return await self._chat(frame, user_id)
        if frame.route == CANCEL_ROUTE:
            key = reply_key(frame, user_id)
            state = await self._admission.cancel(key)
            return cancelled(state, request_id=key.request_id)
        if frame.route == RESUME_ROUTE:
            return await self._resume(frame, user_id)
        message: dict[str, Any] = {"message": dict(frame.raw), "user_id": user_id}
        reply: Mapping[str, Any] | None = await self._routes.call(frame.route, message)
        return None if reply is None else succeeded(reply, request_id=frame.request_id)

    async def _chat(self, frame: ClientFrame, user_id: str) -> Frame:
        check_chat(frame.body)
        body = parse_chat_body(frame.body)
        streams = self._streams(frame)
        request_id = frame.request_id or body.request_id or new_request_id()
        turn = await self._admission.submit(
            Submission(
                session_id=body.session_id,
                request=body.request,
                delivery_mode=DeliveryMode.PUSH_STREAM if streams else DeliveryMode.PUSH,
                budget=self._options.turn_timeout,
                request_id=request_id,
                scope=user_id,
            )
        )
        if turn.known:
            # Sent again, perhaps because its answer was missed: nobody pushes that once more.
            reply = await self._replies.get(turn.reply_key)
            if isinstance(reply, StoredReply):
                return _end(reply, streams=streams)
        else:
            _log.info(
                "turn.admitted",
                request_id=request_id,
                session_id=body.session_id,
                surface="websocket",
                mode="stream" if streams else "async",
            )
        return queued(request_id=request_id, session_id=body.session_id, user_id=user_id)

    async def _resume(self, frame: ClientFrame, user_id: str) -> Frame:
        """Give the end of a turn; of one that runs, that its pieces come by themselves."""
        key = reply_key(frame, user_id)
        found = await self._replies.get(key)
        if found is None:
            raise NotFoundError("No turn of this request_id", field="request_id")
        if isinstance(found, StoredReply):
            return _end(found, streams=self._streams(frame))
        state = {"state": "RUNNING", "session_id": found.session_id}
        return succeeded(state, request_id=key.request_id)

    def _streams(self, frame: ClientFrame) -> bool:
        return self._options.streams if frame.stream is None else frame.stream


def _end(reply: StoredReply, *, streams: bool) -> Frame:
    """The frame of a turn's end, with its whole text."""
    if not streams:
        return chat_response_frame(reply)
    frames = StreamFrames(session_id=reply.session_id, request_id=reply.request_id, after=BEGINNING)
    *_, (_, frame) = frames.frames(reply)
    return {**frame, "type": "STREAM_CHUNK"}
