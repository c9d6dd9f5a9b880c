"""Sends the spans of an invocation before it ends: Lambda stops the process until the next one."""

import asyncio

from turnline.aws.environment import Event, Invocation
from turnline.telemetry import Tracing

_SECONDS = 1.0
# What is left of an invocation's time is not spent to its end.
_RESERVE_SECONDS = 0.25


def sending_spans(invoke: Invocation, tracing: Tracing) -> Invocation:
    """Give an invocation that ends when the collector has its spans, or a second later."""

    async def invoked(event: Event, seconds: float) -> object:
        finish = asyncio.get_running_loop().time() + seconds - _RESERVE_SECONDS
        try:
            return await invoke(event, seconds)
        finally:
            left = finish - asyncio.get_running_loop().time()
            if left > 0:
                await tracing.flush(seconds=min(_SECONDS, left))

    return invoked
