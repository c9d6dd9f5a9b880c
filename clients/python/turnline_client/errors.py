"""The one error of this client, and how it is read from a gRPC status or from a failed turn."""

import grpc
import grpc.aio
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from turnline_client._wire import failure_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_FAILURE_URL = "type.googleapis.com/turnline.v1.Failure"
# Of a status that brings no failure: nobody there, or a reader who did not read for long.
_RETRYABLE_STATUSES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED)
_RETRYABLE_HINTS = (failure_pb2.RETRY_HINT_NOW, failure_pb2.RETRY_HINT_AFTER)

STREAM_GAP = "stream_gap"
"""Code of the error a stream ends with when pieces of it are no longer kept."""


class TurnlineError(Exception):
    """A call that was refused, a turn that failed, or a server that cannot be reached.

    Attributes:
        code: what went wrong, stable across releases (`queue_full`, `agent_failed`): Turnline's
            failure code, else the name of the gRPC status in lower case (`unavailable`).
        message: one sentence for a person; may change between releases.
        field: dotted name of the request field at fault; empty when none is.
        retryable: whether the same request, with the same `request_id`, may work later.
        retry_after: seconds the server asks to wait before that; None when it asks for none.
        status_code: HTTP status of the failure; 0 when the server named none.
        grpc_status: name of the call's gRPC status; empty where a turn's end tells the failure.
        request_id / session_id: of the turn, as far as they are known; empty otherwise.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
        status_code: int = 0,
        grpc_status: str = "",
        request_id: str = "",
        session_id: str = "",
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.field = field
        self.retryable = retryable
        self.retry_after = retry_after
        self.status_code = status_code
        self.grpc_status = grpc_status
        self.request_id = request_id
        self.session_id = session_id


def closed(request_id: str) -> TurnlineError:
    """Make the error of a call whose client was closed."""
    return TurnlineError("cancelled", "the client was closed", request_id=request_id)


def from_failure(
    failure: failure_pb2.Failure,
    *,
    status_code: int = 0,
    grpc_status: str = "",
    request_id: str = "",
    session_id: str = "",
) -> TurnlineError:
    """Make the error of a failure.

    Args:
        status_code: what the turn ended with; 0 has the failure's own.
    """
    pause = failure.retry_after.ToNanoseconds() / 1e9 if failure.HasField("retry_after") else None
    return TurnlineError(
        failure.code,
        failure.message,
        field=failure.field,
        retryable=failure.retry in _RETRYABLE_HINTS,
        retry_after=pause,
        status_code=status_code or failure.status_code or 500,
        grpc_status=grpc_status,
        request_id=request_id,
        session_id=session_id,
    )


def from_rpc(error: grpc.aio.AioRpcError, *, request_id: str = "") -> TurnlineError:
    """Make the error of a call that ended with a status; `request_id` where the status has none."""
    made = _read(error, request_id)
    made.__cause__ = error
    return made


def _read(error: grpc.aio.AioRpcError, request_id: str) -> TurnlineError:
    failure, info, pause = _details(error)
    name: str = error.code().name
    if failure is not None:
        return from_failure(
            failure,
            grpc_status=name,
            request_id=info.metadata.get("request_id", request_id),
            session_id=info.metadata.get("session_id", ""),
        )
    # Said by a library or by something on the way, not by Turnline.
    return TurnlineError(
        name.lower(),
        error.details() or "the call failed",
        retryable=error.code() in _RETRYABLE_STATUSES,
        retry_after=pause,
        grpc_status=name,
        request_id=request_id,
    )


def _details(
    error: grpc.aio.AioRpcError,
) -> tuple[failure_pb2.Failure | None, ErrorInfo, float | None]:
    failure, info, retry = None, ErrorInfo(), RetryInfo()
    raw = dict(error.trailing_metadata() or ()).get(_DETAILS_KEY, b"")
    status = Status.FromString(raw) if isinstance(raw, bytes) else Status()
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(retry)
        if detail.type_url == _FAILURE_URL:
            failure = failure_pb2.Failure.FromString(detail.value)
    pause = retry.retry_delay.ToNanoseconds() / 1e9 if retry.HasField("retry_delay") else None
    return failure, info, pause
