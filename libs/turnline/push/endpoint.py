"""What answers pushes of other pods: to one connection held here, or to all of a user's.

Shared by the gateway, which holds sockets, and the push endpoint, which finds them.  Knows no web
framework.  The token is a secret shared by the pods (`websocket_api.push_auth_token`); it is
compared in constant time, and without one nothing is answered.
"""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from turnline.errors import (
    Code,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    UnauthenticatedError,
)
from turnline.protocol import new_request_id
from turnline.push.frames import identified
from turnline.push.port import ConnectionPush, Frame
from turnline.push.users import UserPush

MAX_FRAMES = 1_000


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of a push to a user.

    Attributes:
        reached: how many sockets took it.
        held: none did, and it is kept for the user's next one.
    """

    reached: int
    held: bool


class PushHandler:
    """Checks push requests and carries them out."""

    def __init__(
        self,
        *,
        token: str,
        local: ConnectionPush | None,
        users: UserPush | None,
        inbox: bool = True,
        new_id: Callable[[], str] = new_request_id,
    ) -> None:
        """Wire it.

        Args:
            token: the shared secret; empty turns the endpoint off.
            local: this pod's sockets; None on a pod that holds none.
            users: push to users; None where users are not looked up.
            inbox: whether frames are ever held (`websocket_api.inbox`), whatever a push asks for.
            new_id: mints the id of a frame that was given none.
        """
        self._token = token.encode()
        self._local = local
        self._users = users
        self._inbox = inbox
        self._new_id = new_id

    def authenticate(self, token: str | None) -> None:
        """Check the caller's token.

        Raises:
            ForbiddenError: no token is configured, so the endpoint is off.
            UnauthenticatedError: a wrong token, or none.
        """
        if not self._token:
            raise ForbiddenError(
                "push endpoint is disabled: websocket_api.push_auth_token is not configured"
            )
        if token is None or not hmac.compare_digest(self._token, token.encode()):
            raise UnauthenticatedError("invalid push token")

    async def to_connection(self, body: object) -> None:
        """Push `{"connection_id", "message"}` (or `"messages"`, in order) to a socket here.

        Raises:
            InvalidRequestError: a field is missing or of a wrong type.
            NotFoundError: this pod does not hold the connection.
        """
        connection_id, frames = _read(body, key="connection_id")
        if self._local is None or not await self._local.push(connection_id, frames):
            raise NotFoundError(
                f"connection {connection_id[:64]!r} is not held by this pod",
                field="connection_id",
            )

    async def to_user(self, body: object) -> Pushed:
        """Push `{"user_id", "message"}` (or `"messages"`) to all of a user's sockets, or hold it.

        Raises:
            InvalidRequestError: a field is missing or of a wrong type.
            NotFoundError: this pod looks no users up.
            StoreUnavailableError: the connection store did not answer.
        """
        user_id, frames = _read(body, key="user_id")
        return await self.frames_to_user(user_id, frames, hold=True)

    async def frames_to_user(self, user_id: str, frames: Sequence[Frame], *, hold: bool) -> Pushed:
        """Push frames to all of a user's sockets, in order.

        A frame of no turn is sent with a `push_id`: its own, or a new one.  A socket shows one
        once, so what gave its frames ids may push them again.

        Args:
            user_id: not empty.
            frames: 1 to MAX_FRAMES.
            hold: keep the frames for the user's next connection if no socket took them, where
                there is an inbox.

        Raises:
            InvalidRequestError: a `push_id` is no id.
            NotFoundError: this pod does not look users up.
            StoreUnavailableError: the connection store did not answer.
        """
        if self._users is None:
            raise NotFoundError("this pod does not push to users")
        hold = hold and self._inbox
        push = self._users.push_or_hold if hold else self._users.push
        reached = await push(user_id, identified(frames, self._new_id))
        return Pushed(reached, held=hold and not reached)


def _read(body: object, *, key: str) -> tuple[str, Sequence[Frame]]:
    if not isinstance(body, dict):
        raise InvalidRequestError(
            "the body must be a JSON object", field="body", code=Code.MALFORMED_BODY
        )
    name: Any = body.get(key)
    if not isinstance(name, str) or not name:
        raise InvalidRequestError(f"{key} must be a non-empty string", field=key)
    if ("message" in body) == ("messages" in body):
        raise InvalidRequestError("give either message or messages", field="message")
    frames: Any = body["messages"] if "messages" in body else [body["message"]]
    if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
        raise InvalidRequestError("a message must be a JSON object", field="message")
    if not 0 < len(frames) <= MAX_FRAMES:
        raise InvalidRequestError(f"1 to {MAX_FRAMES} messages, please", field="messages")
    return name, frames
