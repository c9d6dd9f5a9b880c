"""The runner alone: envelopes on the input stream in, envelopes on the output stream out."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from contract.services.future import UNKNOWN_FIELD, UNKNOWN_MODE
from contract.services.packages import Service
from contract.services.stage import Stage, stage
from turnline.protocol import SessionKey
from turnline.store import Done
from turnline.v1 import chat_pb2
from turnline.v1 import envelope_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with (
        stage(tmp_path_factory.mktemp("runner")) as opened,
        opened.playing(Service.RUNNER),
    ):
        yield opened


def request(prompt: str, name: str, mode: pb.DeliveryMode = pb.DELIVERY_MODE_KEEP) -> pb.Envelope:
    return pb.Envelope(
        request_id=f"r-{name}",
        session_id=f"s-{name}",
        scope="ann",
        user_id="ann",
        delivery_mode=mode,
        request=chat_pb2.ChatRequest(prompt=prompt),
        attributes={"integration": "mail"},
    )


async def put(at: Stage, envelope: pb.Envelope) -> None:
    await at.put("input", envelope.SerializeToString(), envelope.session_id)


async def test_a_request_becomes_a_reply_that_carries_its_metadata(at: Stage) -> None:
    await put(at, request("hello there", "whole"))

    reply = await at.hear_envelope("output")

    assert (reply.request_id, reply.session_id) == ("r-whole", "s-whole")
    assert (reply.scope, reply.user_id, reply.status_code) == ("ann", "ann", 200)
    assert reply.reply.result == "hello there "
    assert (reply.attempt, reply.fence > 0) == (1, True)
    assert reply.attributes == {"integration": "mail"}
    await at.is_settled("input")


async def test_a_streamed_turn_is_numbered_pieces_and_then_its_end(at: Stage) -> None:
    await put(at, request("one two three", "stream", pb.DELIVERY_MODE_KEEP_STREAM))

    envelopes = [await at.hear_envelope("output")]
    while not envelopes[-1].HasField("reply"):
        envelopes.append(await at.hear_envelope("output"))

    chunks = [chunk for envelope in envelopes for chunk in envelope.chunks]
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.attempt for chunk in chunks} == {1}
    assert "".join(chunk.event.content for chunk in chunks) == "one two three "
    assert envelopes[-1].chunk_count == len(chunks)


async def test_what_is_committed_is_in_the_session_store(at: Stage) -> None:
    await put(at, request("keep this", "kept"))
    await at.hear_envelope("output")

    key = SessionKey("ann", "s-kept")
    begun = await at.stores.sessions.begin_turn(key, "r-kept", lease=5.0)

    assert isinstance(begun, Done)
    assert begun.outcome.status_code == 200


async def test_an_agents_refusal_is_a_failure_with_its_status(at: Stage) -> None:
    await put(at, request("refuse", "refused"))

    failed = await at.hear_envelope("output")

    assert (failed.failure.code, failed.failure.status_code) == ("agent_failed", 402)
    assert failed.status_code == 402


async def test_a_copy_of_a_request_is_not_run_but_answered_again_as_the_same_message(
    at: Stage,
) -> None:
    await put(at, request("once", "copy"))
    first = await at.hear("output")
    await at.is_settled("input")

    await put(at, request("once", "copy"))
    again = await at.hear("output")

    assert first.headers and again.headers
    assert again.headers["Nats-Msg-Id"] == first.headers["Nats-Msg-Id"]
    assert pb.Envelope.FromString(again.data).fence == pb.Envelope.FromString(first.data).fence


async def test_a_plain_json_body_without_metadata_is_run(at: Stage) -> None:
    body = b'{"prompt": "from a scheduler", "session_id": "s-bare", "request_id": "r-bare"}'
    await at.put("input", body, "s-bare")

    reply = await at.hear_envelope("output")

    assert (reply.request_id, reply.reply.result) == ("r-bare", "from a scheduler ")


async def test_what_is_no_envelope_is_left_on_no_stream_and_holds_nobody_up(at: Stage) -> None:
    await at.put("input", b"\xff\xfe nonsense", "s-broken")
    await put(at, request("still here", "after"))

    assert (await at.hear_envelope("output")).reply.result == "still here "
    await at.is_settled("input")


async def test_a_request_of_a_future_version_is_run_and_keeps_what_is_unknown(at: Stage) -> None:
    future = request("hello", "future")
    raw = future.SerializeToString() + UNKNOWN_FIELD + UNKNOWN_MODE
    await at.put("input", raw, future.session_id)

    heard = (await at.hear("output")).data

    reply = pb.Envelope.FromString(heard)
    assert reply.reply.result == "hello "
    assert UNKNOWN_FIELD in heard
    assert reply.delivery_mode == 99  # as it came
