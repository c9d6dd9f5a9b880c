"""Dead letters as messages and back.  Pure.

A letter is a message of its own group, so that one held by a reader hides no other.  It keeps the
body as it was; what it was and why it was given up stands, with the attributes it had, in one
attribute.  What SQS itself moved to the queue has none, and is a letter all the same.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from turnline.errors import UndecodableError
from turnline.protocol import Envelope, digest
from turnline.transport.port import DeadLetter
from turnline.transport.sqs.api import Received
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.wire import Outgoing, envelope_of, raw_of

DEAD = "turnline.dead"
MAX_REASON_CHARACTERS = 500
MAX_REASON_IN_GROUP = 60
GIVEN_UP_BY_SQS = "SQS gave it up: it was delivered more often than its redrive policy allows"

_ID = re.compile(r"[0-9]{13}\.[0-9]{1,39}\.[A-Za-z0-9-]{1,64}")
_GROUP = re.compile(r"dead\.[A-Za-z0-9-]+\.(?P<attempt>[0-9]+)\.(?P<reason>.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A letter that is held for a look.

    Attributes:
        receipt: what settles it.
        attributes: those of the message that it was.
    """

    receipt: str
    shown: DeadLetter
    body: str
    attributes: Mapping[str, str]


def letter_message(held: Held, reason: str, *, largest: int) -> Outgoing:
    """Make the letter of what is held; in the same five minutes it is one, however often sent.

    Args:
        largest: bytes the queue takes; a foreign message may leave no room for attributes.
    """
    short = reason.strip()[:MAX_REASON_CHARACTERS]
    about = {"reason": short, "attempt": held.attempt, "attributes": dict(held.attributes)}
    letter = Outgoing(
        body=held.body,
        attributes={DEAD: json.dumps(about)},
        group=f"dead.{held.id}",
        dedup_id=digest("letter", held.id),
    )
    if letter.size <= largest:
        return letter
    return Outgoing(
        body=held.body,
        attributes={},
        group=f"dead.{held.id}.{held.attempt}.{_in_group(short)}"[:128],
        dedup_id=letter.dedup_id,
    )


def letter_of(received: Received) -> Letter:
    """Read a letter."""
    attributes, reason, attempt = _about(received)
    try:
        envelope: Envelope | None = envelope_of(received.body, attributes)
    except UndecodableError:
        envelope = None
    shown = DeadLetter(
        id=f"{round(received.sent_at * 1000):013d}.{received.sequence}.{received.id}",
        reason=reason,
        at=received.sent_at,
        attempt=attempt,
        raw=raw_of(received.body, attributes),
        envelope=envelope,
    )
    return Letter(receipt=received.receipt, shown=shown, body=received.body, attributes=attributes)


def place_of(letter_id: str) -> tuple[int, int, str] | None:
    """Give what letters are ordered by; None: it is no id of a letter."""
    if not _ID.fullmatch(letter_id):
        return None
    at, sequence, name = letter_id.split(".")
    return int(at), int(sequence), name


def _about(received: Received) -> tuple[Mapping[str, str], str, int]:
    try:
        about = json.loads(received.attributes[DEAD])
        attributes = {str(name): str(value) for name, value in about["attributes"].items()}
        return attributes, str(about["reason"]), int(about["attempt"])
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    found = _GROUP.fullmatch(received.group)
    if found:
        return received.attributes, unquote(found["reason"]), int(found["attempt"])
    return received.attributes, GIVEN_UP_BY_SQS, max(1, received.received - 1)


def _in_group(reason: str) -> str:
    """Write a reason in the characters of a group; unquoting it gives what fits."""
    return quote(reason[:MAX_REASON_IN_GROUP], safe="")
