"""The envelope: the one thing that travels on a queue.

A plain immutable value.  Bytes are made and read by `turnline.protocol.codec` (Protobuf) and
`turnline.protocol.json_body` (the guide's JSON body); nothing else in the product touches wire
formats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from turnline.protocol.chat import ChatReply, ChatRequest
from turnline.protocol.chunk import Chunk
from turnline.protocol.failure import Failure
from turnline.protocol.ids import ReplyKey, SessionKey, digest

Payload = ChatRequest | ChatReply | Failure

# The one attribute of our own: tells a request sent again from the one before (see `again`).
SENT_AGAIN = "turnline.sent_again"


class DeliveryMode(StrEnum):
    """How the answer reaches the caller.

    UNSPECIFIED (messages that bring no metadata) means: push if `execution.mode` is `async` or
    `stream` and a user is named, otherwise keep.  Every answer is also kept in the response
    store, whatever the mode.
    """

    UNSPECIFIED = ""
    KEEP = "keep"
    KEEP_STREAM = "keep_stream"
    PUSH = "push"
    PUSH_STREAM = "push_stream"

    @property
    def streams(self) -> bool:
        """Whether chunks are wanted before the reply."""
        return self in (DeliveryMode.KEEP_STREAM, DeliveryMode.PUSH_STREAM)

    @property
    def pushes(self) -> bool:
        """Whether the answer goes to the user's connections."""
        return self in (DeliveryMode.PUSH, DeliveryMode.PUSH_STREAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """W3C trace context (https://www.w3.org/TR/trace-context/); empty when untraced."""

    traceparent: str = ""
    tracestate: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What a newer minor version wrote that this one has no field for, as Protobuf encoding.

    Only `turnline.protocol.codec` looks inside.  Carried along so that a forwarded envelope loses
    nothing; empty between processes of one version.

    Attributes:
        envelope: fields (and an unknown delivery mode) of the envelope itself.
        payload: fields of its payload; void once the payload is another.
    """

    envelope: bytes = b""
    payload: bytes = b""


NOTHING_UNREAD = Unread()


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A turn's request on the input queue, or a piece of its answer on the output queue.

    Attributes:
        request_id: names the turn, unique within its scope.
        session_id: names the session, unique within its scope.
        scope: the authenticated user, or empty where no AuthValidator is set.
        user_id: whose turn it is: the authenticated user, else what the caller said, else empty.
        delivery_mode: how the answer reaches the caller.
        status_code: HTTP status of a reply; 0 means missing and is read as 200.
        chunks: streamed pieces, oldest first; only on the output queue.
        payload: None only on an output envelope that carries chunks and no end.
        chunk_count: on a final answer, how many chunks its attempt streamed before it.
        attempt: 0 on a request; on an answer, the attempt that made it, from 1.
        fence: 0 on a request; on an answer, the fence of the claim it was made under.
        deadline: seconds since the epoch after which the turn is cut off; 0 means none was set.
        enqueued_at: seconds since the epoch when the request was admitted; 0 means unknown.
        trace: trace context to continue.
        attributes: further metadata, passed through unread from request to answer.
        unread: what a newer version wrote beside all this; passed through likewise.
    """

    request_id: str
    session_id: str
    scope: str = ""
    user_id: str = ""
    delivery_mode: DeliveryMode = DeliveryMode.UNSPECIFIED
    status_code: int = 0
    chunks: Sequence[Chunk] = ()
    payload: Payload | None = None
    chunk_count: int = 0
    attempt: int = 0
    fence: int = 0
    deadline: float = 0.0
    enqueued_at: float = 0.0
    trace: TraceContext = TraceContext()
    attributes: Mapping[str, str] = field(default_factory=dict)
    unread: Unread = NOTHING_UNREAD

    @property
    def session_key(self) -> SessionKey:
        """The session this belongs to; its token is the queue's group (order is kept per group)."""
        return SessionKey(self.scope, self.session_id)

    @property
    def reply_key(self) -> ReplyKey:
        """Where the answer is kept."""
        return ReplyKey(self.scope, self.request_id)

    @property
    def dedup_id(self) -> str:
        """Sameness on a queue: two envelopes with one id, sent within the dedup window, are one.

        A request is named by its turn.  An answer adds its attempt and the first chunk it
        carries, so that a retry's chunks are never taken for the first attempt's; its fence keeps
        a redriven turn apart from its first life.  A final answer is one per claim, so
        publishing it again is harmless.  A request sent `again` has an id of its own, and so have
        its answers.
        """
        turn = [self.scope, self.session_id, self.request_id]
        if SENT_AGAIN in self.attributes:
            turn.append(self.attributes[SENT_AGAIN])
        if isinstance(self.payload, ChatRequest):
            return digest("request", *turn)
        if self.payload is not None:
            return digest("answer", *turn, str(self.attempt), str(self.fence))
        first = self.chunks[0].index if self.chunks else -1
        return digest("chunks", *turn, str(self.attempt), str(self.fence), str(first))

    def again(self, now: float) -> "Envelope":
        """Make the same request, to be taken although one of its id came lately."""
        return replace(self, attributes={**self.attributes, SENT_AGAIN: str(now)})

    def renewed(self, now: float) -> "Envelope":
        """Make the same request as if admitted `now`: it gets as long a deadline as it had."""
        allowed = self.deadline - self.enqueued_at
        deadline = now + allowed if self.deadline and self.enqueued_at else 0.0
        return replace(self, deadline=deadline, enqueued_at=now)

    def answer(
        self,
        *,
        attempt: int,
        fence: int = 0,
        chunks: Sequence[Chunk] = (),
        payload: ChatReply | Failure | None = None,
        status_code: int = 0,
        chunk_count: int = 0,
    ) -> "Envelope":
        """Make an output envelope for this request, carrying its ids and metadata forward."""
        if isinstance(payload, Failure):
            status_code = payload.status_code
        return replace(
            self,
            status_code=status_code,
            chunks=tuple(chunks),
            payload=payload,
            chunk_count=chunk_count,
            attempt=attempt,
            fence=fence,
            unread=Unread(envelope=self.unread.envelope) if self.unread.payload else self.unread,
        )
