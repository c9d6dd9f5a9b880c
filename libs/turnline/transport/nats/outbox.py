"""Puts envelopes on the stream of one queue."""

from urllib.parse import quote

from turnline.errors import PayloadTooLargeError
from turnline.protocol import Envelope
from turnline.protocol.codec import encode, headers
from turnline.transport.nats.jetstream import MSG_ID, JetStream
from turnline.transport.nats.options import NatsOptions, QueueOptions
from turnline.transport.nats.subjects import subject_of

_MAX_HEADER_CHARACTERS = 512


class Outbox:
    """The sending side of one queue."""

    def __init__(self, *, api: JetStream, queue: QueueOptions, options: NatsOptions) -> None:
        self._api = api
        self._prefix = queue.prefix
        self._partitions = options.partitions
        self.max_bytes = 0

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; see `turnline.transport.Queue.send`."""
        return await self.place(envelope, encode(envelope), envelope.dedup_id)

    async def place(self, envelope: Envelope, raw: bytes, message_id: str) -> bool:
        """Add an envelope under an id; return False if one of that id came lately."""
        if len(raw) > self.max_bytes:
            raise PayloadTooLargeError(
                f"The message is larger than {self.max_bytes} bytes", limit_bytes=self.max_bytes
            )
        subject = subject_of(self._prefix, envelope.session_key, self._partitions)
        placed = await self._api.place(subject, raw, {**_mirrored(envelope), MSG_ID: message_id})
        return not placed.duplicate


def _mirrored(envelope: Envelope) -> dict[str, str]:
    """Give the metadata as headers for operators and filters; ASCII, the bytes are the truth."""
    found = {
        name: value if value.isascii() else quote(value)
        for name, value in headers(envelope).items()
        if name != "dedup_id"
    }
    return {name: text for name, text in found.items() if len(text) <= _MAX_HEADER_CHARACTERS}
