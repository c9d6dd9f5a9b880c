"""The scaler as a process of its own: a broker, and no store.

Read top to bottom: what is opened first is closed last.
"""

from collections.abc import Callable

from turnline.config import Settings
from turnline.frontdoor import web_app
from turnline.hosting import Lifecycle, Ops, Parts, WebServer, run_parts, web_options
from turnline.hosting.grpc_port import open_server
from turnline.scaler.backlog import Backlog
from turnline.scaler.keda import ScalerDesk, make_service
from turnline.telemetry import Metrics, QueueSource
from turnline.transport import Transport


async def serve_scaler(
    settings: Settings,
    lifecycle: Lifecycle,
    *,
    transport: Transport,
    started: Callable[[int], None] = lambda _port: None,
    grpc_started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Answer KEDA, and scrapes of the queues' metrics, until the lifecycle drains.

    Args:
        started: called with the port of /metrics, once it is bound.
        grpc_started: the same for the port KEDA asks.

    Raises:
        ConfigurationError: a port is taken.
    """
    metrics = Metrics()
    sources = [
        QueueSource(queue="input", stats=transport.input.stats),
        QueueSource(queue="output", stats=transport.output.stats),
    ]
    ops = Ops(
        lifecycle=lifecycle,
        alive={},
        checks={"transport": transport.check},
        render_metrics=(lambda: metrics.scrape(sources)) if settings.telemetry.metrics else None,
    )
    backlog = Backlog(transport.input.stats)
    desk = ScalerDesk(
        backlog=backlog,
        turns_per_replica=settings.execution.max_concurrency,
        # SQS tells ages to CloudWatch alone.
        knows_ages=settings.execution.queues.type != "sqs",
    )
    web = WebServer(web_app(ops.routes()), web_options(settings))
    grpc = open_server(settings, [make_service(desk)], lifecycle.draining)
    started(web.port)
    grpc_started(grpc.port)
    parts = Parts(web=web, servers=[grpc], background=[backlog.run])
    await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)
