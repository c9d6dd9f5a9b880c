"""Transports: the port, and one folder per adapter."""

from turnline.transport.port import (
    Admission,
    Bookkeeping,
    Capabilities,
    Consumer,
    DeadLetter,
    DeadLetters,
    Delivery,
    Queue,
    QueueStats,
    Transport,
)
from turnline.transport.settlement import Ack, Bury, Release, Retry, Settlement

__all__ = [
    "Ack",
    "Admission",
    "Bookkeeping",
    "Bury",
    "Capabilities",
    "Consumer",
    "DeadLetter",
    "DeadLetters",
    "Delivery",
    "Queue",
    "QueueStats",
    "Release",
    "Retry",
    "Settlement",
    "Transport",
]
