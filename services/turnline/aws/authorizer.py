"""API Gateway's Lambda authorizers: the application's validator asked before anything else runs."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from turnline.auth import (
    AuthValidator,
    Identity,
    authenticate,
    bearer_token,
    configured_validator,
)
from turnline.auth.port import USER_ID_CLAIM
from turnline.aws.environment import Environment, Event, Handler, Invocation
from turnline.aws.websocket_events import token_in
from turnline.errors import ConfigurationError, UnauthenticatedError
from turnline.hosting import start

# What API Gateway's client is told with a 401 is decided by this very text.
UNAUTHORIZED = "Unauthorized"


class APIGatewayAuthorizer:
    """Answers TOKEN and REQUEST authorizers, of WebSocket, REST and HTTP APIs.

    It needs the settings of `auth` alone, and neither a queue nor a store.
    """

    def __init__(self, validator: AuthValidator | None = None) -> None:
        """Wire it; without a validator the one that the settings name (`auth.type`)."""
        self._validator = validator

    @property
    def handle(self) -> Handler:
        """What Lambda calls; reading it reads the settings."""
        return Environment(self._open).invoke

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Invocation]:
        settings = start()
        validator = configured_validator(settings.auth, given=self._validator)
        if validator is None:
            raise ConfigurationError(
                [
                    "auth.type: is none, but an authorizer has to check tokens; set jwt or custom, "
                    "or give APIGatewayAuthorizer a validator"
                ]
            )

        async def invoke(event: Event, _seconds: float) -> Event:
            return await _judge(validator, event)

        yield invoke


async def _judge(validator: AuthValidator, event: Event) -> Event:
    simple = event.get("version") == "2.0"
    surface = "websocket" if "connectionId" in (event.get("requestContext") or {}) else "rest"
    try:
        identity = await authenticate(validator, _token(event), {"surface": surface})
    except UnauthenticatedError:
        if simple:
            return {"isAuthorized": False}
        # API Gateway answers 401 to this text, and 500 to any other.
        raise _UnauthorizedError(UNAUTHORIZED) from None
    context = _plain(identity)
    if simple:
        return {"isAuthorized": True, "context": context}
    return {
        "principalId": identity.user_id,
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow",
                    "Resource": _resource(str(event.get("methodArn", "*"))),
                }
            ],
        },
        "context": context,
    }


class _UnauthorizedError(Exception):
    """A refusal, as API Gateway wants to be told."""


def _token(event: Event) -> str | None:
    given = event.get("authorizationToken")
    if given is not None:
        return bearer_token(given) or given
    return token_in(event)[0]


def _resource(method_arn: str) -> str:
    """Give all of the API's stage: API Gateway keeps the policy for the token's other calls too."""
    parts = method_arn.split("/")
    return "/".join([*parts[:2], "*"]) if len(parts) > 2 else method_arn


def _plain(identity: Identity) -> Mapping[str, Any]:
    """Give the claims that API Gateway can carry: texts, numbers and booleans."""
    plain = {
        name: value
        for name, value in identity.claims.items()
        if isinstance(value, str | int | float | bool)
    }
    return {**plain, USER_ID_CLAIM: identity.user_id}
