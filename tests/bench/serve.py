"""What the bench starts: the whole pipeline with the bench agent, and sockets for any token."""

import os

from bench import agent
from turnline.auth import AuthValidator, ValidationResult
from turnline.pipeline import RESTAPI, IOHandler


class AnyUser(AuthValidator):
    """Takes `user-<id>` for the token of `<id>`, as the load drivers send it."""

    async def validate(self, token: str, context: object = None) -> ValidationResult:
        """Accept."""
        del context
        return ValidationResult(is_valid=True, claims={"userId": token.removeprefix("user-")})


def main() -> None:
    """Serve; BENCH_SOCKETS=1 adds /ws."""
    assert agent.echo.name == "echo"
    if os.environ.get("BENCH_SOCKETS") == "1":
        IOHandler.run(auth_validator=AnyUser())
    RESTAPI.run()
