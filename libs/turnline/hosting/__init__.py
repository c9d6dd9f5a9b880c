"""Hosting: what every long-running service is made of, without knowing what it does."""

from turnline.hosting.backends import Backends, open_backends
from turnline.hosting.backoff import Backoff
from turnline.hosting.consume import ConsumeLoop, ConsumeOptions
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
from turnline.hosting.server import ABORT_EXTENSION, WebOptions, WebServer
from turnline.hosting.settings import check_topology, read_settings, start

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
    "State",
    "WebOptions",
    "WebServer",
    "alongside",
    "check_topology",
    "leave_behind",
    "open_backends",
    "read_settings",
    "run_parts",
    "run_process",
    "serve_process",
    "start",
]
