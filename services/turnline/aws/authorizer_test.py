"""API Gateway's authorizers, and what WebSocket events say of their callers."""

from collections.abc import Mapping
from typing import Any

import pytest

from turnline.auth import AuthValidator, Context, ValidationResult
from turnline.aws.authorizer import APIGatewayAuthorizer
from turnline.aws.websocket_events import read_socket_event, token_in

ARN = "arn:aws:execute-api:eu-west-1:000000000000:abc/live/$connect"


class Tokens(AuthValidator):
    """Takes tokens that begin with `user-`; notes what it is told."""

    def __init__(self) -> None:
        self.surfaces: list[str] = []

    def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        self.surfaces.append((context or {}).get("surface", ""))
        claims = {"userId": token, "tags": ["x"], "level": 3, "admin": True}
        return ValidationResult(is_valid=token.startswith("user-"), claims=claims)


class Context30:
    """An invocation with half a minute."""

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


def judged(
    event: Mapping[str, Any], validator: AuthValidator | None = None
) -> Any:  # noqa: ANN401 - any JSON
    handle = APIGatewayAuthorizer(validator=validator or Tokens()).handle
    return handle(dict(event), Context30())


def test_a_socket_is_let_in_with_what_is_known_of_its_user() -> None:
    validator = Tokens()
    event = {
        "type": "REQUEST",
        "methodArn": ARN,
        "queryStringParameters": {"token": "user-1"},
        "requestContext": {"connectionId": "c"},
    }

    assert judged(event, validator) == {
        "principalId": "user-1",
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow",
                    "Resource": "arn:aws:execute-api:eu-west-1:000000000000:abc/live/*",
                }
            ],
        },
        # What is neither text, number nor boolean API Gateway refuses to carry.
        "context": {"userId": "user-1", "level": 3, "admin": True},
    }
    assert validator.surfaces == ["websocket"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "TOKEN", "authorizationToken": "Bearer user-1", "methodArn": ARN},
        {"type": "TOKEN", "authorizationToken": "user-1", "methodArn": ARN},
        {"type": "REQUEST", "headers": {"Authorization": "Bearer user-1"}, "methodArn": ARN},
    ],
)
def test_a_token_is_found_wherever_the_guides_clients_send_it(event: dict[str, Any]) -> None:
    assert judged(event)["principalId"] == "user-1"


@pytest.mark.parametrize("token", ["forged", ""])
def test_who_is_refused_is_told_401(token: str) -> None:
    # API Gateway answers 401 to this very text and 500 to any other.
    with pytest.raises(Exception, match=r"^Unauthorized$"):
        judged({"type": "REQUEST", "queryStringParameters": {"token": token}, "methodArn": ARN})


@pytest.mark.parametrize(("token", "authorized"), [("user-1", True), ("forged", False)])
def test_an_http_api_is_answered_in_its_simple_form(token: str, *, authorized: bool) -> None:
    event = {"version": "2.0", "type": "REQUEST", "headers": {"authorization": f"Bearer {token}"}}

    assert judged(event)["isAuthorized"] is authorized


def test_without_a_validator_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception, match=r"auth\.type: is none"):
        APIGatewayAuthorizer().handle  # noqa: B018 - reading it is what is shown


def test_a_browsers_token_in_a_subprotocol_is_found_and_one_is_chosen() -> None:
    event = {"headers": {"Sec-WebSocket-Protocol": "turnline.bearer, user-1"}}
    assert token_in(event) == ("user-1", "turnline.bearer")


def test_a_socket_event_names_its_endpoint_and_its_user() -> None:
    event = read_socket_event(
        {
            "requestContext": {
                "eventType": "MESSAGE",
                "connectionId": "c",
                "domainName": "abc.execute-api.eu-west-1.amazonaws.com",
                "stage": "live",
                "authorizer": {"userId": "u", "principalId": "p"},
            },
            "body": "{}",
        }
    )

    assert (event.kind, event.connection_id, event.user_id, event.text) == (
        "MESSAGE",
        "c",
        "u",
        "{}",
    )
    assert event.endpoint == "https://abc.execute-api.eu-west-1.amazonaws.com/live"


def test_what_is_no_socket_event_is_said_to_be_none() -> None:
    with pytest.raises(ValueError, match="no WebSocket event"):
        read_socket_event({"requestContext": {"http": {}}})
