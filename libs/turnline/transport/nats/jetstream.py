"""The few JetStream requests the adapter makes, with answers as values and errors in our words.

Knows the server's API, no queue of ours.  Answers are read as plain JSON, because nats-py's classes
leave out fields they do not know, and a check of objects must see them all.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nats.aio.msg import Msg

from turnline.errors import QueueFullError, TransportUnavailableError
from turnline.transport.nats.client import unavailable
from turnline.transport.nats.connection import Connection, status_of

MSG_ID = "Nats-Msg-Id"
# Seconds a producer should wait: a turn takes about as long, and there is no better guess.
FULL_RETRY_AFTER = 2.0

_NOT_FOUND = {404}
_GONE_CODES = {10037, 10057}  # no message found; what the store says to a sequence it lacks
_STORE_REFUSED = 10077


class ApiError(Exception):
    """The server refused a request.

    Attributes:
        code: like an HTTP status.
        err_code: the server's own, finer code.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code = int(error.get("code", 500))
        self.err_code = int(error.get("err_code", 0))
        self.description = str(error.get("description", ""))
        super().__init__(f"{self.description} ({self.err_code})")

    @property
    def not_found(self) -> bool:
        """Whether there is no such object or message."""
        return self.code in _NOT_FOUND or self.err_code in _GONE_CODES


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message as it lies in a stream.

    Attributes:
        at: when it was stored, seconds since the epoch.
    """

    subject: str
    sequence: int
    at: float
    headers: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The server's confirmation of a message."""

    sequence: int
    duplicate: bool


class JetStream:
    """Requests over one connection; every one may raise TransportUnavailableError."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def place(
        self, subject: str, raw: bytes, headers: dict[str, str] | None = None
    ) -> Placed:
        """Put a message on the stream that holds `subject`; return when it is stored.

        Raises:
            QueueFullError: no room in the stream, or in the subject's share of it.
        """
        answer = _read(await self._connection.request(subject, raw, headers=headers))
        if "error" in answer:
            raise _refused(ApiError(answer["error"]))
        return Placed(
            sequence=int(answer.get("seq", 0)), duplicate=bool(answer.get("duplicate", False))
        )

    async def first_on(self, stream: str, subject: str, *, behind: int = 0) -> Stored | None:
        """Give the oldest message left on a subject, or behind a sequence; None: there is none.

        Any replica may answer, one that lags too: it may still show what is gone, and not yet what
        is new, but never skips what is there.
        """
        asked = {"seq": behind + 1, "next_by_subj": subject}
        answer = await self._connection.request(
            f"$JS.API.DIRECT.GET.{stream}", json.dumps(asked).encode()
        )
        headers = answer.headers or {}
        if "Nats-Sequence" in headers:
            return _stored(headers, answer.data)
        if status_of(answer) == "404":
            return None
        raise unavailable("NATS can't read the stream now")

    async def last_on(self, stream: str, subject: str) -> tuple[int, bytes] | None:
        """Give (sequence, bytes) of the newest message on a subject, as the leader has it."""
        return await self._get(stream, {"last_by_subj": subject})

    async def holds(self, stream: str, sequence: int) -> bool:
        """Whether the leader has a message of that sequence."""
        return await self._get(stream, {"seq": sequence}) is not None

    async def get(self, stream: str, sequence: int) -> Stored | None:
        """Give a message by its sequence; None: it is gone."""
        asked = json.dumps({"seq": sequence}).encode()
        answer = await self._connection.request(f"$JS.API.DIRECT.GET.{stream}", asked)
        headers = answer.headers or {}
        return _stored(headers, answer.data) if "Nats-Sequence" in headers else None

    async def delete(self, stream: str, sequence: int) -> bool:
        """Delete a message; return whether it was there."""
        try:
            await self.call(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
        except ApiError as error:
            if error.not_found:
                return False
            raise unavailable(f"NATS deletes no message now: {error}") from error
        return True

    async def purge(self, stream: str) -> int:
        """Delete all messages; give how many there were."""
        try:
            return int((await self.call(f"STREAM.PURGE.{stream}"))["purged"])
        except ApiError as error:
            raise unavailable(f"NATS deletes no messages now: {error}") from error

    async def stream(self, name: str) -> dict[str, Any] | None:
        """Give what the server says of a stream; None: there is none."""
        return await self._info(f"STREAM.INFO.{name}")

    async def consumer(self, stream: str, name: str) -> dict[str, Any] | None:
        """Give what the server says of a consumer; None: there is none."""
        return await self._info(f"CONSUMER.INFO.{stream}.{name}")

    async def call(self, what: str, asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Make any request of the JetStream API.

        Raises:
            ApiError: the server refuses it.
        """
        payload = json.dumps(asked).encode() if asked is not None else b""
        answer = _read(await self._connection.request(f"$JS.API.{what}", payload))
        if "error" in answer:
            raise ApiError(answer["error"])
        return answer

    async def _info(self, what: str) -> dict[str, Any] | None:
        try:
            return await self.call(what)
        except ApiError as error:
            if error.not_found:
                return None
            raise unavailable(f"NATS tells nothing now: {error}") from error

    async def _get(self, stream: str, asked: Mapping[str, Any]) -> tuple[int, bytes] | None:
        try:
            answer = await self.call(f"STREAM.MSG.GET.{stream}", asked)
        except ApiError as error:
            if error.err_code in _GONE_CODES:
                return None
            raise unavailable(f"NATS can't read the stream now: {error}") from error
        message = answer["message"]
        return int(message["seq"]), base64.b64decode(message.get("data", ""))


def seconds_of(timestamp: str) -> float:
    """Read the server's form of a time as seconds since the epoch."""
    return datetime.fromisoformat(timestamp).timestamp()


def _read(answer: Msg) -> dict[str, Any]:
    try:
        found = json.loads(answer.data)
    except ValueError as error:
        raise unavailable("NATS gave an answer that can't be read") from error
    if not isinstance(found, dict):
        raise unavailable("NATS gave an answer that can't be read")
    return found


def _stored(headers: Mapping[str, str], raw: bytes) -> Stored:
    return Stored(
        subject=headers["Nats-Subject"],
        sequence=int(headers["Nats-Sequence"]),
        at=seconds_of(headers["Nats-Time-Stamp"]),
        headers=headers,
        raw=raw,
    )


def _refused(error: ApiError) -> QueueFullError | TransportUnavailableError:
    if error.err_code == _STORE_REFUSED and "maximum" in error.description:
        if "per subject" in error.description:
            return QueueFullError(
                "This session has too many turns waiting",
                scope="session",
                retry_after=FULL_RETRY_AFTER,
            )
        return QueueFullError(
            "The queue has too many turns waiting", scope="queue", retry_after=FULL_RETRY_AFTER
        )
    return unavailable(f"NATS did not store the message: {error}")
