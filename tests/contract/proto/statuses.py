"""How every failure of the table ends a call over gRPC, for clients to be held against.

    PYTHONPATH=libs:gen/python:tests python tests/contract/proto/statuses.py

writes `statuses.json` anew.  Each row is one ended call:

| key | is |
|---|---|
| `name` | what it is called in tests |
| `status` | of the call: its `google.rpc.Code`, by name and number, and its text |
| `details` | the `google.rpc` messages that go with it, as JSON; none without a word of its |
| `trailer` | the same as the bytes of `grpc-status-details-bin`, hexadecimal |
| `error` | what a client tells its caller |
| `tries` | how many calls a client makes that may make three |
"""

import json
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from turnline.errors import CODES, Code, RetryHint
from turnline.hosting.grpc_errors import DETAILS_KEY, status_code, trailers
from turnline.protocol import Failure

STATUSES = Path(__file__).absolute().with_name("statuses.json")

REQUEST_ID = "r1"
SESSION_ID = "s1"
# Seconds; tests wait for them.
PAUSE = 0.02
LONG_PAUSE = 0.4

# A server that is not there, one that is asked to stop, and a proxy or library on the way.
WORDLESS = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNKNOWN,
)
# The same call may be made again: it came to no turn, or to one of its own name.
REPEATED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED)


def rows() -> list[dict[str, Any]]:
    """Give all rows: the failure table, then statuses without a word of the server."""
    return [
        *(_of_code(code.value, code, PAUSE) for code in Code),
        _of_code("draining_for_long", Code.DRAINING, LONG_PAUSE),
        *(_wordless(status) for status in WORDLESS),
    ]


def text() -> str:
    """Give what the file holds."""
    return json.dumps(rows(), indent=2, sort_keys=True) + "\n"


def _of_code(name: str, code: Code, pause: float) -> dict[str, Any]:
    meaning = CODES[code]
    again = meaning.retry is not RetryHint.NEVER
    failure = Failure(
        code=code.value,
        message=f"What is said of {code.value}",
        status_code=meaning.http_status,
        retry=meaning.retry,
        retry_after=pause if meaning.retry is RetryHint.AFTER else None,
        field="prompt" if code is Code.INVALID_REQUEST else "",
    )
    raw = dict(trailers(failure, request_id=REQUEST_ID, session_id=SESSION_ID))[DETAILS_KEY]
    assert isinstance(raw, bytes)
    status = _sorted(Status.FromString(raw))
    return {
        "name": name,
        "status": _status(status_code(failure), failure.message),
        "details": json_format.MessageToDict(status)["details"],
        "trailer": status.SerializeToString(deterministic=True).hex(),
        "error": {
            "code": failure.code,
            "message": failure.message,
            "field": failure.field,
            "status_code": failure.status_code,
            "retryable": again,
            "retry_after": failure.retry_after or 0,
            "request_id": REQUEST_ID,
        },
        "tries": 3 if again else 1,
    }


def _sorted(status: Status) -> Status:
    """Give the same with its map in order, so that the same table makes the same bytes."""
    for detail in status.details:
        info = ErrorInfo()
        if detail.Unpack(info):
            detail.Pack(info, deterministic=True)
    return status


def _wordless(status: grpc.StatusCode) -> dict[str, Any]:
    name = status.name.lower()
    said = f"A status of {name} alone"
    again = status in REPEATED
    return {
        "name": f"{name}_alone",
        "status": _status(status, said),
        "details": [],
        "trailer": "",
        "error": {
            "code": name,
            "message": said,
            "field": "",
            "status_code": 0,
            "retryable": again,
            "retry_after": 0,
            "request_id": REQUEST_ID,
        },
        "tries": 3 if again else 1,
    }


def _status(status: grpc.StatusCode, said: str) -> dict[str, Any]:
    number, _ = status.value
    return {"code": status.name, "number": number, "message": said}


if __name__ == "__main__":
    STATUSES.write_text(text(), encoding="utf-8")
