"""The failure table: stable code -> whose fault, whether to retry, HTTP and gRPC status.

Codes are the API, texts are not (NATS ADR-7 makes the same choice).  Everything that turns an
error into something a caller sees (HTTP, WebSocket, queue payload, gRPC) reads this table, so a
code means one thing everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Code(StrEnum):
    """What went wrong, stable across releases."""

    INVALID_REQUEST = "invalid_request"
    MALFORMED_BODY = "malformed_body"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    UNKNOWN_AGENT = "unknown_agent"
    REQUEST_ID_REUSED = "request_id_reused"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    SESSION_QUEUE_FULL = "session_queue_full"
    QUEUE_FULL = "queue_full"
    DRAINING = "draining"
    TURN_CANCELLED = "turn_cancelled"
    TURN_DEADLINE_EXCEEDED = "turn_deadline_exceeded"
    REPLY_NOT_READY = "reply_not_ready"
    AGENT_FAILED = "agent_failed"
    UNDECODABLE = "undecodable"
    FENCED = "fenced"
    TRANSPORT_UNAVAILABLE = "transport_unavailable"
    STORE_UNAVAILABLE = "store_unavailable"
    CONFIGURATION = "configuration"
    INTERNAL = "internal"


class Fault(StrEnum):
    """Who has to change something."""

    CALLER = "caller"
    AGENT = "agent"
    TURNLINE = "turnline"
    DEPENDENCY = "dependency"
    OPERATOR = "operator"


class RetryHint(StrEnum):
    """What the caller should do next: the same request again never, at once, or after a pause."""

    NEVER = "never"
    NOW = "now"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMeaning:
    """One row of the failure table.

    Attributes:
        http_status: status of an HTTP answer; also stored with a failed turn.
        grpc_status: name of the `google.rpc.Code` that corresponds to it.
        fault: who has to change something.
        retry: whether sending the same request again can help.
    """

    http_status: int
    grpc_status: str
    fault: Fault
    retry: RetryHint


def _row(http: int, grpc: str, fault: Fault, retry: RetryHint = RetryHint.NEVER) -> CodeMeaning:
    return CodeMeaning(http_status=http, grpc_status=grpc, fault=fault, retry=retry)


CODES: Mapping[Code, CodeMeaning] = MappingProxyType(
    {
        Code.INVALID_REQUEST: _row(400, "INVALID_ARGUMENT", Fault.CALLER),
        Code.MALFORMED_BODY: _row(422, "INVALID_ARGUMENT", Fault.CALLER),
        Code.UNAUTHENTICATED: _row(401, "UNAUTHENTICATED", Fault.CALLER),
        Code.FORBIDDEN: _row(403, "PERMISSION_DENIED", Fault.CALLER),
        Code.NOT_FOUND: _row(404, "NOT_FOUND", Fault.CALLER),
        Code.METHOD_NOT_ALLOWED: _row(405, "UNIMPLEMENTED", Fault.CALLER),
        Code.UNKNOWN_AGENT: _row(400, "INVALID_ARGUMENT", Fault.CALLER),
        Code.REQUEST_ID_REUSED: _row(422, "ALREADY_EXISTS", Fault.CALLER),
        Code.PAYLOAD_TOO_LARGE: _row(413, "RESOURCE_EXHAUSTED", Fault.CALLER),
        Code.SESSION_QUEUE_FULL: _row(429, "RESOURCE_EXHAUSTED", Fault.CALLER, RetryHint.AFTER),
        Code.QUEUE_FULL: _row(503, "RESOURCE_EXHAUSTED", Fault.OPERATOR, RetryHint.AFTER),
        Code.DRAINING: _row(503, "UNAVAILABLE", Fault.OPERATOR, RetryHint.AFTER),
        # 499 is what google.rpc.Code names as the HTTP mapping of CANCELLED.
        Code.TURN_CANCELLED: _row(499, "CANCELLED", Fault.CALLER),
        Code.TURN_DEADLINE_EXCEEDED: _row(504, "DEADLINE_EXCEEDED", Fault.AGENT),
        Code.REPLY_NOT_READY: _row(404, "NOT_FOUND", Fault.CALLER, RetryHint.AFTER),
        Code.AGENT_FAILED: _row(500, "INTERNAL", Fault.AGENT),
        Code.UNDECODABLE: _row(500, "DATA_LOSS", Fault.CALLER),
        Code.FENCED: _row(500, "ABORTED", Fault.TURNLINE),
        Code.TRANSPORT_UNAVAILABLE: _row(503, "UNAVAILABLE", Fault.DEPENDENCY, RetryHint.AFTER),
        Code.STORE_UNAVAILABLE: _row(503, "UNAVAILABLE", Fault.DEPENDENCY, RetryHint.AFTER),
        Code.CONFIGURATION: _row(500, "FAILED_PRECONDITION", Fault.OPERATOR),
        Code.INTERNAL: _row(500, "INTERNAL", Fault.TURNLINE),
    }
)
