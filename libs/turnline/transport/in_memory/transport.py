"""Two queues in one process's memory; see `turnline.transport.Transport`.

The default of the guide: full semantics, no durability.  The object is the broker: what it holds is
gone with it, and only code that holds the same object shares its queues.
"""

from typing import Self

from turnline.config import Settings
from turnline.protocol.clock import Clock
from turnline.transport.in_memory.options import MIB, InMemoryOptions
from turnline.transport.in_memory.queue import InMemoryQueue

# What an envelope may hold beside the request body that the front door let in.
_METADATA_BYTES = 64 * 1024


class InMemoryTransport:
    """An input and an output queue.

    Leaving it keeps what it holds; it may be entered again.
    """

    def __init__(self, options: InMemoryOptions, clock: Clock) -> None:
        self._input = InMemoryQueue(
            name="input",
            options=options,
            max_per_session=options.max_messages_per_session,
            clock=clock,
        )
        self._output = InMemoryQueue(name="output", options=options, max_per_session=0, clock=clock)

    async def __aenter__(self) -> Self:
        self._input.open()
        self._output.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._input.close()
        self._output.close()

    @property
    def input(self) -> InMemoryQueue:
        """Requests, from the front door to the runner."""
        return self._input

    @property
    def output(self) -> InMemoryQueue:
        """Answers, from the runner to the responder."""
        return self._output

    async def check(self) -> None:
        """Return if the transport is open."""
        self._input.check_open()


def open_transport(settings: Settings, clock: Clock) -> InMemoryTransport:
    """Make the transport that `execution.queues.in_memory` describes; enter it to use it.

    A body that the front door lets in (`api.max_body_bytes`) fits on the queue.
    """
    asked = settings.execution.queues.in_memory
    options = InMemoryOptions(
        ack_wait=asked.ack_wait,
        dedup_window=asked.dedup_window,
        max_messages=asked.max_messages,
        max_messages_per_session=asked.max_messages_per_session,
        max_bytes=max(MIB, settings.api.max_body_bytes + _METADATA_BYTES),
        max_dead_letters=asked.max_dead_letters,
    )
    return InMemoryTransport(options, clock)
