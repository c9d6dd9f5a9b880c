"""Hosting: what every long-running service is made of, without knowing what it does."""

from turnline.hosting.backoff import Backoff
from turnline.hosting.consume import ConsumeLoop, ConsumeOptions
from turnline.hosting.interrupts import Interruptible, alongside, leave_behind
from turnline.hosting.leases import LeaseKeeper
from turnline.hosting.lifecycle import Lifecycle, State

__all__ = [
    "Backoff",
    "ConsumeLoop",
    "ConsumeOptions",
    "Interruptible",
    "LeaseKeeper",
    "Lifecycle",
    "State",
    "alongside",
    "leave_behind",
]
