"""One reader's event stream, with time and the reader in the test's hands."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message

from turnline.errors import AgentFailedError, StoreUnavailableError
from turnline.protocol import (
    BEGINNING,
    ChatEvent,
    ChatReply,
    Chunk,
    EventType,
    Failure,
    Position,
)
from turnline.request_handler import EventStreamOptions, TurnStream, WaitingRoom
from turnline.request_handler.event_stream import HEARTBEAT, EventStream
from turnline.store import Gap, StoredReply, StreamItem
from turnline.telemetry import Metrics, names
from turnline.testing import FakeClock

REPLY = StoredReply(
    request_id="r1",
    session_id="s1",
    status_code=200,
    payload=ChatReply(result="ab"),
    attempt=1,
    chunk_count=2,
)
FAILED = StoredReply(
    request_id="r1",
    session_id="s1",
    status_code=500,
    payload=Failure.from_error(AgentFailedError("The agent failed")),
)


def chunk(index: int, *, attempt: int = 1) -> Chunk:
    event = ChatEvent(type=EventType.TEXT_DELTA, content=f"t{index}")
    return Chunk(attempt=attempt, index=index, event=event)


class Source:
    """A store's stream: gives what the test puts in, then an error if it is told to."""

    def __init__(self, items: Sequence[StreamItem | Exception] = ()) -> None:
        self.queue: asyncio.Queue[StreamItem | Exception] = asyncio.Queue()
        self.taken = 0
        self.put(*items)

    def put(self, *items: StreamItem | Exception) -> None:
        for item in items:
            self.queue.put_nowait(item)

    async def stream(self) -> AsyncIterator[StreamItem]:
        while True:
            item = await self.queue.get()
            if isinstance(item, Exception):
                raise item
            self.taken += 1
            yield item


@dataclass(slots=True, kw_only=True)
class Reader:
    """The other end.

    Attributes:
        reads: cleared while the reader does not read.
        left: set when the reader leaves.
        began: set when the answer began.
    """

    clock: FakeClock
    waiting: WaitingRoom
    messages: list[Message] = field(default_factory=list)
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def writes(self) -> list[bytes]:
        """Bodies as they were written."""
        return [m["body"] for m in self.messages if m["type"] == "http.response.body"]

    @property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Events as (id, data)."""
        blocks = b"".join(self.writes).decode().split("\n\n")
        lines = [block.split("\n") for block in blocks if block.startswith("id: ")]
        return [(first[4:], json.loads(second[6:])) for first, second in lines]

    @property
    def ended(self) -> bool:
        """Whether the answer was completed."""
        return bool(self.messages) and not self.messages[-1].get("more_body", True)


@asynccontextmanager
async def reading(
    source: Source,
    *,
    after: Position = BEGINNING,
    fails_as_status: bool = False,
    buffer_items: int = 256,
    metrics: Metrics | None = None,
) -> AsyncIterator[Reader]:
    """Run a stream beside the block until it ends by itself."""
    reader = Reader(clock=FakeClock(), waiting=WaitingRoom())
    reader.reads.set()

    async def receive() -> Message:
        await reader.left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await reader.reads.wait()
        reader.messages.append(message)
        reader.began.set()

    stream = EventStream(
        TurnStream(
            request_id="r1", session_id="s1", after=after, items=source.stream(), known=True
        ),
        waiting=reader.waiting,
        clock=reader.clock,
        options=EventStreamOptions(
            heartbeat=15,
            idle=60,
            opening=0.02,
            buffer_items=buffer_items,
            retry_seconds=lambda: 2.5,
        ),
        gaps=(metrics or Metrics(process=False)).counter(names.STREAM_GAPS_TOTAL),
        fails_as_status=fails_as_status,
    )
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(stream({"type": "http", "method": "POST"}, receive, send))
        await reader.clock.run_ready()
        yield reader


async def test_events_carry_their_position_and_the_last_says_done() -> None:
    async with reading(Source([chunk(0), chunk(1), REPLY])) as reader:
        pass

    assert [(at, data["done"]) for at, data in reader.events] == [
        ("1-0", False),
        ("1-1", False),
        ("1-1", True),
    ]
    assert reader.ended


async def test_headers_forbid_caching_and_buffering() -> None:
    async with reading(Source([REPLY])) as reader:
        pass

    assert dict(reader.messages[0]["headers"]) == {
        b"content-type": b"text/event-stream; charset=utf-8",
        b"cache-control": b"no-store",
        b"x-accel-buffering": b"no",
        b"content-location": b"/api/v1/chat?request_id=r1",
    }


async def test_what_is_there_already_goes_out_in_one_write() -> None:
    async with reading(Source([*(chunk(index) for index in range(50)), REPLY])) as reader:
        pass

    assert len(reader.writes) == 1
    assert len(reader.events) == 51


async def test_silence_is_filled_with_comments() -> None:
    source = Source([chunk(0)])
    async with reading(source) as reader:
        await reader.clock.advance(31)
        source.put(chunk(1), REPLY)

    assert reader.writes[1:3] == [HEARTBEAT, HEARTBEAT]
    assert len(reader.events) == 3


async def test_no_comment_is_sent_while_events_flow() -> None:
    source = Source()
    async with reading(source) as reader:
        for index in range(10):
            await reader.clock.advance(10)
            source.put(chunk(index))
            await reader.clock.run_ready()
        source.put(REPLY)

    assert HEARTBEAT not in reader.writes
    assert len(reader.events) == 11


async def test_a_stream_silent_for_too_long_ends_and_says_where_to_resume() -> None:
    async with reading(Source([chunk(0)])) as reader:
        await reader.clock.advance(60)

    at, last = reader.events[-1]
    assert (at, last["done"], last["error"]) == ("1-0", True, "Stream timed out")
    assert (last["code"], last["retry"]) == ("reply_not_ready", "after")
    assert reader.ended


async def test_comments_do_not_keep_a_silent_stream_alive() -> None:
    async with reading(Source()) as reader:
        await reader.clock.advance(60)

    assert reader.ended
    assert reader.writes.count(HEARTBEAT) == 3


async def test_a_store_that_fails_ends_the_stream_with_a_frame() -> None:
    broken = StoreUnavailableError("no answer from 10.0.0.1")
    async with reading(Source([chunk(0), broken])) as reader:
        pass

    _, last = reader.events[-1]
    assert (last["done"], last["error"]) == (True, "Stream delivery failed")
    assert (last["code"], last["retry"]) == ("store_unavailable", "after")


async def test_a_slow_reader_stops_the_pump_when_the_buffer_is_full() -> None:
    source = Source([chunk(index) for index in range(100)])
    async with reading(source, buffer_items=8) as reader:
        reader.reads.clear()
        source.put(*(chunk(index) for index in range(100, 200)), REPLY)
        await reader.clock.run_ready()
        taken = source.taken
        await reader.clock.advance(3600)
        reader.reads.set()

    assert taken <= 100 + 2 * 8
    assert [data.get("index") for _, data in reader.events] == [*range(200), 200]


async def test_a_reader_who_leaves_ends_the_call_at_once() -> None:
    source = Source([chunk(0)])
    async with reading(source) as reader:
        reader.left.set()

    assert not reader.ended
    assert source.taken == 1


async def test_a_closing_process_gives_a_retry_hint_and_a_clean_end() -> None:
    async with reading(Source([chunk(0)])) as reader:
        await reader.waiting.close()

    assert reader.writes[-1].startswith(b"retry: 2500\n")
    assert reader.ended
    assert not any(data["done"] for _, data in reader.events)


async def test_what_was_read_is_written_before_the_closing() -> None:
    async with reading(Source([chunk(0), chunk(1), REPLY])) as reader:
        await reader.waiting.close()

    assert reader.events[-1][1]["done"] is True
    assert b"retry:" not in b"".join(reader.writes)


async def test_a_turn_that_fails_at_once_is_an_http_status() -> None:
    async with reading(Source([FAILED]), fails_as_status=True) as reader:
        pass

    assert reader.messages[0]["status"] == 500
    assert json.loads(reader.writes[0])["detail"]["code"] == "agent_failed"


async def test_a_resuming_reader_gets_the_failure_as_the_last_event() -> None:
    async with reading(Source([FAILED])) as reader:
        pass

    assert reader.messages[0]["status"] == 200
    assert reader.events[-1][1]["error"] == "The agent failed"


async def test_a_turn_that_fails_later_ends_its_stream_with_the_failure() -> None:
    source = Source()
    async with reading(source, fails_as_status=True) as reader:
        await reader.began.wait()
        source.put(FAILED)

    assert reader.messages[0]["status"] == 200
    assert reader.events == [
        (
            "0--1",
            {
                "done": True,
                "error": "The agent failed",
                "code": "agent_failed",
                "retry": "never",
                "status_code": 500,
                "session_id": "s1",
                "request_id": "r1",
                "attempt": 0,
                "index": 0,
            },
        )
    ]


async def test_a_new_attempt_is_announced() -> None:
    source = Source([chunk(0), chunk(0, attempt=2), chunk(1, attempt=2)])
    async with reading(source) as reader:
        source.put(StoredReply(**{**_fields(REPLY), "attempt": 2}))

    kinds = [(at, data.get("event", {}).get("type")) for at, data in reader.events]
    assert kinds == [
        ("1-0", "text_delta"),
        ("2--1", "restart"),
        ("2-0", "text_delta"),
        ("2-1", "text_delta"),
        ("2-1", None),
    ]


async def test_a_gap_is_said_counted_and_made_good_by_the_final_text() -> None:
    metrics = Metrics(process=False)
    items: list[StreamItem] = [Gap(attempt=1, first=3, last=9), chunk(10), REPLY]
    async with reading(Source(items), after=Position(1, 2), metrics=metrics) as reader:
        pass

    assert reader.events[0][1]["event"] == {"type": "gap", "first": 3, "last": 9}
    assert reader.events[-1][1]["result"] == "ab"
    assert b"turnline_stream_gaps_total 1.0" in metrics.render()[0]


def _fields(reply: StoredReply) -> dict[str, Any]:
    return {name: getattr(reply, name) for name in StoredReply.__dataclass_fields__}
