"""API Gateway's HTTP events, read and answered."""

import base64
from typing import Any

import pytest

from turnline.aws.http_events import HttpAnswer, read_request
from turnline.aws.rig import http_event


def old_event(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of any type
    """An event of a REST API (format 1.0)."""
    return {
        "httpMethod": "GET",
        "path": "/api/v1/chat",
        "headers": {"Accept": "application/json"},
        "requestContext": {"stage": "prod", "identity": {"sourceIp": "192.0.2.1"}},
        "body": None,
        **more,
    }


def test_a_stage_stands_before_the_path_and_is_taken_off() -> None:
    event = http_event("POST", "/prod/api/v1/chat")
    event["requestContext"]["stage"] = "prod"

    assert read_request(event).path == "/api/v1/chat"


def test_a_path_that_begins_like_the_stage_is_left_alone() -> None:
    event = http_event("POST", "/production/x")
    event["requestContext"]["stage"] = "prod"

    assert read_request(event).path == "/production/x"


@pytest.mark.parametrize("make", [http_event, lambda _: old_event()])
def test_a_body_may_be_base64(make: Any) -> None:  # noqa: ANN401 - makes events
    event = make("POST")
    event["body"], event["isBase64Encoded"] = base64.b64encode(b"\xff{}").decode(), True

    assert read_request(event).body == b"\xff{}"


def test_values_of_one_name_all_count_in_the_old_format() -> None:
    event = old_event(
        multiValueHeaders={"X-A": ["1", "2"]},
        multiValueQueryStringParameters={"q": ["a b", "c&d"]},
    )
    request = read_request(event)

    assert request.headers == [("x-a", "1"), ("x-a", "2")]
    assert request.query == "q=a+b&q=c%26d"


@pytest.mark.parametrize(
    ("authorizer", "claims"),
    [
        (None, None),
        ({"jwt": {"claims": {"userId": "u"}, "scopes": None}}, {"userId": "u"}),
        ({"lambda": {"userId": "u"}}, {"userId": "u"}),
        ({"iam": {"accessKey": "x"}}, None),
    ],
)
def test_an_authorizers_finding_is_the_identity(
    authorizer: dict[str, Any] | None, claims: dict[str, Any] | None
) -> None:
    assert read_request(http_event("GET", authorizer=authorizer)).identity == claims


@pytest.mark.parametrize(
    "authorizer", [{"userId": "u", "principalId": "u"}, {"claims": {"userId": "u"}}]
)
def test_an_authorizer_of_a_rest_api_is_read_too(authorizer: dict[str, Any]) -> None:
    event = old_event()
    event["requestContext"]["authorizer"] = authorizer
    identity = read_request(event).identity

    assert identity is not None
    assert identity["userId"] == "u"


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Records": []},
        {"requestContext": {}},
        {"version": "2.0", "requestContext": {"a": 1}},
    ],
)
def test_what_is_no_http_event_is_said_to_be_none(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no HTTP event"):
        read_request(event)


def test_cookies_of_an_answer_go_apart_in_the_new_format() -> None:
    headers = [("content-type", "application/json"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]
    answer = HttpAnswer(status=200, headers=headers, body=b"{}")

    assert answer.event(old_format=False) == {
        "statusCode": 200,
        "headers": {"content-type": "application/json"},
        "cookies": ["a=1", "b=2"],
        "body": "{}",
        "isBase64Encoded": False,
    }
    assert answer.event(old_format=True)["multiValueHeaders"]["set-cookie"] == ["a=1", "b=2"]


def test_an_answer_that_is_no_text_goes_as_base64() -> None:
    answer = HttpAnswer(status=200, headers=[("content-type", "image/png")], body=b"\xff\x00")

    event = answer.event(old_format=False)

    assert (event["isBase64Encoded"], base64.b64decode(event["body"])) == (True, b"\xff\x00")
