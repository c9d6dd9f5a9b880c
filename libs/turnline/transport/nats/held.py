"""A message that the server delivered to us, before it is anybody's delivery."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nats.aio.msg import Msg

_ACK_PREFIX = "$JS.ACK."
_FIELDS = 9  # and 11 or 12 where the server adds a domain and an account


@dataclass(slots=True, eq=False, kw_only=True)
class Held:
    """One delivery by the server, under its lease.

    Attributes:
        reply: where its settlement goes.
        consumer: which consumer delivered it.
        delivered: how many times the server delivered it, this time included.
        sequence: its place in the stream.
        stamp: when it was stored, nanoseconds; with `sequence` it names a message for ever.
        lease_until: by our clock, when the lease is over at the latest.
        unspent: deliveries before this one that spent no attempt; None: not read yet.
        credited: whether it is written down that this one spends none either.
        since: by our clock, when it was parked.
    """

    reply: str
    consumer: str
    delivered: int
    sequence: int
    stamp: int
    subject: str
    raw: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    lease_until: float
    unspent: int | None = None
    credited: bool = False
    since: float = 0.0

    @property
    def key(self) -> str:
        """Names the message, also after its stream was made anew; one token of a subject."""
        return f"{self.sequence}-{self.stamp}"

    @property
    def attempt(self) -> int:
        """Which attempt this is, once `unspent` is read."""
        return self.delivered - (self.unspent or 0)


def held_of(message: Msg, lease_until: float) -> Held | None:
    """Read what the server delivered; None: the message is no delivery."""
    if not message.reply.startswith(_ACK_PREFIX):
        return None
    parts = message.reply.split(".")
    if len(parts) >= _FIELDS + 2:
        del parts[2:4]
    if len(parts) < _FIELDS:
        return None
    return Held(
        reply=message.reply,
        consumer=parts[3],
        delivered=int(parts[4]),
        sequence=int(parts[5]),
        stamp=int(parts[7]),
        subject=message.subject,
        raw=message.data,
        headers=message.headers or {},
        lease_until=lease_until,
    )
