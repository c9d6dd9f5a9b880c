"""The guide's JSON body: what surfaces accept, and envelopes as bodies with attributes."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from turnline.errors import AgentFailedError, Code, InvalidRequestError, UndecodableError
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
from turnline.protocol.codec import encode, headers
from turnline.protocol.json_body import (
    check_request,
    decode_any,
    decode_json_body,
    encode_json_body,
    parse_chat_body,
)

MINIMAL = {"prompt": "hi", "session_id": "s"}
REQUEST = Envelope(
    request_id="r-1",
    session_id="s-1",
    scope="u-1",
    user_id="u-1",
    delivery_mode=DeliveryMode.PUSH_STREAM,
    payload=ChatRequest(prompt="hello", user_id="u-1", extra={"foo": {"a": 1}}),
    deadline=1_790_000_060.25,
    enqueued_at=1_790_000_000.125,
    trace=TraceContext(traceparent="00-abc-def-01", tracestate="k=v"),
    attributes={"endpoint_url": "https://example.org"},
)
DELTA = ChatEvent(type=EventType.TEXT_DELTA, message_id="m", content="tok ")


def bodies(envelope: Envelope) -> tuple[dict[str, Any], dict[str, str]]:
    raw, attributes = encode_json_body(envelope)
    return orjson.loads(raw), attributes


def refusal(body: object) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        parse_chat_body(body)
    return caught.value


# --- parse_chat_body ----------------------------------------------------------------------------


def test_a_minimal_body_is_read() -> None:
    parsed = parse_chat_body(MINIMAL)

    assert (parsed.session_id, parsed.request_id) == ("s", "")
    assert parsed.request == ChatRequest(prompt="hi")


def test_every_field_of_the_guide_is_read_and_the_rest_is_extra() -> None:
    decision = {"id": "d", "status": "approved", "message": None, "payload": {"x": None}}

    parsed = parse_chat_body(
        {
            **MINIMAL,
            "request_id": "r",
            "agent": "echo",
            "user_id": "u",
            "group_id": None,
            "thread_name": "t",
            "files": [{"file_data": "aGk=", "name": "a", "mime_type": "text/plain"}],
            "images": [{"image_data": "data:image/png;base64,AA", "name": None}],
            "schedule": {"cron": "* * * * *", "at": None, "session_mode": "new"},
            "resume": {"run_id": None, "decisions": [decision]},
            "requests": [{"type": "text", "text": "x"}],
            "scheduled_task_id": "task",
            "scheduled_time": "2026-01-01T00:00:00Z",
            "foo": {"bar": [1, None]},
        }
    )

    assert parsed.request_id == "r"
    assert parsed.request == ChatRequest(
        prompt="hi",
        agent="echo",
        user_id="u",
        thread_name="t",
        files=(Attachment(data="aGk=", name="a", mime_type="text/plain"),),
        images=(Attachment(data="data:image/png;base64,AA"),),
        schedule={"cron": "* * * * *", "session_mode": "new"},
        resume={"decisions": [{"id": "d", "status": "approved", "payload": {"x": None}}]},
        requests=({"type": "text", "text": "x"},),
        scheduled_task_id="task",
        scheduled_time="2026-01-01T00:00:00Z",
        extra={"foo": {"bar": [1, None]}},
    )


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"session_id": ""}, "session_id", "No session_id is provided in the request"),
        ({"session_id": None}, "session_id", "No session_id is provided in the request"),
        ({"session_id": "  "}, "session_id", "session_id must not be empty"),
        ({"session_id": "é" * 129}, "session_id", "session_id is longer than 256 bytes"),
        ({"session_id": "a\nb"}, "session_id", "session_id must not hold control characters"),
        ({"request_id": "x" * 257}, "request_id", "request_id is longer than 256 bytes"),
        ({"user_id": "x" * 257}, "user_id", "user_id is longer than 256 bytes"),
        ({"prompt": ""}, "prompt", "No prompt provided in the request"),
        ({"prompt": "\ud800"}, "prompt", "prompt is not valid Unicode text"),
        (
            {"images": [{"image_data": "AA"}]},
            "images.0.mime_type",
            "mime_type is missing for image input, either in the base64 or explicitly",
        ),
        (
            {"files": [{"file_data": "s3://b/k"}, {"file_data": "AA", "name": "n"}]},
            "files.1.mime_type",
            "mime_type is missing for file input, either in the base64 or explicitly",
        ),
        (
            {"files": [{"name": "n"}]},
            "files.0.file_data",
            "files.0.file_data must not be empty",
        ),
        ({"schedule": {}}, "schedule", "schedule must hold either 'at' or 'cron'"),
        (
            {"schedule": {"at": "x", "cron": "y"}},
            "schedule",
            "schedule must hold either 'at' or 'cron'",
        ),
        (
            {"schedule": {"at": "x", "session_mode": "other"}},
            "schedule.session_mode",
            "schedule.session_mode must be reuse or new",
        ),
        (
            {"resume": {"decisions": [{}]}},
            "resume.decisions.0.id",
            "resume.decisions.0.id must not be empty",
        ),
        (
            {"resume": {"decisions": [{"id": "d", "status": "maybe"}]}},
            "resume.decisions.0.status",
            "resume.decisions.0.status must be approved, denied or cancelled",
        ),
        (
            {"requests": [{"type": "smell"}]},
            "requests.0.type",
            "requests.0.type must be one of "
            "attachment_ref, file, image, other, resume, text, voice",
        ),
        ({"foo": 2**53 + 1}, "extra", "extra holds an integer beyond 2^53; send it as a string"),
        ({"foo": float("nan")}, "extra", "extra holds a number that is not finite"),
    ],
)
def test_a_broken_rule_is_named_with_its_field(
    change: dict[str, Any], field: str, message: str
) -> None:
    error = refusal(MINIMAL | change)

    assert (error.code, error.field, error.message) == (Code.INVALID_REQUEST, field, message)


@pytest.mark.parametrize(
    ("key", "code"), [("session_id", Code.INVALID_REQUEST), ("prompt", Code.MALFORMED_BODY)]
)
def test_a_missing_key_has_the_guides_status(key: str, code: Code) -> None:
    error = refusal({k: v for k, v in MINIMAL.items() if k != key})

    assert (error.code, error.field) == (code, key)


@pytest.mark.parametrize("instead", [{"resume": {}}, {"requests": [{"type": "text"}]}])
def test_a_prompt_may_be_missing_beside_a_resume_or_requests(instead: dict[str, Any]) -> None:
    assert parse_chat_body({"session_id": "s"} | instead).request.prompt == ""


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"prompt": 5}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"session_id": 7}, "session_id"),
        ({"request_id": 7}, "request_id"),
        ({"agent": []}, "agent"),
        ({"files": {}}, "files"),
        ({"files": ["x"]}, "files.0"),
        ({"images": [{"image_data": 1}]}, "images.0.image_data"),
        ({"images": [{"image_data": "x", "mime_type": 1}]}, "images.0.mime_type"),
        ({"resume": []}, "resume"),
        ({"resume": {"decisions": {}}}, "resume.decisions"),
        ({"resume": {"decisions": ["x"]}}, "resume.decisions.0"),
        ({"resume": {"decisions": [{"id": 1}]}}, "resume.decisions.0.id"),
        ({"schedule": "daily"}, "schedule"),
        ({"schedule": {"at": 5}}, "schedule.at"),
        ({"requests": "x"}, "requests"),
        ({"requests": ["x"]}, "requests.0"),
        ({"foo": object()}, "extra"),
    ],
)
def test_a_wrong_type_makes_the_body_malformed(change: dict[str, Any], field: str) -> None:
    error = refusal(MINIMAL | change)

    assert (error.code, error.field) == (Code.MALFORMED_BODY, field)


@pytest.mark.parametrize("body", [None, [], [1], "x", 5, True])
def test_only_an_object_is_a_body(body: object) -> None:
    assert refusal(body).code is Code.MALFORMED_BODY


def test_refusals_hold_no_content_of_the_body() -> None:
    error = refusal(MINIMAL | {"s3cret": {"s3cret": object()}, "prompt": "s3cret"})

    assert "s3cret" not in error.message + error.field


def test_a_request_off_a_queue_can_be_checked_by_the_same_rules() -> None:
    with pytest.raises(InvalidRequestError, match="No prompt provided"):
        check_request(ChatRequest())
    with pytest.raises(InvalidRequestError, match="decisions"):
        check_request(ChatRequest(prompt="x", resume={"decisions": 5}))
    check_request(ChatRequest(prompt="x"))


# --- envelopes as JSON bodies -------------------------------------------------------------------


def test_a_request_is_the_guides_body_with_its_metadata_in_attributes() -> None:
    body, attributes = bodies(REQUEST)

    assert body == {
        "prompt": "hello",
        "session_id": "s-1",
        "user_id": "u-1",
        "foo": {"a": 1},
    }
    assert orjson.loads(attributes.pop("turnline")) == {
        "kind": "request",
        "scope": "u-1",
        "delivery_mode": "push_stream",
        "deadline": 1_790_000_060.25,
        "enqueued_at": 1_790_000_000.125,
        "tracestate": "k=v",
    }
    assert attributes == {
        "request_id": "r-1",
        "user_id": "u-1",
        "traceparent": "00-abc-def-01",
        "endpoint_url": "https://example.org",
    }


def test_a_reply_is_the_guides_reply() -> None:
    answer = REQUEST.answer(
        attempt=1, payload=ChatReply(result="hi", extra={"status": "PAUSED"}), status_code=202
    )

    body, attributes = bodies(answer)

    assert body == {"result": "hi", "session_id": "s-1", "status": "PAUSED"}
    assert attributes["status_code"] == "202"


def test_a_failure_is_the_guides_error() -> None:
    body, attributes = bodies(
        REQUEST.answer(attempt=1, payload=Failure(code="internal", message="no", status_code=500))
    )

    assert body == {
        "error": "no",
        "code": "internal",
        "retry": "never",
        "status_code": 500,
        "session_id": "s-1",
    }
    assert attributes["status_code"] == "500"


def test_one_chunk_is_the_guides_stream_chunk_with_its_number() -> None:
    body, _ = bodies(REQUEST.answer(attempt=2, chunks=(Chunk(attempt=2, index=3, event=DELTA),)))

    assert body == {
        "delta": "tok ",
        "event": {"type": "text_delta", "message_id": "m", "content": "tok "},
        "attempt": 2,
        "index": 3,
        "done": False,
        "session_id": "s-1",
    }


CHUNKS = tuple(Chunk(attempt=1, index=i, event=DELTA) for i in range(3))


@pytest.mark.parametrize(
    "envelope",
    [
        REQUEST,
        REQUEST.answer(attempt=1, fence=2, payload=ChatReply(result="x"), status_code=200),
        REQUEST.answer(attempt=1, payload=ChatReply(extra={"error": "x", "done": 1, "event": 2})),
        REQUEST.answer(
            attempt=1,
            payload=Failure(code="new", message="", status_code=429, retry_after=0.5, field="f"),
        ),
        REQUEST.answer(attempt=1, chunks=CHUNKS[:1]),
        REQUEST.answer(attempt=1, chunks=CHUNKS),
        REQUEST.answer(attempt=1, chunks=CHUNKS, payload=ChatReply(result="x"), chunk_count=3),
        REQUEST.answer(
            attempt=1,
            chunks=CHUNKS,
            payload=Failure(code="internal", message="no", status_code=500),
            chunk_count=3,
        ),
        replace(REQUEST, payload=ChatRequest(), user_id="", scope=""),
        replace(REQUEST, payload=ChatRequest(prompt="\uffff\ufffe\x00é")),
    ],
)
def test_an_envelope_survives_its_json_form(envelope: Envelope) -> None:
    raw, attributes = encode_json_body(envelope)

    assert decode_json_body(raw, attributes) == envelope


def test_attributes_are_ten_at_most_non_empty_and_of_valid_names() -> None:
    awkward = {"": "x", "a b": "1", "AWS.x": "2", "empty": "", "nul": "\x00", "scope": "spoof"}
    envelope = replace(REQUEST, attributes=awkward | {f"a{i}": str(i) for i in range(20)})

    raw, attributes = encode_json_body(envelope)

    assert len(attributes) == 10
    assert all(attributes.values())
    assert not awkward.keys() & attributes.keys()
    assert decode_json_body(raw, attributes) == envelope


def test_non_characters_that_sqs_refuses_are_escaped() -> None:
    envelope = replace(
        REQUEST, payload=ChatRequest(prompt="\uffff\ufffe"), attributes={"a": "\uffff"}
    )

    raw, attributes = encode_json_body(envelope)

    text = raw.decode() + "".join(attributes.values())
    assert "\uffff" not in text
    assert "\ufffe" not in text


def test_a_scheduled_occurrence_needs_no_attributes() -> None:
    raw = orjson.dumps(
        {
            "prompt": "report",
            "session_id": "s",
            "request_id": "r",
            "user_id": "u",
            "scheduled_task_id": "task",
            "scheduled_time": "2026-01-01T00:00:00Z",
        }
    )

    envelope = decode_json_body(raw, {})

    assert (envelope.request_id, envelope.user_id) == ("r", "u")
    assert envelope.payload == ChatRequest(
        prompt="report",
        user_id="u",
        scheduled_task_id="task",
        scheduled_time="2026-01-01T00:00:00Z",
    )
    assert headers(envelope)["request_id"] == "r"


def test_attributes_win_over_the_body() -> None:
    raw = orjson.dumps(MINIMAL | {"request_id": "body", "user_id": "body"})

    envelope = decode_json_body(raw, {"request_id": "attribute", "user_id": "attribute"})

    assert (envelope.request_id, envelope.user_id) == ("attribute", "attribute")


def test_an_envelope_without_a_user_is_not_given_the_one_in_its_body() -> None:
    envelope = replace(REQUEST, user_id="")

    assert decode_json_body(*encode_json_body(envelope)).user_id == ""


def test_plain_attributes_of_the_guide_are_passed_through() -> None:
    raw = orjson.dumps(MINIMAL)

    envelope = decode_json_body(raw, {"request_id": "r", "endpoint_url": "x"})

    assert envelope.attributes == {"endpoint_url": "x"}


def test_metadata_of_a_newer_version_reaches_the_answer() -> None:
    raw, attributes = encode_json_body(REQUEST)
    packed = orjson.loads(attributes["turnline"]) | {"priority": {"level": 3}}

    envelope = decode_json_body(raw, attributes | {"turnline": orjson.dumps(packed).decode()})

    _, answered = bodies(envelope.answer(attempt=1, payload=ChatReply()))
    assert orjson.loads(answered["turnline"])["priority"] == {"level": 3}


@pytest.mark.parametrize(
    ("body", "status_code", "expected"),
    [
        ({"result": "x"}, "", ChatReply(result="x")),
        ({"done": True}, "", ChatReply()),
        ({"error": "no"}, "", Failure(code="internal", message="no", status_code=500)),
        ({"error": "no"}, "400", Failure(code="internal", message="no", status_code=400)),
        (
            {"error": "no", "code": "queue_full", "done": True},
            "",
            Failure(code="queue_full", message="no", status_code=503),
        ),
    ],
)
def test_an_answer_is_read_without_metadata(
    body: dict[str, Any], status_code: str, expected: ChatReply | Failure
) -> None:
    raw = orjson.dumps({"session_id": "s"} | body)

    envelope = decode_json_body(raw, {"request_id": "r", "status_code": status_code})

    assert envelope.payload == expected


def test_an_event_of_a_newer_version_keeps_its_type_for_clients() -> None:
    event = {"type": "image_delta", "content": "AA", "width": 3}
    body = {"event": event, "attempt": 1, "index": 0, "done": False, "session_id": "s"}

    envelope = decode_json_body(orjson.dumps(body), {"request_id": "r"})

    assert envelope.chunks[0].event.type is EventType.CUSTOM
    assert envelope.chunks[0].event.to_json() == event


@pytest.mark.parametrize(
    ("raw", "attributes", "reason"),
    [
        (b"", {}, "not JSON"),
        (b"\xff", {}, "not JSON"),
        (b"[]", {}, "not a JSON object"),
        (b'{"prompt":"x","session_id":"s"}', {}, "request_id must not be empty"),
        (b'{"prompt":"x"}', {"request_id": "r"}, "session_id must not be empty"),
        (b'{"prompt":5,"session_id":"s"}', {"request_id": "r"}, "prompt must be a string"),
        (b'{"result":5,"session_id":"s"}', {"request_id": "r"}, "result must be a string"),
        (b'{"done":false,"session_id":"s"}', {"request_id": "r"}, "neither chunks nor"),
        (b'{"event":{},"session_id":"s"}', {"request_id": "r"}, "attempt"),
        (b'{"chunks":5,"session_id":"s"}', {"request_id": "r"}, "chunks must be a list"),
        (b'{"prompt":"x","session_id":"s"}', {"turnline": "x"}, "metadata is not JSON"),
        (b'{"prompt":"x","session_id":"s"}', {"turnline": "[]"}, "not a JSON object"),
        (b'{"prompt":"x","session_id":"s"}', {"status_code": "x"}, "status_code"),
        (b'{"prompt":"x","session_id":"s"}', {"status_code": "7"}, "status_code"),
        (b'{"prompt":"x","session_id":"s"}', {"turnline": '{"kind":"poem"}'}, "does not know"),
        (
            b'{"result":"x","session_id":"s"}',
            {"turnline": '{"fence":-1}', "request_id": "r"},
            "fence",
        ),
        (
            b'{"result":"x","session_id":"s"}',
            {"turnline": '{"deadline":"x"}', "request_id": "r"},
            "deadline",
        ),
        (
            b'{"result":"x","session_id":"s"}',
            {"turnline": '{"attributes":{"a":1}}', "request_id": "r"},
            "texts",
        ),
    ],
)
def test_what_is_no_message_is_refused_with_its_reason(
    raw: bytes, attributes: dict[str, str], reason: str
) -> None:
    with pytest.raises(UndecodableError, match=reason):
        decode_json_body(raw, attributes)


@pytest.mark.parametrize("extra", [{"t": "\ud800"}, {"n": float("inf")}, {"n": object()}])
def test_what_json_cannot_carry_blames_its_author(extra: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        encode_json_body(replace(REQUEST, payload=ChatRequest(prompt="x", extra=extra)))
    with pytest.raises(AgentFailedError):
        encode_json_body(REQUEST.answer(attempt=1, payload=ChatReply(extra=extra)))
    with pytest.raises(AgentFailedError):
        encode_json_body(REQUEST.answer(attempt=1, payload=ChatReply(result="\ud800")))


# --- either form --------------------------------------------------------------------------------


def test_the_content_type_decides_the_form() -> None:
    raw, attributes = encode_json_body(REQUEST)

    assert decode_any(encode(REQUEST), headers(REQUEST)) == REQUEST
    assert decode_any(raw, attributes | {"Content-Type": "application/json"}) == REQUEST
    with pytest.raises(UndecodableError, match="not a Protobuf envelope"):
        decode_any(raw, {"content-type": "application/x-protobuf"})
    with pytest.raises(UndecodableError, match="not JSON"):
        decode_any(encode(REQUEST), {"content-type": "application/json"})


@pytest.mark.parametrize("blank", [b"", b"\n ", b"\r\n\t"])
def test_the_first_byte_decides_where_there_is_no_content_type(blank: bytes) -> None:
    raw, attributes = encode_json_body(REQUEST)

    assert decode_any(blank + raw, attributes) == REQUEST
    assert decode_any(encode(REQUEST), {}) == REQUEST


def test_an_envelope_that_looks_like_json_at_first_is_still_read() -> None:
    envelope = replace(REQUEST, request_id="{" + "x" * 31)

    assert encode(envelope)[:3] == b"\n {"
    assert decode_any(encode(envelope), {}) == envelope


def test_headers_of_the_broker_do_not_become_attributes() -> None:
    raw = orjson.dumps(MINIMAL | {"request_id": "r"})
    sent = {"Nats-Msg-Id": "x", "Ak-Group-Id": "s", "ak-dedup-id": "y", "mine": "z"}

    assert decode_any(raw, sent).attributes == {"mine": "z"}
