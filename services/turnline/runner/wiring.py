"""Puts a runner together from settings and open connections."""

from turnline.agent import AgentRegistry
from turnline.config import Settings
from turnline.hosting import (
    Backends,
    Backoff,
    ConsumeLoop,
    ConsumeOptions,
    LeaseKeeper,
    queue_timing,
)
from turnline.runner.handler import RunnerOptions, TurnHandler
from turnline.runner.publish import Publisher
from turnline.runner.signals import RunnerSignals


def runner_loop(
    settings: Settings,
    backends: Backends,
    keeper: LeaseKeeper,
    *,
    agents: AgentRegistry,
) -> ConsumeLoop:
    """Make the loop that runs turns."""
    execution, timing = settings.execution, queue_timing(settings)
    handler = TurnHandler(
        agents=agents,
        sessions=backends.stores.sessions,
        publisher=Publisher(backends.transport.output),
        keeper=keeper,
        clock=backends.clock,
        signals=RunnerSignals(backends.metrics, backends.tracing, backends.clock),
        options=RunnerOptions(
            max_attempts=execution.queues.input.max_receive_count,
            lease_seconds=settings.session.lease,
            turn_timeout=execution.turn_timeout,
        ),
    )
    return ConsumeLoop(
        queue=backends.transport.input,
        handler=handler,
        answer_exhausted=handler.answer_exhausted,
        keeper=keeper,
        metrics=backends.metrics,
        options=ConsumeOptions(
            name="input",
            consumers=execution.queues.input.no_of_consumers,
            max_concurrency=execution.max_concurrency,
            lease_seconds=timing.lease,
            max_attempts=execution.queues.input.max_receive_count,
            backoff=Backoff(base=timing.retry_backoff),
        ),
    )
