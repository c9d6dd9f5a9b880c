"""Servers that say more than this client knows, or end a stream early."""

import pytest

from client_tests.own_server import OwnServer, client_of
from turnline_client import Chunk, Reply, StreamItem, TurnlineError
from turnline_client._wire.chat_pb2 import ChatReply, TurnEnd
from turnline_client._wire.chat_service_pb2 import StreamChatResponse
from turnline_client._wire.failure_pb2 import RETRY_HINT_AFTER, Failure

END = StreamChatResponse(end=TurnEnd(reply=ChatReply(result="x"))).SerializeToString()


async def streamed(*said: bytes) -> list[StreamItem]:
    async with client_of(OwnServer(lambda _: said)) as client:
        return [item async for item in client.stream("x", session_id="s")]


async def test_an_event_type_that_is_newer_is_given_by_its_name() -> None:
    # Of a chunk of attempt 1, the event of type 999, with the name of that.
    named = b"\x12\x11\x08\x01\x1a\x0d\x08\xe7\x07\x42\x08hologram"

    items = await streamed(named, END)

    assert [item.event.type for item in items if isinstance(item, Chunk)] == ["hologram"]


async def test_kinds_of_items_that_are_newer_are_skipped() -> None:
    items = await streamed(b"\xa2\x38\x03new", END)

    assert [type(item) for item in items] == [Reply]


async def test_a_stream_that_ends_before_its_turn_is_asked_for_again_and_then_unavailable() -> None:
    server = OwnServer(lambda _: [])
    async with client_of(server) as client:
        with pytest.raises(TurnlineError) as gone:
            await anext(client.stream("x", session_id="s"))

    assert (gone.value.code, server.asked) == ("unavailable", 3)


async def test_a_failed_turns_stream_is_read_once_whatever_its_failure_says_of_retries() -> None:
    failure = Failure(code="of_tomorrow", message="no", retry=RETRY_HINT_AFTER)
    end = StreamChatResponse(end=TurnEnd(failure=failure)).SerializeToString()
    server = OwnServer(lambda _: [end])
    async with client_of(server) as client:
        with pytest.raises(TurnlineError) as failed:
            await anext(client.stream("x", session_id="s"))

    assert (failed.value.code, failed.value.retryable) == ("of_tomorrow", True)
    assert server.asked == 1
