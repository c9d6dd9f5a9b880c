"""The codec carries every value, tells garbage by reason, and loses nothing newer versions add."""

from dataclasses import replace

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet

from turnline.errors import (
    AgentFailedError,
    InvalidRequestError,
    RetryHint,
    UndecodableError,
)
from turnline.protocol import (
    Attachment,
    ChatEvent,
    ChatReply,
    ChatRequest,
    Chunk,
    DeliveryMode,
    Envelope,
    EventType,
    Failure,
    TraceContext,
)
from turnline.protocol.codec import decode, encode, headers
from turnline.v1 import chunk_pb2
from turnline.v1 import envelope_pb2 as pb

REQUEST = Envelope(
    request_id="r-1",
    session_id="s-1",
    scope="u-1",
    user_id="u-1",
    delivery_mode=DeliveryMode.KEEP_STREAM,
    payload=ChatRequest(
        prompt="hello",
        agent="echo",
        user_id="u-1",
        group_id="g",
        thread_name="t",
        files=(Attachment(data="aGk=", name="a.txt", mime_type="text/plain"),),
        images=(Attachment(data="https://example.org/a.png"),),
        resume={
            "run_id": "run-1",
            "decisions": [{"id": "d", "status": "denied", "payload": None, "why": 1}],
        },
        requests=({"type": "text", "text": "hi"},),
        schedule={"cron": "0 9 * * *", "timezone": "Europe/Oslo", "session_mode": "new"},
        scheduled_task_id="task",
        scheduled_time="2026-01-01T09:00:00Z",
        extra={"foo": {"a": [1, 2.5, True, None, "x", {}, []]}},
    ),
    deadline=1_790_000_060.25,
    enqueued_at=1_790_000_000.125,
    trace=TraceContext(traceparent="00-abc-def-01", tracestate="k=v"),
    attributes={"b": "2", "a": "1"},
)
DELTA = ChatEvent(type=EventType.TEXT_DELTA, message_id="m", content="tok ")


def newer(envelope: Envelope) -> pb.Envelope:
    return pb.Envelope.FromString(encode(envelope))


def with_unknown_fields(raw: bytes) -> bytes:
    # Field 900, a string "new", as a later minor version might add it.
    return raw + b"\xa2\x38\x03new"


def test_a_request_with_every_field_survives_the_wire() -> None:
    assert decode(encode(REQUEST)) == REQUEST


def test_chunks_and_the_end_can_share_an_envelope() -> None:
    chunks = (Chunk(attempt=2, index=0, event=DELTA), Chunk(attempt=2, index=1, event=DELTA))
    envelope = REQUEST.answer(
        attempt=2,
        fence=2**40,
        chunks=chunks,
        payload=ChatReply(result="tok tok ", extra={"status": "PAUSED"}),
        status_code=202,
        chunk_count=2,
    )

    assert decode(encode(envelope)) == envelope


@pytest.mark.parametrize("kind", list(EventType))
def test_every_event_type_survives_the_wire(kind: EventType) -> None:
    event = ChatEvent(
        type=kind, message_id="m", role="r", tool_call_id="t", name="n", data={"k": 1}
    )
    envelope = REQUEST.answer(attempt=1, chunks=(Chunk(attempt=1, index=0, event=event),))

    assert decode(encode(envelope)).chunks[0].event == event


@pytest.mark.parametrize("after", [None, 0.0, 1.5])
@pytest.mark.parametrize("retry", list(RetryHint))
def test_a_failure_keeps_its_retry_advice(retry: RetryHint, after: float | None) -> None:
    failure = Failure(
        code="code_of_tomorrow", message="no", status_code=429, retry=retry, retry_after=after
    )
    envelope = REQUEST.answer(attempt=1, payload=failure)

    assert decode(encode(envelope)) == envelope


def test_an_empty_reply_is_still_a_reply() -> None:
    envelope = REQUEST.answer(attempt=1, payload=ChatReply())

    assert decode(encode(envelope)).payload == ChatReply()


def test_equal_envelopes_have_equal_bytes_whatever_the_order_of_their_maps() -> None:
    request = replace(REQUEST.payload, extra={"a": 1, "b": {"d": 1, "c": 2}})  # type: ignore[type-var]  # known to be a request
    turned = replace(REQUEST.payload, extra={"b": {"c": 2, "d": 1}, "a": 1})  # type: ignore[type-var]  # likewise

    one = encode(replace(REQUEST, payload=request, attributes={"a": "1", "b": "2"}))
    two = encode(replace(REQUEST, payload=turned, attributes={"b": "2", "a": "1"}))

    assert one == two


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\xff\xff\xff", "not a Protobuf envelope"),
        (b"", "neither chunks nor a payload"),
        (b'{"prompt":"x"}', "not a Protobuf envelope"),
        (encode(replace(REQUEST, request_id="")), "request_id must not be empty"),
        (encode(replace(REQUEST, session_id="")), "session_id must not be empty"),
        (encode(replace(REQUEST, session_id="s" * 257)), "session_id is longer than 256 bytes"),
        (encode(replace(REQUEST, payload=None)), "neither chunks nor a payload"),
        (encode(replace(REQUEST, status_code=77)), "status_code"),
        (encode(replace(REQUEST, chunks=(Chunk(attempt=0, index=0, event=DELTA),))), "attempt"),
    ],
)
def test_what_is_no_envelope_is_refused_with_its_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(UndecodableError, match=reason):
        decode(raw)


def test_a_time_out_of_range_is_refused() -> None:
    message = newer(REQUEST)
    message.deadline.nanos = -1

    with pytest.raises(UndecodableError, match="deadline is out of range"):
        decode(message.SerializeToString())


def test_a_number_json_does_not_have_is_refused() -> None:
    message = newer(REQUEST)
    message.request.extra.fields["n"].number_value = float("nan")

    with pytest.raises(UndecodableError, match="not finite"):
        decode(message.SerializeToString())


def test_unknown_fields_of_an_envelope_reach_its_answer() -> None:
    envelope = decode(with_unknown_fields(encode(REQUEST)))

    answer = newer(envelope.answer(attempt=1, payload=ChatReply(result="x")))

    assert UnknownFieldSet(answer)[0].data == b"new"
    assert answer.reply.result == "x"


def test_unknown_fields_of_a_payload_stay_with_it_and_not_with_its_answer() -> None:
    message = newer(REQUEST)
    message.request.MergeFromString(with_unknown_fields(b""))

    envelope = decode(message.SerializeToString())

    assert len(UnknownFieldSet(newer(envelope).request)) == 1
    assert newer(envelope.answer(attempt=1, payload=ChatReply())).WhichOneof("payload") == "reply"


def test_an_unknown_delivery_mode_reads_as_unspecified_and_is_passed_on() -> None:
    message = newer(REQUEST)
    message.delivery_mode = 77  # type: ignore[assignment]  # of a later version

    envelope = decode(message.SerializeToString())

    assert envelope.delivery_mode is DeliveryMode.UNSPECIFIED
    assert newer(envelope).delivery_mode == 77
    chosen = replace(envelope, delivery_mode=DeliveryMode.KEEP)
    assert decode(encode(chosen)).delivery_mode is DeliveryMode.KEEP


@pytest.mark.parametrize(("name", "shown"), [("image_delta", "image_delta"), ("", "event_type_99")])
def test_an_unknown_event_type_becomes_a_custom_event_of_its_name(name: str, shown: str) -> None:
    event = chunk_pb2.ChatEvent(type=99, content="x", type_name=name)  # type: ignore[arg-type]  # of a later version
    message = pb.Envelope(request_id="r", session_id="s")
    message.chunks.add(attempt=1, index=0, event=event)

    chunk = decode(message.SerializeToString()).chunks[0]

    assert chunk.event.type is EventType.CUSTOM
    assert chunk.event.to_json() == {"type": shown, "content": "x"}
    answer = REQUEST.answer(attempt=1, chunks=(chunk,))
    assert decode(encode(answer)).chunks[0] == chunk


def test_a_payload_of_an_unknown_kind_is_refused() -> None:
    raw = with_unknown_fields(encode(replace(REQUEST, payload=None)))

    with pytest.raises(UndecodableError, match="kind this version knows"):
        decode(raw)


@pytest.mark.parametrize(
    "extra", [{"n": 2**53 + 1}, {"n": float("inf")}, {"n": object()}, {1: "x"}, {"t": "\ud800"}]
)
def test_what_protobuf_cannot_carry_is_refused_and_never_rounded(extra: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        encode(replace(REQUEST, payload=ChatRequest(prompt="x", extra=extra)))
    with pytest.raises(AgentFailedError):
        encode(REQUEST.answer(attempt=1, payload=ChatReply(extra=extra)))


def test_free_form_json_is_carried_to_its_depth_and_no_deeper() -> None:
    value: dict[str, object] = {}
    for _ in range(23):
        value = {"k": value}
    envelope = replace(REQUEST, payload=ChatRequest(prompt="x", extra=value))

    assert decode(encode(envelope)) == envelope
    with pytest.raises(InvalidRequestError, match="deeper than 24"):
        encode(replace(REQUEST, payload=ChatRequest(prompt="x", extra={"k": value})))


def test_headers_mirror_what_brokers_and_operators_look_for() -> None:
    answer = REQUEST.answer(attempt=2, fence=3, payload=ChatReply(), status_code=200)

    assert headers(answer) == {
        "content-type": "application/x-protobuf",
        "request_id": "r-1",
        "user_id": "u-1",
        "scope": "u-1",
        "status_code": "200",
        "attempt": "2",
        "dedup_id": answer.dedup_id,
        "traceparent": "00-abc-def-01",
        "tracestate": "k=v",
    }


def test_headers_leave_out_what_no_header_can_hold() -> None:
    envelope = replace(REQUEST, scope="", user_id="a\r\nb", trace=TraceContext(tracestate=" x"))

    assert set(headers(envelope)) == {"content-type", "request_id", "dedup_id"}
