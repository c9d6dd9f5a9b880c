"""Agents that do what end-to-end tests need.  A prompt that names a file waits until it exists."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from turnline.agent import FatalAgentError, Turn, agent

LOOK_SECONDS = 0.01


@agent("echo", description="streams its prompt, word by word")
async def echo(turn: Turn) -> AsyncIterator[str]:
    for word in turn.prompt.split():
        yield f"{word} "


@agent("hold", description="says `holding`, waits for the file its prompt names, says `done`")
async def hold(turn: Turn) -> AsyncIterator[str]:
    yield "holding "
    while not Path(turn.prompt).exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(LOOK_SECONDS)
    yield "done"


@agent("hung", description="ignores being cancelled")
async def hung(turn: Turn) -> AsyncIterator[str]:
    yield turn.prompt
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@agent("blocking", description="blocks its thread and looks at nothing")
def blocking(turn: Turn) -> str:
    time.sleep(3600)
    return turn.prompt


@agent("threading", description="an async agent that blocks a thread of the default executor")
async def threading(turn: Turn) -> str:
    await asyncio.to_thread(time.sleep, 3600)
    return turn.prompt


@agent("upper", description="a plain function")
def upper(turn: Turn) -> str:
    return turn.prompt.upper()


@agent("counter", description="counts turns in its state and in its history")
async def counter(turn: Turn) -> str:
    turn.state["count"] = turn.state.get("count", 0) + 1
    earlier = ",".join(record.prompt for record in turn.history)
    return f"count={turn.state['count']} history=[{earlier}] user={turn.user_id}"


@agent("refusing", description="ends every turn with an error of its own")
async def refusing(turn: Turn) -> str:
    raise FatalAgentError(f"no credit for {turn.prompt}", status_code=402)


@agent("gated", description="raises until the file its prompt names exists")
async def gated(turn: Turn) -> str:
    if not Path(turn.prompt).exists():  # noqa: ASYNC240 - another process makes it
        raise RuntimeError("closed")
    return "open"


@agent("broken", description="raises")
async def broken(turn: Turn) -> str:
    raise RuntimeError(f"secret-of-the-agent {turn.prompt}")
