"""Messages of SQS as envelopes and back."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnline.errors import UndecodableError
from turnline.protocol import ChatRequest, SessionKey
from turnline.testing.conformance.transport.envelopes import answer, full_request, request
from turnline.transport.sqs.options import MOST_BYTES
from turnline.transport.sqs.wire import (
    CONTENT_TYPE,
    PROTOBUF,
    envelope_of,
    group_of,
    outgoing,
    raw_of,
)

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
AWS_GROUP = re.compile(r"""[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}""")
IDS = st.text(min_size=1, max_size=256) | st.text("ab~012", min_size=1, max_size=140)


@given(st.sampled_from(["", "ann", "~2"]) | IDS, IDS)
def test_every_session_has_a_group_that_aws_takes(scope: str, session_id: str) -> None:
    assert AWS_GROUP.fullmatch(group_of(SessionKey(scope, session_id)))


@given(st.lists(st.tuples(st.just("") | IDS, IDS), min_size=2, unique=True))
def test_no_two_sessions_share_a_group(keys: list[tuple[str, str]]) -> None:
    assert len({group_of(SessionKey(*key)) for key in keys}) == len(keys)


def test_a_session_that_aws_takes_is_its_own_group() -> None:
    assert group_of(SessionKey("", "chat-42/é".replace("é", "e"))) == "chat-42/e"
    assert group_of(SessionKey("", "x" * 128)) == "x" * 128


def test_a_session_named_like_a_hash_is_not_the_session_of_that_hash() -> None:
    hashed = group_of(SessionKey("", "Sitzung-äöü"))

    assert group_of(SessionKey("", hashed)) != hashed


def test_the_body_is_the_guides_json_and_metadata_are_attributes() -> None:
    message = outgoing(full_request(), largest=MOST_BYTES)

    assert json.loads(message.body)["prompt"] == "Wie geht's? 今日は 🙂"
    assert message.attributes["request_id"] == "request-1"
    assert len(message.attributes) <= 10
    assert envelope_of(message.body, message.attributes) == full_request()


def test_json_that_is_too_large_goes_as_protobuf() -> None:
    sent = answer("session", "turn", result='"\n' * 10_000)

    message = outgoing(sent, largest=30_000)

    assert message.attributes == {CONTENT_TYPE: PROTOBUF}
    assert message.size <= 30_000
    assert envelope_of(message.body, message.attributes) == sent


def test_one_turn_is_one_message_whoever_admits_it_and_sent_again_is_another() -> None:
    sent = request("session", "turn")
    names = [
        outgoing(each, largest=MOST_BYTES).dedup_id
        for each in (sent, replace(sent, enqueued_at=1.7e9), sent.renewed(1.7e9), sent.again(1.7e9))
    ]

    assert len(set(names[:3])) == 1
    assert len(set(names)) == 2
    assert all(len(name) <= 128 for name in names)


def test_a_schedulers_body_without_attributes_is_a_request() -> None:
    body = {
        "request_id": "r",
        "session_id": "s",
        "user_id": "u",
        "prompt": "hello",
        "scheduled_task_id": "t",
        "scheduled_time": "2026-11-30T00:00:00Z",
    }

    envelope = envelope_of(json.dumps(body), {})

    assert (envelope.request_id, envelope.session_id, envelope.user_id) == ("r", "s", "u")
    assert isinstance(envelope.payload, ChatRequest)
    assert envelope.payload.scheduled_task_id == "t"


def test_protobuf_that_is_not_base64_is_no_envelope_and_keeps_its_text() -> None:
    attributes = {CONTENT_TYPE: PROTOBUF}

    with pytest.raises(UndecodableError, match="base64"):
        envelope_of("*** not base64 ***", attributes)
    assert raw_of("*** not base64 ***", attributes) == b"*** not base64 ***"
