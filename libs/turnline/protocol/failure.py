"""A turn's failure as it travels on queues and is stored beside replies."""

from dataclasses import dataclass

from turnline.errors import CODES, Code, RetryHint, TurnlineError


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a turn has no reply.

    Attributes:
        code: row of the failure table; an unknown one from a newer producer is kept as text.
        message: one sentence, safe to show to a client.
        status_code: HTTP status, 400 or more.
        retry: whether the same request can be sent again.
        retry_after: seconds; None when no time is known.
        field: request field at fault; empty when none is.
    """

    code: str
    message: str
    status_code: int
    retry: RetryHint = RetryHint.NEVER
    retry_after: float | None = None
    field: str = ""

    @classmethod
    def from_error(cls, error: TurnlineError) -> "Failure":
        """Describe an error by its row of the failure table."""
        return cls(
            code=error.code.value,
            message=error.message,
            status_code=error.meaning.http_status,
            retry=error.meaning.retry,
            retry_after=error.retry_after,
            field=error.field,
        )

    @property
    def known_code(self) -> Code | None:
        """The code as a row of this version's table; None for a newer producer's code."""
        return Code(self.code) if self.code in CODES else None
