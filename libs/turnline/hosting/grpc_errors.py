"""Errors as gRPC answers: status from the failure table, details as `google.rpc` messages.

Clients in every language can read them: ErrorInfo holds our stable code, BadRequest the field at
fault, RetryInfo the pause.  A client with a retry policy keeps that pause by itself
(`grpc-retry-pushback-ms`, gRFC A6).  Knows no service.
"""

import math

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from turnline.errors import TurnlineError

DOMAIN = "turnline"
DETAILS_KEY = "grpc-status-details-bin"
PUSHBACK_KEY = "grpc-retry-pushback-ms"

Trailers = tuple[tuple[str, str | bytes], ...]


def status_code(error: TurnlineError) -> grpc.StatusCode:
    """Give the gRPC status of an error."""
    return grpc.StatusCode[error.meaning.grpc_status]


def trailers(error: TurnlineError) -> Trailers:
    """Give the trailing metadata that goes with an error's status."""
    code, _ = status_code(error).value
    status = Status(code=code, message=error.message)
    for detail in _details(error):
        status.details.add().Pack(detail)
    details: Trailers = ((DETAILS_KEY, status.SerializeToString()),)
    if error.retry_after is None:
        return details
    return (*details, (PUSHBACK_KEY, str(math.ceil(error.retry_after * 1000))))


def _details(error: TurnlineError) -> list[Message]:
    metadata = {"retry": error.meaning.retry.value}
    details: list[Message] = [
        ErrorInfo(reason=error.code.value, domain=DOMAIN, metadata=metadata),
    ]
    if error.field:
        violation = BadRequest.FieldViolation(field=error.field, description=error.message)
        details.append(BadRequest(field_violations=[violation]))
    if error.retry_after is not None:
        pause = Duration()
        pause.FromNanoseconds(int(error.retry_after * 1_000_000_000))
        details.append(RetryInfo(retry_delay=pause))
    return details
