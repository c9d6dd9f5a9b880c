"""Who calls: a bearer token to the user whose scope the call has, the same on every surface."""

from turnline.auth import AuthValidator, authenticate, bearer_token
from turnline.errors import UnauthenticatedError
from turnline.protocol.clock import Clock


async def user_of(
    authorization: str, validator: AuthValidator | None, clock: Clock, *, surface: str
) -> str:
    """Give the authenticated user; empty where there is no validator and everybody may call.

    Args:
        authorization: value of the header or metadata of that name; empty if there was none.
        surface: what the validator is told of where the call came in.

    Raises:
        UnauthenticatedError: see `authenticate`; or the token has expired.
    """
    if validator is None:
        return ""
    identity = await authenticate(validator, bearer_token(authorization), {"surface": surface})
    if identity.expires_at is not None and identity.expires_at <= clock.time():
        raise UnauthenticatedError("The authentication token has expired")
    return identity.user_id
