"""One invocation of an event source mapping: the consume loop over what it brought.

The loop is the one that processes run; here it has no more than a batch to read, and no more time
than the invocation.  Knows no agent and no store.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from turnline.aws.environment import Event
from turnline.aws.forwarding import TransportOver
from turnline.errors import ConfigurationError
from turnline.hosting import Backends, ConsumeLoop
from turnline.transport import Queue
from turnline.transport.sqs import SqsQueue, TriggeredQueue

MakeLoop = Callable[[Backends], ConsumeLoop]

# What is needed after the last moment of work: to stop it, give up its claim and hand it back.
_RESERVE_SECONDS = 2.5
_RESERVED_SHARE = 0.3
# How long a worker may take from its settlement to its end.
_SETTLED_SECONDS = 0.5


async def run_input(backends: Backends, event: Event, seconds: float, make: MakeLoop) -> Event:
    """Work on a batch of turns; give what AWS is to deliver again (`batchItemFailures`)."""
    batch = _sqs(backends.transport.input).triggered(event["Records"])
    transport = TransportOver(
        input=batch, output=backends.transport.output, whole=backends.transport
    )
    return await _run(batch, make(replace(backends, transport=transport)), seconds)


async def run_output(backends: Backends, event: Event, seconds: float, make: MakeLoop) -> Event:
    """Work on a batch of answers; as `run_input`."""
    batch = _sqs(backends.transport.output).triggered(event["Records"])
    transport = TransportOver(
        input=backends.transport.input, output=batch, whole=backends.transport
    )
    return await _run(batch, make(replace(backends, transport=transport)), seconds)


async def _run(batch: TriggeredQueue, loop: ConsumeLoop, seconds: float) -> Event:
    """Work until everything is settled or time is up, when the rest is handed back."""
    usable = max(0.0, seconds - min(_RESERVE_SECONDS, seconds * _RESERVED_SHARE))

    def stop() -> None:
        batch.time_is_up = True
        batch.over.set()

    timer = asyncio.get_running_loop().call_later(usable, stop)
    try:
        async with asyncio.TaskGroup() as tasks:
            tending = tasks.create_task(batch.tend())
            await loop.run(batch.over, grace=_SETTLED_SECONDS)
            tending.cancel()
    finally:
        timer.cancel()
    return {"batchItemFailures": [{"itemIdentifier": name} for name in batch.failures]}


def _sqs(queue: Queue) -> SqsQueue:
    if not isinstance(queue, SqsQueue):
        raise ConfigurationError(["execution.queues.type: is not sqs"])
    return queue
