"""Event streams over a real server."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

from turnline.request_handler import ReplyMode
from turnline.request_handler.rig import Rig, RigOptions, open_rig, serve

STREAM = {"Accept": "text/event-stream"}
PATH = "/api/v1/chat"


async def events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    at = ""
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            at = line[4:]
        elif line.startswith("data: "):
            yield at, json.loads(line[6:])


async def post_stream(
    client: httpx.AsyncClient, prompt: str, headers: dict[str, str] | None = None, **fields: str
) -> list[tuple[str, dict[str, Any]]]:
    body = {"prompt": prompt, "session_id": "s1", **fields}
    async with client.stream("POST", PATH, json=body, headers=headers or STREAM) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        return [event async for event in events(answer)]


async def test_a_turn_is_streamed_to_its_end() -> None:
    async with open_rig() as rig, serve(rig) as client:
        got = await post_stream(client, "chunks=3")

    assert [data.get("delta") for _, data in got] == ["w0 ", "w1 ", "w2 ", None]
    assert [data["done"] for _, data in got] == [False, False, False, True]
    assert {data["request_id"] for _, data in got} == {rig.envelopes[0].request_id}


async def test_stream_mode_streams_without_being_asked() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.STREAM)) as rig, serve(rig) as client:
        got = await post_stream(client, "chunks=1", {"Accept": "*/*"})

    assert got[-1][1]["done"] is True


async def test_a_turn_that_does_not_stream_gives_its_text_in_the_last_event() -> None:
    async with open_rig() as rig, serve(rig) as client:
        got = await post_stream(client, "hello")

    assert [(data["done"], data["result"]) for _, data in got] == [(True, "echo: hello")]


async def test_chunks_arrive_while_the_turn_runs() -> None:
    async with open_rig() as rig, serve(rig) as client:
        body = {"prompt": "chunks=3 pause=1", "session_id": "s1"}
        async with client.stream("POST", PATH, json=body, headers=STREAM) as answer:
            stream = events(answer)
            _, first = await anext(stream)
            rig.released.set()
            rest = [data async for _, data in stream]

    assert first["delta"] == "w0 "
    assert len(rest) == 3


async def test_a_second_client_resumes_where_the_first_was_cut_off() -> None:
    async with open_rig() as rig, serve(rig) as client:
        last = await _cut_after_first_event(rig, client)
        rig.released.set()
        headers = {**STREAM, "Last-Event-ID": last}
        async with client.stream("GET", PATH, params={"request_id": "r1"}, headers=headers) as got:
            rest = [data async for _, data in events(got)]

    assert [data.get("index") for data in rest] == [2, 3, 4, 5]
    assert rest[-1]["done"] is True


async def test_a_repeated_post_resumes_too_and_runs_nothing_again() -> None:
    async with open_rig() as rig, serve(rig) as client:
        last = await _cut_after_first_event(rig, client)
        rig.released.set()
        got = await post_stream(
            client, "chunks=5 pause=2", {**STREAM, "Last-Event-ID": last}, request_id="r1"
        )

    assert [data.get("index") for _, data in got] == [2, 3, 4, 5]
    assert len(rig.envelopes) == 1


async def test_a_client_that_leaves_does_not_end_the_turn() -> None:
    async with open_rig() as rig, serve(rig) as client:
        await _cut_after_first_event(rig, client)
        rig.released.set()
        poll = await rig.poll("r1", wait="5")

    assert poll.json()["result"] == "w0 w1 w2 w3 w4 "
    assert rig.waiting.waiting == 0


async def test_joining_an_ended_turn_gives_everything_and_the_end() -> None:
    async with open_rig() as rig, serve(rig) as client:
        await post_stream(client, "chunks=2", request_id="r1")
        query = {"request_id": "r1", "last_event_id": "1-0"}
        async with client.stream("GET", PATH, params=query, headers=STREAM) as answer:
            got = [data async for _, data in events(answer)]

    assert [data["done"] for data in got] == [False, True]


async def test_a_resume_after_the_end_gives_the_end_at_once() -> None:
    async with open_rig() as rig, serve(rig) as client:
        await post_stream(client, "chunks=2", request_id="r1")
        headers = {**STREAM, "Last-Event-ID": "1-1"}
        query = {"request_id": "r1"}
        async with client.stream("GET", PATH, params=query, headers=headers) as answer:
            got = [data async for _, data in events(answer)]

    assert [data["done"] for data in got] == [True]


async def test_a_turn_that_fails_before_its_first_chunk_is_an_http_error() -> None:
    async with open_rig() as rig, serve(rig) as client:
        body = {"prompt": "fail", "session_id": "s1"}
        answer = await client.post(PATH, json=body, headers=STREAM)

    assert (answer.status_code, answer.json()["detail"]["code"]) == (500, "agent_failed")


async def test_what_is_refused_at_the_door_is_an_http_error() -> None:
    options = RigOptions(knows_agent=lambda name: not name)
    async with open_rig(options) as rig, serve(rig) as client:
        body = {"prompt": "x", "session_id": "s1"}
        unknown = await client.post(PATH, json={**body, "agent": "nobody"}, headers=STREAM)
        position = await client.post(PATH, json=body, headers={**STREAM, "Last-Event-ID": "?"})
        nothing = await client.get(PATH, params={"request_id": "nobody"}, headers=STREAM)

    assert [unknown.status_code, position.status_code, nothing.status_code] == [400, 400, 404]


async def test_a_closing_process_ends_streams_cleanly() -> None:
    async with open_rig() as rig, serve(rig) as client:
        body = {"prompt": "chunks=2 pause=1", "session_id": "s1"}
        async with client.stream("POST", PATH, json=body, headers=STREAM) as answer:
            lines = answer.aiter_lines()
            await anext(lines)
            await rig.waiting.close()
            rest = [line async for line in lines]

    assert "retry: 1500" in rest
    assert not any('"done":true' in line for line in rest)


async def test_a_reader_who_reads_nothing_does_not_hold_others_up() -> None:
    async with open_rig() as rig, serve(rig) as client:
        body = {"prompt": "chunks=20000", "session_id": "s1", "request_id": "r1"}
        async with client.stream("POST", PATH, json=body, headers=STREAM):
            poll = await rig.poll("r1", wait="5")
            got = await post_stream(client, "chunks=3", session_id="s2")

    assert poll.status_code == 200
    assert len(got) == 4


async def _cut_after_first_event(rig: Rig, client: httpx.AsyncClient) -> str:
    """Start turn r1 of five chunks, which pauses after two; leave when both were read."""
    body = {"prompt": "chunks=5 pause=2", "session_id": "s1", "request_id": "r1"}
    async with client.stream("POST", PATH, json=body, headers=STREAM) as answer:
        stream = events(answer)
        await anext(stream)
        last, _ = await anext(stream)
    await rig.waiting.holds(0)
    return last
