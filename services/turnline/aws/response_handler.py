"""The response handler as a Lambda function of the output queue's event source mapping."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.aws.batches import run_output
from turnline.aws.checks import WEBSOCKET_MODES, read_settings_for
from turnline.aws.environment import AtInit, Event, Invocation
from turnline.aws.gateway_push import open_gateway_push
from turnline.aws.spans import sending_spans
from turnline.config import Topology
from turnline.hosting import LeaseKeeper, open_backends
from turnline.protocol.clock import SystemClock
from turnline.responder.wiring import responder_loop


class ResponseHandler:
    """Keeps answers, and pushes them to their users' sockets in the WebSocket modes.

    Attributes:
        handle: what Lambda calls.  Reading it opens the queue and the stores.
    """

    handle = AtInit(lambda owner: owner.open)

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Invocation]:
        """Open what an environment needs; gives what works on one batch.

        Raises:
            ConfigurationError: lists every fault.
        """
        settings, _ = read_settings_for(Topology.RESPONDER, lambda _: None)
        pushes = settings.execution.mode in WEBSOCKET_MODES
        async with (
            open_backends(settings, SystemClock(), part=Topology.RESPONDER) as backends,
            open_gateway_push(settings, backends) as push,
            asyncio.TaskGroup() as tasks,
        ):
            keeper = LeaseKeeper(backends.metrics)

            async def invoke(event: Event, seconds: float) -> Event:
                return await run_output(
                    backends,
                    event,
                    seconds,
                    lambda over: responder_loop(
                        settings, over, keeper, push=push if pushes else None
                    ),
                )

            keeping = tasks.create_task(keeper.run())
            yield sending_spans(invoke, backends.tracing)
            keeping.cancel()
