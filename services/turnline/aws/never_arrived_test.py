"""What the guide's Lambda router says where no answer has come."""

import json

import pytest

from turnline.aws.http_events import HttpAnswer, HttpRequest, read_request
from turnline.aws.never_arrived import in_routers_words
from turnline.aws.rig import http_event


def asked(method: str) -> HttpRequest:
    return read_request(http_event(method))


def said(status: int, body: object) -> HttpAnswer:
    return HttpAnswer(
        status=status,
        headers=[("content-type", "application/json")],
        body=json.dumps(body).encode(),
    )


def test_a_poll_that_finds_nothing_keeps_its_body_under_a_200() -> None:
    detail = {"error": "NOT_FOUND", "message": "none", "code": "not_found", "request_id": "r"}
    answer = in_routers_words(asked("GET"), said(404, {"detail": detail}))

    assert answer.status == 200
    assert json.loads(answer.body) == {"status": "NOT_FOUND", **detail, "detail": detail}


def test_a_caller_whose_wait_was_for_nothing_is_told_the_same() -> None:
    detail = {"error": "No response", "code": "turn_deadline_exceeded", "request_id": "r"}
    answer = in_routers_words(asked("POST"), said(504, {"detail": detail}))

    body = json.loads(answer.body)
    assert (answer.status, body["error"], body["message"]) == (200, "NOT_FOUND", "No response")
    assert body["request_id"] == "r"


@pytest.mark.parametrize(
    ("method", "status", "body"),
    [
        ("GET", 404, {"detail": {"error": "Not Found", "code": "not_found"}}),
        ("DELETE", 404, {"detail": {"error": "NOT_FOUND"}}),
        ("GET", 504, {"detail": {"error": "x", "code": "turn_deadline_exceeded"}}),
        ("POST", 504, {"detail": {"error": "x", "code": "internal"}}),
        ("POST", 500, {"detail": {"error": "x", "code": "agent_failed"}}),
        ("GET", 404, ["no object"]),
    ],
)
def test_every_other_answer_stays_as_it_is(method: str, status: int, body: object) -> None:
    answer = said(status, body)
    assert in_routers_words(asked(method), answer) is answer
