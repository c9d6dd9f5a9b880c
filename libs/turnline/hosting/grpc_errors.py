"""Failures as gRPC answers: status from the failure table, details as `google.rpc` messages.

Clients in every language can read them: ErrorInfo holds our stable code and the ids that are
known, BadRequest the field at fault, RetryInfo the pause, and our own Failure the whole of it.  A
client with a retry policy keeps that pause by itself (`grpc-retry-pushback-ms`, gRFC A6).  Knows
no service.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import grpc
import grpc.aio
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from turnline.errors import CODES
from turnline.protocol import Failure
from turnline.protocol.messages import write_failure
from turnline.v1 import failure_pb2

DOMAIN = "turnline"
DETAILS_KEY = "grpc-status-details-bin"
PUSHBACK_KEY = "grpc-retry-pushback-ms"

Trailers = tuple[tuple[str, str | bytes], ...]

# Clients take 8 KiB of trailers, unless told otherwise, and a text is in them up to four times.
_MAX_TEXT_BYTES = 512

# A status waits behind what its reader has not read, and need not be waited for.
_ABORT_SECONDS = 0.2

# For a status that is not its code's own: an agent's, or of a code this version does not know.
# These pairs are those google.rpc.Code names, the other way round.
_BY_HTTP_STATUS = MappingProxyType(
    {
        400: grpc.StatusCode.INVALID_ARGUMENT,
        401: grpc.StatusCode.UNAUTHENTICATED,
        403: grpc.StatusCode.PERMISSION_DENIED,
        404: grpc.StatusCode.NOT_FOUND,
        409: grpc.StatusCode.ABORTED,
        413: grpc.StatusCode.RESOURCE_EXHAUSTED,
        422: grpc.StatusCode.INVALID_ARGUMENT,
        429: grpc.StatusCode.RESOURCE_EXHAUSTED,
        499: grpc.StatusCode.CANCELLED,
        501: grpc.StatusCode.UNIMPLEMENTED,
        503: grpc.StatusCode.UNAVAILABLE,
        504: grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)


def status_code(failure: Failure) -> grpc.StatusCode:
    """Give the gRPC status of a failure.

    That of its code's row, unless its HTTP status is not the row's: then the one nearest to that.
    """
    code = failure.known_code
    if code is not None and CODES[code].http_status == failure.status_code:
        return grpc.StatusCode[CODES[code].grpc_status]
    nearest = (
        grpc.StatusCode.FAILED_PRECONDITION
        if failure.status_code < 500
        else grpc.StatusCode.INTERNAL
    )
    return _BY_HTTP_STATUS.get(failure.status_code, nearest)


def trailers(failure: Failure, *, request_id: str = "", session_id: str = "") -> Trailers:
    """Give the trailing metadata that goes with a failure's status.

    Args:
        request_id / session_id: of the turn it is about; empty where there is none.
    """
    code, _ = status_code(failure).value
    status = Status(code=code, message=_short(failure.message))
    for detail in _details(failure, {"request_id": request_id, "session_id": session_id}):
        status.details.add().Pack(detail)
    details: Trailers = ((DETAILS_KEY, status.SerializeToString()),)
    if failure.retry_after is None:
        return details
    return (*details, (PUSHBACK_KEY, str(math.ceil(failure.retry_after * 1000))))


async def end_call(
    context: grpc.aio.ServicerContext[Any, Any],
    failure: Failure,
    *,
    request_id: str = "",
    session_id: str = "",
) -> None:
    """End a call with a failure; see `trailers`.

    Returns only where the status waits for a reader who does not read.

    Raises:
        grpc.aio.AbortError: the call is over; let it pass.
    """
    trailing = trailers(failure, request_id=request_id, session_id=session_id)
    await abort(context, status_code(failure), _short(failure.message), trailing)


async def abort(
    context: grpc.aio.ServicerContext[Any, Any],
    status: grpc.StatusCode,
    text: str,
    trailing: Trailers = (),
) -> None:
    """End a call with a status, as `end_call` does with a failure."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ABORT_SECONDS):
            await context.abort(status, text, trailing)


def _details(failure: Failure, ids: dict[str, str]) -> Iterator[Message]:
    known = {name: value for name, value in ids.items() if value}
    metadata = {"retry": failure.retry.value, **known}
    yield ErrorInfo(reason=failure.code, domain=DOMAIN, metadata=metadata)
    if failure.field:
        violation = BadRequest.FieldViolation(
            field=failure.field, description=_short(failure.message)
        )
        yield BadRequest(field_violations=[violation])
    if failure.retry_after is not None:
        pause = Duration()
        pause.FromNanoseconds(int(failure.retry_after * 1_000_000_000))
        yield RetryInfo(retry_delay=pause)
    whole = failure_pb2.Failure()
    write_failure(failure, whole)
    whole.message = _short(failure.message)
    yield whole


def _short(text: str) -> str:
    raw = text.encode()
    if len(raw) <= _MAX_TEXT_BYTES:
        return text
    return raw[: _MAX_TEXT_BYTES - 3].decode(errors="ignore") + "…"
