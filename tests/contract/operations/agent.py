"""The agent behind the page of operations: answers, fails or hangs, as its prompt says."""

import asyncio

from turnline.agent import Turn, agent


@agent("operated")
async def operated(turn: Turn) -> str:
    if turn.prompt == "fail":
        raise RuntimeError("as told")
    if turn.prompt == "hang":
        await asyncio.Event().wait()
    return turn.prompt
