"""Puts a responder together from settings and open connections."""

from turnline.config import Settings
from turnline.hosting import (
    Backends,
    Backoff,
    ConsumeLoop,
    ConsumeOptions,
    LeaseKeeper,
    queue_timing,
)
from turnline.protocol import DeliveryMode
from turnline.push import UserPush
from turnline.responder.handler import AnswerHandler, ResponderOptions
from turnline.responder.signals import ResponderSignals

_DEFAULT_MODES = {"async": DeliveryMode.PUSH, "stream": DeliveryMode.PUSH_STREAM}


def responder_loop(
    settings: Settings,
    backends: Backends,
    keeper: LeaseKeeper,
    *,
    push: UserPush | None,
) -> ConsumeLoop:
    """Make the loop that keeps and pushes answers; `push` is None where no socket can exist."""
    execution, timing = settings.execution, queue_timing(settings)
    handler = AnswerHandler(
        replies=backends.stores.replies,
        push=push,
        signals=ResponderSignals(backends.metrics, backends.tracing, backends.clock),
        options=ResponderOptions(
            default_mode=_DEFAULT_MODES.get(execution.mode, DeliveryMode.KEEP),
            inbox=settings.websocket_api.inbox,
            max_attempts=execution.queues.output.max_receive_count,
        ),
    )
    return ConsumeLoop(
        queue=backends.transport.output,
        handler=handler,
        keeper=keeper,
        metrics=backends.metrics,
        options=ConsumeOptions(
            name="output",
            consumers=execution.queues.output.no_of_consumers,
            max_concurrency=execution.max_concurrency,
            lease_seconds=timing.lease,
            max_attempts=execution.queues.output.max_receive_count,
            backoff=Backoff(base=timing.retry_backoff),
        ),
    )
