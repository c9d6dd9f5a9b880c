"""Every way to ask, and what callers are told when all is well."""

import asyncio
import uuid
from contextlib import closing

import pytest

from client_tests.conftest import LONG, Rig, admitted
from turnline_client import (
    Admitted,
    AsyncClient,
    Attachment,
    ChatRequest,
    Chunk,
    Client,
    Decision,
    Position,
    Reply,
    Resume,
    TurnlineError,
    TurnState,
    Verdict,
)


def fresh() -> str:
    return str(uuid.uuid4())


def held(rig: Rig) -> ChatRequest:
    """A turn that goes on until the file of its prompt exists."""
    return ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")


async def test_chat_gives_the_answer(client: AsyncClient) -> None:
    reply = await client.chat("say it", session_id="s1", request_id="py-r1")

    assert reply == Reply(
        request_id="py-r1", session_id="s1", text="say it ", status_code=200, extra={}, attempt=1
    )


async def test_chat_over_tls_with_a_token(strict: AsyncClient) -> None:
    assert (await strict.chat("say it", session_id=fresh())).text == "say it "


async def test_the_token_may_be_a_function(rig: Rig) -> None:
    asked: list[None] = []

    def token() -> str:
        asked.append(None)
        return rig.token

    async with AsyncClient(rig.strict, token=token, tls=rig.tls) as client:
        await client.chat("a", session_id=fresh())
        await client.chat("b", session_id=fresh())

    assert len(asked) == 2


async def test_the_same_request_id_is_the_same_turn(client: AsyncClient) -> None:
    session, request_id = fresh(), fresh()
    request = ChatRequest(prompt="x", agent="turns")

    first = await client.chat(request, session_id=session, request_id=request_id)
    again = await client.chat(request, session_id=session, request_id=request_id)
    after = await client.chat(request, session_id=session)

    assert first == again
    assert (first.text, after.text) == ("0", "1")


async def test_a_stream_gives_the_pieces_then_the_reply(client: AsyncClient) -> None:
    async with client.stream("one two", session_id="s2") as stream:
        items = [item async for item in stream]

    admitted, *chunks, reply = items
    assert isinstance(admitted, Admitted)
    assert isinstance(reply, Reply)
    assert admitted.request_id == stream.request_id == reply.request_id
    pieces = [chunk for chunk in chunks if isinstance(chunk, Chunk)]
    assert [chunk.position for chunk in pieces] == [Position(1, i) for i in range(len(chunks))]
    assert "".join(chunk.text for chunk in pieces) == reply.text == "one two "
    assert stream.position == pieces[-1].position


async def test_a_stream_can_be_followed_by_another_reader(client: AsyncClient) -> None:
    stream = client.stream("one two", session_id=fresh())
    whole = [item async for item in stream]
    pieces = [item for item in whole if isinstance(item, Chunk)]

    place = pieces[0].position
    rest = [item async for item in client.resume(stream.request_id, after=place)]

    assert [item for item in rest if isinstance(item, Chunk)] == pieces[1:]
    assert rest[-1] == whole[-1]


async def test_a_submitted_turn_is_come_back_for(client: AsyncClient, rig: Rig) -> None:
    request = held(rig)
    turn = await client.submit(request, session_id=fresh())

    early = await client.reply(turn.request_id)
    waited = await client.reply(turn.request_id, wait=0.3)
    (rig.folder / request.prompt).touch()
    reply = await client.reply(turn.request_id, wait=LONG)

    assert (turn.known, early, waited) == (False, None, None)
    assert reply is not None
    assert reply.text == "holding done"
    assert await client.reply(turn.request_id) == reply


async def test_a_running_turn_is_cancelled(client: AsyncClient, rig: Rig) -> None:
    stream = client.stream(held(rig), session_id=fresh())
    async for item in stream:
        if isinstance(item, Chunk):
            break

    state = await client.cancel(stream.request_id)
    with pytest.raises(TurnlineError) as streamed:
        async for _ in stream:
            pass
    with pytest.raises(TurnlineError) as fetched:
        await client.reply(stream.request_id)

    assert state is TurnState.RUNNING
    assert (streamed.value.code, fetched.value.code) == ("turn_cancelled", "turn_cancelled")
    assert streamed.value.status_code == 499
    assert await client.cancel(stream.request_id) is TurnState.DONE


async def test_cancelling_a_call_leaves_its_turn_running(client: AsyncClient, rig: Rig) -> None:
    request, request_id = held(rig), fresh()
    call = asyncio.ensure_future(client.chat(request, session_id="s3", request_id=request_id))
    await admitted(client, request_id)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    (rig.folder / request.prompt).touch()
    reply = await client.reply(request_id, wait=LONG)

    assert reply is not None
    assert reply.text == "holding done"


async def test_every_field_of_a_request_is_taken(client: AsyncClient) -> None:
    request = ChatRequest(
        prompt="hello",
        user_id="u",
        group_id="g",
        thread_name="t",
        files=[Attachment(data="aGk=", name="a.txt", mime_type="text/plain")],
        images=[Attachment(data="https://example.org/a.png")],
        requests=[{"type": "text", "text": "and this"}],
        extra={"more": [1, None, {"a": True}]},
    )

    assert (await client.chat(request, session_id=fresh())).text == "hello "


async def test_decisions_resume_a_run(client: AsyncClient) -> None:
    decision = Decision(id="d1", verdict=Verdict.DENIED, message="no", payload={"max": 3})
    request = ChatRequest(prompt="go on", resume=Resume(run_id="run-1", decisions=[decision]))

    assert (await client.chat(request, session_id=fresh())).text == "go on "


def test_the_client_without_a_loop_does_the_same(rig: Rig) -> None:
    with Client(rig.open, timeout=LONG) as client:
        reply = client.chat("a b", session_id="s4")
        items = list(client.stream("a b", session_id="s4"))
        turn = client.submit("a b", session_id="s4")
        fetched = client.reply(turn.request_id, wait=LONG)
        followed = list(client.resume(turn.request_id))
        state = client.cancel(turn.request_id)

    assert reply.text == "a b "
    assert isinstance(items[0], Admitted)
    assert isinstance(items[-1], Reply)
    assert items[-1].text == "a b "
    assert followed[-1] == fetched
    assert state is TurnState.DONE


def test_the_client_without_a_loop_may_leave_a_stream(rig: Rig) -> None:
    with Client(rig.open, timeout=LONG) as client:
        with closing(client.stream("a b", session_id="s5")) as stream:
            assert isinstance(next(stream), Admitted)

        assert client.chat("a b", session_id="s5").text == "a b "
