"""The bench agent: does what its prompt says, e.g. `sleep=1 chunks=1000 gap=0.01 size=100`.

`stamp` has it say the machine's monotonic nanoseconds instead.
"""

import asyncio
import time
from collections.abc import AsyncIterator

from turnline.agent import Turn, agent

DIRECTIVES = ("sleep", "chunks", "gap", "size")


def read_directives(prompt: str) -> dict[str, float]:
    """Give the directives of a prompt."""
    words = (word.partition("=") for word in prompt.split())
    return {name: float(value) for name, _, value in words if name in DIRECTIVES}


@agent("echo", description="does what its prompt says")
async def echo(turn: Turn) -> AsyncIterator[str]:
    """Sleep, then stream `chunks` chunks with `gap` seconds between, `size` characters each."""
    wanted = read_directives(turn.prompt)
    if "sleep" in wanted:
        await asyncio.sleep(wanted["sleep"])
    if "stamp" in turn.prompt:
        yield str(time.monotonic_ns())
        return
    text = "x" * int(wanted["size"]) if "size" in wanted else "token "
    for _ in range(int(wanted.get("chunks", 1))):
        yield text
        if "gap" in wanted:
            await asyncio.sleep(wanted["gap"])
