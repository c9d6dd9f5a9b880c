"""A runner whose agent says its prompt again; started by a path, so it knows `turnline` alone."""

import asyncio
from collections.abc import AsyncIterator

from turnline.agent import FatalAgentError, Turn, agent
from turnline.runner.main import main


@agent("answering", description="says its prompt again")
async def answering(turn: Turn) -> AsyncIterator[str]:
    if turn.prompt == "refuse":
        raise FatalAgentError("refused, as told", status_code=402)
    for word in turn.prompt.split():
        await asyncio.sleep(0.01)
        yield f"{word} "
    turn.state["answered"] = [*turn.state.get("answered", []), turn.request_id]


if __name__ == "__main__":
    main()
