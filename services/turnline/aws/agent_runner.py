"""The agent runner as a Lambda function of the input queue's event source mapping."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from turnline.agent import AgentRegistry, default_registry
from turnline.aws.batches import run_input
from turnline.aws.checks import read_settings_for
from turnline.aws.environment import AtInit, Event, Invocation
from turnline.aws.spans import sending_spans
from turnline.config import Settings, Topology
from turnline.hosting import LeaseKeeper, open_backends
from turnline.protocol.clock import SystemClock
from turnline.runner.wiring import runner_loop


class ServerlessAgentRunner:
    """Runs the registered agents for each batch of the input queue.

    Attributes:
        handle: what Lambda calls.  Reading it opens queues and stores; register agents before.
    """

    handle = AtInit(lambda owner: lambda: owner.open(default_registry))

    @classmethod
    @asynccontextmanager
    async def open(cls, agents: AgentRegistry) -> AsyncIterator[Invocation]:
        """Open what an environment needs; gives what runs one batch.

        Raises:
            ConfigurationError: lists every fault.
        """
        settings, _ = read_settings_for(Topology.RUNNER, lambda _: None, more=cls.faults)
        agents.threads.resize(settings.execution.sync_agent_threads)
        async with open_backends(settings, SystemClock(), part=Topology.RUNNER) as backends:
            keeper = LeaseKeeper(backends.metrics)

            async def invoke(event: Event, seconds: float) -> Event:
                return await run_input(
                    backends,
                    event,
                    seconds,
                    lambda over: runner_loop(settings, over, keeper, agents=agents),
                )

            async with asyncio.TaskGroup() as tasks:
                keeping = tasks.create_task(keeper.run())
                yield sending_spans(invoke, backends.tracing)
                keeping.cancel()

    @classmethod
    def faults(cls, _settings: Settings) -> Iterator[str]:
        """List what keeps this entry point from working."""
        yield from ()


class ServerlessStreamAgentRunner(ServerlessAgentRunner):
    """The runner of an installation that streams: answers leave in pieces, several to a message.

    Turns that ask for a stream get one from either class; this one refuses to start where
    `execution.mode` says that none will.
    """

    @classmethod
    def faults(cls, settings: Settings) -> Iterator[str]:
        """List what keeps this entry point from working."""
        if settings.execution.mode != "stream":
            yield (
                f"execution.mode: is {settings.execution.mode}, but ServerlessStreamAgentRunner is "
                "for stream; set it, or use ServerlessAgentRunner"
            )
