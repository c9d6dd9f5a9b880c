"""Any envelope survives both wire forms; any bytes are one or undecodable, never a crash."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from turnline.errors import InvalidRequestError, RetryHint, UndecodableError
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
from turnline.protocol.chat_body import BODY_FIELDS
from turnline.protocol.codec import decode, encode, headers
from turnline.protocol.json_body import (
    decode_any,
    decode_json_body,
    encode_json_body,
    parse_chat_body,
)

settings.register_profile(
    "wire", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
wire = settings(settings.get_profile("wire"))

texts = st.text(max_size=20)
words = st.text(min_size=1, max_size=8)
ids = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=40)
# 1/512 s is the finest binary fraction that nanoseconds hold exactly.
times = st.integers(0, 2**41).map(lambda ticks: ticks / 512)
numbers = st.integers(0, 2**31 - 1)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)


def without(names: frozenset[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts.filter(lambda t: t not in names), json_values, max_size=4)


attachments = st.builds(Attachment, data=texts, name=texts, mime_type=texts)
decisions = st.fixed_dictionaries(
    {"id": words},
    optional={
        "status": st.sampled_from(("approved", "denied", "cancelled")),
        "message": words,
        "payload": json_values,
    },
)
resumes = st.fixed_dictionaries(
    {"decisions": st.lists(decisions, max_size=2)}, optional={"run_id": words, "more": json_values}
)
schedules = st.fixed_dictionaries(
    {}, optional={"at": words, "cron": words, "session_mode": st.sampled_from(("reuse", "new"))}
)
requests = st.builds(
    ChatRequest,
    prompt=texts,
    agent=texts,
    user_id=texts,
    group_id=texts,
    thread_name=texts,
    files=st.lists(attachments, max_size=2).map(tuple),
    images=st.lists(attachments, max_size=2).map(tuple),
    resume=st.none() | resumes,
    requests=st.lists(json_objects, max_size=2).map(tuple),
    schedule=st.none() | schedules,
    scheduled_task_id=texts,
    scheduled_time=texts,
    extra=without(BODY_FIELDS),
)
replies = st.builds(
    ChatReply, result=texts, extra=without(frozenset({"result", "session_id", "done", "chunks"}))
)
failures = st.builds(
    Failure,
    code=words,
    message=texts,
    status_code=st.integers(400, 599),
    retry=st.sampled_from(RetryHint),
    retry_after=st.none() | st.integers(0, 2**20).map(lambda ticks: ticks / 512),
    field=texts,
)
# Only what the JSON form, which is flat, tells apart: `data` holds no name of a field.
events = st.builds(
    ChatEvent,
    type=st.sampled_from(EventType),
    message_id=texts,
    role=texts,
    content=texts,
    tool_call_id=texts,
    name=texts,
    data=without(
        frozenset({"type", "message_id", "role", "content", "delta", "tool_call_id", "name"})
    ),
)
chunks = st.builds(Chunk, attempt=numbers.map(lambda n: n + 1), index=numbers, event=events)
envelopes = st.builds(
    Envelope,
    request_id=ids,
    session_id=ids,
    scope=texts,
    user_id=texts,
    delivery_mode=st.sampled_from(DeliveryMode),
    status_code=st.sampled_from((0, 100, 200, 202, 400, 599)),
    chunks=st.just(()),
    payload=requests,
    deadline=times,
    enqueued_at=times,
    trace=st.builds(TraceContext, traceparent=texts, tracestate=texts),
    attributes=st.dictionaries(
        texts.filter(lambda name: not name.startswith("turnline.")), texts, max_size=12
    ),
)


@st.composite
def any_envelope(draw: st.DrawFn) -> Envelope:
    envelope = draw(envelopes)
    if draw(st.booleans()):
        return envelope
    streamed = tuple(draw(st.lists(chunks, max_size=3)))
    end = draw(replies | failures | (st.none() if streamed else st.nothing()))
    return envelope.answer(
        attempt=draw(numbers),
        fence=draw(st.integers(0, 2**63 - 1)),
        chunks=streamed,
        payload=end,
        status_code=draw(st.sampled_from((0, 200, 202))),
        chunk_count=draw(numbers),
    )


@wire
@given(any_envelope())
def test_any_envelope_survives_the_binary_form(envelope: Envelope) -> None:
    assert decode(encode(envelope)) == envelope


@wire
@given(any_envelope())
def test_any_envelope_survives_the_json_form(envelope: Envelope) -> None:
    raw, attributes = encode_json_body(envelope)

    assert len(attributes) <= 10
    assert decode_json_body(raw, attributes) == envelope


@wire
@given(any_envelope())
def test_either_form_is_told_from_the_other_without_a_content_type(envelope: Envelope) -> None:
    raw, attributes = encode_json_body(envelope)

    assert decode_any(encode(envelope), {}) == envelope
    assert decode_any(raw, attributes).request_id == envelope.request_id


@wire
@given(any_envelope())
def test_encoding_what_was_decoded_gives_the_same_bytes(envelope: Envelope) -> None:
    raw = encode(envelope)

    assert encode(decode(raw)) == raw


@wire
@given(any_envelope())
def test_headers_of_any_envelope_can_be_sent(envelope: Envelope) -> None:
    for name, value in headers(envelope).items():
        assert name.isascii()
        assert value
        assert value.isprintable()


@wire
@given(any_envelope(), st.data())
def test_damaged_bytes_are_an_envelope_or_undecodable(
    envelope: Envelope, data: st.DataObject
) -> None:
    raw = bytearray(encode(envelope))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])

    try:
        survivor = decode(cut)
    except UndecodableError:
        return
    assert decode(encode(survivor)) == survivor


@wire
@given(st.binary(max_size=200), st.dictionaries(texts, texts, max_size=4))
@example(b"{" * 5000, {})
@example(b'{"a":' * 900 + b"1" + b"}" * 900, {})
def test_random_bytes_are_never_more_than_undecodable(raw: bytes, sent: dict[str, str]) -> None:
    with pytest.raises(UndecodableError):
        decode(raw)
    with pytest.raises(UndecodableError):
        decode_any(raw, sent)


@wire
@given(st.dictionaries(st.sampled_from(sorted(BODY_FIELDS)) | texts, json_values, max_size=8))
def test_a_random_body_is_read_or_refused_by_field(body: dict[str, Any]) -> None:
    try:
        parsed = parse_chat_body(body)
    except InvalidRequestError as error:
        assert error.field
        return
    envelope = Envelope(request_id="r", session_id=parsed.session_id, payload=parsed.request)
    assert decode(encode(envelope)) == envelope
    assert decode_json_body(*encode_json_body(envelope)) == envelope


ANSWER_KEYS = ("result", "error", "done", "event", "chunks", "code", "retry", "retry_after")
METADATA_KEYS = ("kind", "streamed", "scope", "fence", "deadline", "delivery_mode", "attributes")


@wire
@given(
    st.dictionaries(
        st.sampled_from((*sorted(BODY_FIELDS), *ANSWER_KEYS)) | texts, json_values, max_size=8
    ),
    st.none() | st.dictionaries(st.sampled_from(METADATA_KEYS) | texts, json_values, max_size=6),
    st.dictionaries(st.sampled_from(("request_id", "status_code")) | texts, texts, max_size=4),
)
def test_a_random_message_is_an_envelope_or_undecodable(
    body: dict[str, Any], metadata: dict[str, Any] | None, attributes: dict[str, str]
) -> None:
    if metadata is not None:
        attributes = attributes | {"turnline": orjson.dumps(metadata).decode()}

    try:
        envelope = decode_json_body(orjson.dumps(body), attributes)
    except UndecodableError:
        return
    assert decode(encode(envelope)) == envelope
