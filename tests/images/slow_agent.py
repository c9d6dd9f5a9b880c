"""An agent that says when it has begun and needs a while; mounted into containers by tests."""

import asyncio
from collections.abc import AsyncIterator

from turnline.agent import Turn, agent


@agent("slow", description="takes three seconds")
async def slow(turn: Turn) -> AsyncIterator[str]:
    yield "begun "
    await asyncio.sleep(3)
    yield f"and ended: {turn.prompt}"
