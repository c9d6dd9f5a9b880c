"""The in_memory transport: the default, for one process."""

from turnline.transport.in_memory.options import InMemoryOptions
from turnline.transport.in_memory.queue import InMemoryConsumer, InMemoryQueue
from turnline.transport.in_memory.transport import InMemoryTransport, open_transport

__all__ = [
    "InMemoryConsumer",
    "InMemoryOptions",
    "InMemoryQueue",
    "InMemoryTransport",
    "open_transport",
]
