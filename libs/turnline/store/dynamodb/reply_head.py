"""What is known of one turn's answer, as one item, and how it changes: no clock, no calls.

The head stands at the sort key `reply`.  Chunks lie beside it, in items named by the life of the
answer (`born`), the attempt and the last index in them; what the head does not count does not
exist, so chunks of voided attempts and of earlier lives are left to their expiry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnline.protocol import ChatReply, Chunk
from turnline.store.dynamodb.items import EXPIRY, Item, Key, n, number, raw, text
from turnline.store.ports import StoredReply

HEAD = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyHead:
    """One turn's answer, its chunks and a long end apart.

    Attributes:
        born: names this life of the answer; another after it expired.
        opened: mark of who recorded the admission; empty if nobody did.
        fingerprint: None until the turn is opened.
        attempt: newest attempt seen in chunks that count; 0 for none.
        last: its highest index; -1 for none.
        floor: its first index that is still kept.
        kind: `reply` or `failure`; None while pending.
        end: the end, if it is short.
        end_name: where a long end lies; empty for a short one.
    """

    session_id: str
    born: str
    opened: str = ""
    fingerprint: str | None = None
    attempt: int = 0
    last: int = -1
    floor: int = 0
    kind: str | None = None
    end: bytes | None = None
    end_name: str = ""

    def admitted(self, fingerprint: str, opened: str) -> "ReplyHead":
        """Note that it was opened."""
        return replace(self, fingerprint=fingerprint, opened=opened)

    def takes(self, reply: StoredReply) -> bool:
        """Whether an end is to be stored: the first, or a reply over a failure."""
        replaces = self.kind == "failure" and isinstance(reply.payload, ChatReply)
        return self.kind is None or replaces

    def ended(self, reply: StoredReply, *, end: bytes | None, end_name: str) -> "ReplyHead":
        """Note the end; that of a later attempt voids the chunks before it."""
        head = self
        if reply.attempt > self.attempt:
            head = replace(self, attempt=0, last=-1, floor=0)
        kind = "reply" if isinstance(reply.payload, ChatReply) else "failure"
        return replace(head, kind=kind, end=end, end_name=end_name)

    def fresh(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        """Give those chunks that are to be stored: of the newest attempt, behind the last."""
        attempt, last = self.attempt, self.last
        taken: list[Chunk] = []
        if self.kind is not None:
            return taken
        for chunk in chunks:
            if chunk.attempt > attempt:
                attempt, last = chunk.attempt, -1
                taken.clear()
            if chunk.attempt == attempt and chunk.index > last:
                taken.append(chunk)
                last = chunk.index
        return taken

    def extended(self, chunks: Sequence[Chunk], *, max_chunks: int) -> "ReplyHead":
        """Count chunks that `fresh` gave, at least one, in."""
        newest = chunks[-1]
        floor = self.floor if newest.attempt == self.attempt else 0
        floor = max(floor, newest.index + 1 - max_chunks)
        return replace(self, attempt=newest.attempt, last=newest.index, floor=floor)


def head_key(token: str) -> Key:
    """Name the head of a turn."""
    return Key(token, HEAD)


def chunk_name(born: str, attempt: int, last: int) -> str:
    """Name the item that holds chunks of an attempt up to index `last`; sorts by both."""
    return f"chunk#{born}#{attempt:012d}#{last:012d}"


def end_name(born: str, writer: str) -> str:
    """Name the pieces of a long end."""
    return f"end#{born}#{writer}"


def to_item(head: ReplyHead, *, writer: str, expires: int) -> Item:
    """Write a head, its key apart."""
    item: Item = {
        "session": {"S": head.session_id},
        "born": {"S": head.born},
        "attempt": n(head.attempt),
        "last": n(head.last),
        "floor": n(head.floor),
        "writer": {"S": writer},
        EXPIRY: n(expires),
    }
    texts: dict[str, str | None] = {
        "opened": head.opened,
        "fingerprint": head.fingerprint,
        "kind": head.kind,
        "end_name": head.end_name,
    }
    item |= {name: {"S": value} for name, value in texts.items() if value is not None}
    if head.end is not None:
        item["end"] = {"B": head.end}
    return item


def from_item(item: Mapping[str, Any]) -> ReplyHead:
    """Read what `to_item` wrote."""
    return ReplyHead(
        session_id=text(item, "session") or "",
        born=text(item, "born") or "",
        opened=text(item, "opened") or "",
        fingerprint=text(item, "fingerprint"),
        attempt=number(item, "attempt"),
        last=number(item, "last", -1),
        floor=number(item, "floor"),
        kind=text(item, "kind"),
        end=raw(item, "end"),
        end_name=text(item, "end_name") or "",
    )
