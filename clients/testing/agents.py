"""Agents that do what the tests of clients need: those of the end-to-end tests, and these."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

# Registered as they are imported; the first is who answers where nobody is named.
from e2e.apps.e2e_agents import LOOK_SECONDS
from turnline.agent import Turn, agent


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


@agent("turns", description="says how many turns its session had before")
async def turns(turn: Turn) -> str:
    return str(len(turn.history))
