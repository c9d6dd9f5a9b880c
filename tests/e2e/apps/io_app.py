"""An application of the guide's IOHandler, with tokens and a custom WebSocket route."""

from typing import Any

from e2e.apps import e2e_agents
from e2e.tokens import SECRET
from turnline.auth import JwtValidator
from turnline.pipeline import IOHandler, PipelineWebSocketHandler


@PipelineWebSocketHandler.register("status")
def status(msg: dict[str, Any]) -> dict[str, Any]:
    return {"up": True, "got": msg}


@PipelineWebSocketHandler.register("silent")
async def silent(msg: dict[str, Any]) -> None:
    msg.clear()


@PipelineWebSocketHandler.register("failing")
async def failing(msg: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError(f"secret-of-the-route {msg}")


if __name__ == "__main__":
    assert e2e_agents.echo is not None
    IOHandler.run(auth_validator=JwtValidator(secret=SECRET))
