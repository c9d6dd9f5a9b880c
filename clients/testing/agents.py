"""Agents that do what the tests of clients need."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from turnline.agent import FatalAgentError, Turn, agent

LOOK_SECONDS = 0.01


@agent("echo", description="streams its prompt, word by word")
async def echo(turn: Turn) -> AsyncIterator[str]:
    for word in turn.prompt.split():
        yield f"{word} "


@agent("hold", description="says `holding `, waits for the file its prompt names, says `done`")
async def hold(turn: Turn) -> AsyncIterator[str]:
    yield "holding "
    while not Path(turn.prompt).exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(LOOK_SECONDS)
    yield "done"


@agent("steps", description="says 1 to 5, each but the first after the file `<prompt>.<number>`")
async def steps(turn: Turn) -> AsyncIterator[str]:
    for number in range(1, 6):
        path = Path(f"{turn.prompt}.{number}")
        while number > 1 and not path.exists():  # noqa: ASYNC110, ASYNC240 - see `hold`
            await asyncio.sleep(LOOK_SECONDS)
        yield f"{number} "


@agent("flaky", description="says `lost ` and breaks; tried again, it says `kept`")
async def flaky(turn: Turn) -> AsyncIterator[str]:
    if turn.attempt == 1:
        yield "lost "
        raise RuntimeError("broken")
    yield "kept"


@agent("counter", description="says how many turns its session had before")
async def counter(turn: Turn) -> str:
    return str(len(turn.history))


@agent("refusing", description="ends every turn with an error of its own")
async def refusing(turn: Turn) -> str:
    raise FatalAgentError(f"no credit for {turn.prompt}", status_code=402)


@agent("broken", description="breaks on every attempt")
async def broken(turn: Turn) -> str:
    raise RuntimeError(f"secret-of-the-agent {turn.prompt}")
