"""Hosting: what every long-running service is made of, without knowing what it does."""

from turnline.hosting.backends import Backends, open_backends
from turnline.hosting.backoff import Backoff
from turnline.hosting.consume import ConsumeLoop, ConsumeOptions
from turnline.hosting.grpc_by_name import open_grpc
from turnline.hosting.interrupts import Interruptible, alongside, leave_behind
from turnline.hosting.leases import LeaseKeeper
from turnline.hosting.lifecycle import Lifecycle, State
from turnline.hosting.ops import Ops
from turnline.hosting.parts import Parts, run_parts
from turnline.hosting.process import (
    EXIT_CONFIGURATION,
    EXIT_FAILED,
    run_process,
    serve_process,
)
from turnline.hosting.server import WebOptions, WebServer
from turnline.hosting.service import (
    ServeStandalone,
    Standalone,
    check_and_prepare,
    operator_routes,
    serve_prepared,
    serve_service,
    web_options,
)
from turnline.hosting.settings import check_topology, load, read_settings, start
from turnline.hosting.timing import QueueTiming, queue_timing
from turnline.hosting.websocket import ABORT_EXTENSION

__all__ = [
    "ABORT_EXTENSION",
    "EXIT_CONFIGURATION",
    "EXIT_FAILED",
    "Backends",
    "Backoff",
    "ConsumeLoop",
    "ConsumeOptions",
    "Interruptible",
    "LeaseKeeper",
    "Lifecycle",
    "Ops",
    "Parts",
    "QueueTiming",
    "ServeStandalone",
    "Standalone",
    "State",
    "WebOptions",
    "WebServer",
    "alongside",
    "check_and_prepare",
    "check_topology",
    "leave_behind",
    "load",
    "open_backends",
    "open_grpc",
    "operator_routes",
    "queue_timing",
    "read_settings",
    "run_parts",
    "run_process",
    "serve_prepared",
    "serve_process",
    "serve_service",
    "start",
    "web_options",
]
