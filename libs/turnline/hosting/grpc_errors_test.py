"""Failures as statuses, and how much of them fits into an answer."""

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from turnline.errors import CODES, Code, QueueFullError
from turnline.hosting.grpc_errors import status_code, trailers
from turnline.protocol import Failure
from turnline.v1 import failure_pb2

# What a client takes unless it is told otherwise; keys and framing count as well.
_MAX_TRAILER_BYTES = 8192


def failed(code: str, status: int, message: str = "no", *, field: str = "") -> Failure:
    return Failure(code=code, message=message, status_code=status, field=field)


def status_in(failure: Failure, **ids: str) -> Status:
    raw = dict(trailers(failure, **ids))["grpc-status-details-bin"]
    assert isinstance(raw, bytes)
    return Status.FromString(raw)


def test_every_code_has_a_grpc_status() -> None:
    names = {meaning.grpc_status for meaning in CODES.values()}

    assert names <= {status.name for status in grpc.StatusCode}


@pytest.mark.parametrize("code", Code)
def test_a_failure_has_the_status_of_its_codes_row(code: Code) -> None:
    meaning = CODES[code]

    assert status_code(failed(code.value, meaning.http_status)).name == meaning.grpc_status


@pytest.mark.parametrize(
    ("status", "nearest"),
    [
        (402, grpc.StatusCode.FAILED_PRECONDITION),
        (403, grpc.StatusCode.PERMISSION_DENIED),
        (404, grpc.StatusCode.NOT_FOUND),
        (429, grpc.StatusCode.RESOURCE_EXHAUSTED),
        (503, grpc.StatusCode.UNAVAILABLE),
        (599, grpc.StatusCode.INTERNAL),
    ],
)
@pytest.mark.parametrize("code", [Code.AGENT_FAILED.value, "of_tomorrow"])
def test_a_status_that_is_not_the_codes_own_has_the_one_nearest_to_it(
    code: str, status: int, nearest: grpc.StatusCode
) -> None:
    assert status_code(failed(code, status)) is nearest


def test_details_tell_codes_of_one_status_apart() -> None:
    error = QueueFullError("full", scope="session", retry_after=0.0004)

    found = dict(trailers(Failure.from_error(error)))
    info = ErrorInfo()

    assert status_in(Failure.from_error(error)).details[0].Unpack(info)
    assert (info.reason, info.metadata["retry"]) == ("session_queue_full", "after")
    assert found["grpc-retry-pushback-ms"] == "1"


def test_the_whole_failure_is_among_the_details() -> None:
    whole = failure_pb2.Failure()

    details = status_in(failed("of_tomorrow", 409, "no", field="prompt")).details

    assert details[-1].Unpack(whole)
    assert (whole.code, whole.status_code, whole.field) == ("of_tomorrow", 409, "prompt")


@pytest.mark.parametrize("letter", ["x", "é", "👋", "\n"])
def test_a_text_of_any_length_fits_into_what_clients_take(letter: str) -> None:
    failure = failed("agent_failed", 402, letter * 10_000, field="f" * 100)

    trailing = trailers(failure, request_id="é" * 128, session_id="é" * 128)

    status = status_in(failure)
    sent = sum(len(value) * 4 / 3 for _, value in trailing)
    assert sent + 3 * len(status.message.encode()) < _MAX_TRAILER_BYTES
    assert status.message.startswith(letter * 100)
    assert status.message.endswith("…")


def test_a_text_that_fits_is_left_alone() -> None:
    assert status_in(failed("agent_failed", 402, "é" * 256)).message == "é" * 256
