"""The exceptions Turnline raises.

    TurnlineError
    ├── InvalidRequestError        a field of the request is missing, empty, too long or mistyped
    ├── PayloadTooLargeError       body or message over the limit
    ├── UnauthenticatedError       no token, or one the validator refuses
    ├── ForbiddenError             a valid caller may not do this
    ├── NotFoundError              unknown (or another user's) request, route or message
    ├── UnknownAgentError          no agent of that name
    ├── RequestIdReusedError       same request id, other body
    ├── QueueFullError             bounded queue is full (the session's share, or all of it)
    ├── DrainingError              the process is shutting down
    ├── TurnCancelledError         the caller cancelled the turn
    ├── TurnDeadlineExceededError  the turn did not finish in time
    ├── AgentFailedError           the agent failed for good
    ├── UndecodableError           bytes on a queue that are no envelope
    ├── FencedError                a newer claim of the session exists: stop, write nothing
    ├── TransportUnavailableError  the broker did not confirm in time
    ├── StoreUnavailableError      the store did not answer in time
    ├── ConfigurationError         settings do not fit; lists all faults
    └── InternalError              a fault of Turnline's own

Texts are for people and may change; `code` is for programs and does not.  Texts of errors that can
reach a client never hold prompts, secrets or addresses.
"""

from collections.abc import Sequence
from typing import ClassVar

from turnline.errors.codes import CODES, Code, CodeMeaning


class TurnlineError(Exception):
    """Root of all errors Turnline raises on purpose.

    Attributes:
        code: row of the failure table (`CODES`).
        message: one sentence for a person; safe to show to a client.
        field: dotted name of the request field or setting at fault; empty when none is.
        retry_after: seconds to wait before trying again; None when waiting does not help or no
            time is known.
    """

    code: Code = Code.INTERNAL

    def __init__(self, message: str, *, field: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after = retry_after

    @property
    def meaning(self) -> CodeMeaning:
        """The row of the failure table for this error."""
        return CODES[self.code]


class InvalidRequestError(TurnlineError):
    """A request field is missing, empty, too long or contradicts another (caller; never retry)."""

    code = Code.INVALID_REQUEST

    def __init__(self, message: str, *, field: str, code: Code = Code.INVALID_REQUEST) -> None:
        super().__init__(message, field=field)
        self.code = code


class PayloadTooLargeError(TurnlineError):
    """A body or message is over `limit_bytes` (caller; never retry)."""

    code = Code.PAYLOAD_TOO_LARGE

    def __init__(self, message: str, *, limit_bytes: int, field: str = "body") -> None:
        super().__init__(message, field=field)
        self.limit_bytes = limit_bytes


class UnauthenticatedError(TurnlineError):
    """No token, or a token the validator refuses (caller; get a new token)."""

    code = Code.UNAUTHENTICATED


class ForbiddenError(TurnlineError):
    """The caller is known but may not do this (caller; never retry)."""

    code = Code.FORBIDDEN


class NotFoundError(TurnlineError):
    """Nothing of that name; another user's things look the same (caller; never retry)."""

    code = Code.NOT_FOUND


class UnknownAgentError(TurnlineError):
    """The request names an agent nobody registered (caller; never retry)."""

    code = Code.UNKNOWN_AGENT

    def __init__(self, message: str = "No agent available") -> None:
        super().__init__(message, field="agent")


class RequestIdReusedError(TurnlineError):
    """The request id was used before with another body (caller; use a new id)."""

    code = Code.REQUEST_ID_REUSED

    def __init__(self, request_id: str) -> None:
        super().__init__(
            "This request_id was used before with a different body; use a new request_id",
            field="request_id",
        )
        self.request_id = request_id


class QueueFullError(TurnlineError):
    """A bounded queue takes no more now (retry after a pause).

    `code` is SESSION_QUEUE_FULL (429) when the session's own share is used up, and QUEUE_FULL
    (503) when the whole queue is.
    """

    code: Code = Code.QUEUE_FULL
    SCOPES: ClassVar[dict[str, Code]] = {
        "session": Code.SESSION_QUEUE_FULL,
        "queue": Code.QUEUE_FULL,
    }

    def __init__(self, message: str, *, scope: str, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.code = self.SCOPES[scope]


class DrainingError(TurnlineError):
    """The process is shutting down and takes no more work (retry elsewhere, now or soon)."""

    code = Code.DRAINING

    def __init__(
        self, message: str = "The server is shutting down; try again", *, retry_after: float = 1.0
    ) -> None:
        super().__init__(message, retry_after=retry_after)


class TurnCancelledError(TurnlineError):
    """The caller cancelled the turn (caller; never retry under the same id)."""

    code = Code.TURN_CANCELLED

    def __init__(self, message: str = "The turn was cancelled") -> None:
        super().__init__(message)


class TurnDeadlineExceededError(TurnlineError):
    """The turn did not finish before its deadline (agent or load; a new request may work)."""

    code = Code.TURN_DEADLINE_EXCEEDED

    def __init__(self, message: str = "The turn did not finish before its deadline") -> None:
        super().__init__(message)


class AgentFailedError(TurnlineError):
    """The agent failed for good; the text names no detail of the agent's own exception."""

    code = Code.AGENT_FAILED


class UndecodableError(TurnlineError):
    """Bytes on a queue are no envelope of a version this process reads (producer; never retry)."""

    code = Code.UNDECODABLE


class FencedError(TurnlineError):
    """A newer claim of the session exists, or the lease ran out: stop and write nothing more."""

    code = Code.FENCED


class TransportUnavailableError(TurnlineError):
    """The broker did not confirm in time (dependency; retry after a pause)."""

    code = Code.TRANSPORT_UNAVAILABLE


class StoreUnavailableError(TurnlineError):
    """The store did not answer in time (dependency; retry after a pause)."""

    code = Code.STORE_UNAVAILABLE


class ConfigurationError(TurnlineError):
    """Settings do not fit; start-up stops (operator).

    Attributes:
        faults: every fault found, one sentence each, in reading order, each with its fix.
    """

    code = Code.CONFIGURATION

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        lines = "\n".join(f"  - {fault}" for fault in self.faults)
        super().__init__(f"The configuration has {len(self.faults)} fault(s):\n{lines}")


class InternalError(TurnlineError):
    """A fault of Turnline's own; details are in the log, not in the text."""

    code = Code.INTERNAL

    def __init__(self, message: str = "Internal error") -> None:
        super().__init__(message)
