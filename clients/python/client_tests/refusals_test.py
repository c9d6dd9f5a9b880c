"""Every class of error: what its code, field and hint are, and what is tried again."""

import asyncio
import os
import signal
import uuid

import pytest

from client_tests.conftest import LONG, Rig, admitted
from turnline_client import (
    STREAM_GAP,
    AsyncClient,
    ChatRequest,
    Chunk,
    RetryPolicy,
    Tls,
    TurnlineError,
)


def fresh() -> str:
    return str(uuid.uuid4())


async def test_without_a_token_nobody_is_let_in(rig: Rig) -> None:
    async with rig.strictly(None) as client:
        with pytest.raises(TurnlineError) as refused:
            await client.chat("x", session_id="s")

    error = refused.value
    assert (error.code, error.status_code) == ("unauthenticated", 401)
    assert (error.grpc_status, error.retryable) == ("UNAUTHENTICATED", False)


async def test_a_token_is_in_no_text_of_an_error(rig: Rig) -> None:
    async with rig.strictly("secret-token") as client:
        with pytest.raises(TurnlineError) as refused:
            await client.chat("x", session_id="s")

    assert "secret-token" not in f"{refused.value!r}{refused.value.__cause__!r}"


async def test_a_server_that_cannot_be_trusted_is_not_spoken_to(rig: Rig) -> None:
    retry = RetryPolicy(max_tries=1)
    async with AsyncClient(rig.strict, token=rig.token, tls=Tls(), retry=retry) as client:
        with pytest.raises(TurnlineError) as refused:
            await client.chat("x", session_id="s", timeout=LONG)

    assert refused.value.code == "unavailable"


async def test_an_invalid_request_names_its_field(client: AsyncClient) -> None:
    with pytest.raises(TurnlineError) as refused:
        await client.submit("", session_id="s")

    error = refused.value
    assert (error.code, error.field, error.status_code) == ("invalid_request", "prompt", 400)
    assert not error.retryable
    assert str(error).startswith("invalid_request: ")


async def test_an_unknown_agent_is_said(client: AsyncClient) -> None:
    with pytest.raises(TurnlineError) as refused:
        await client.chat(ChatRequest(prompt="x", agent="nobody"), session_id="s")

    assert (refused.value.code, refused.value.field) == ("unknown_agent", "agent")


async def test_what_is_no_json_is_refused_here(client: AsyncClient) -> None:
    with pytest.raises(ValueError, match="is no JSON"):
        await client.chat(ChatRequest(prompt="x", extra={"a": object()}), session_id="s")


async def test_an_unknown_turn_is_not_found(client: AsyncClient) -> None:
    request_id = fresh()

    codes = []
    for call in (
        client.reply(request_id),
        client.cancel(request_id),
        anext(client.resume(request_id)),
    ):
        with pytest.raises(TurnlineError) as refused:
            await call
        codes.append((refused.value.code, refused.value.status_code, refused.value.request_id))

    assert codes == [("not_found", 404, request_id)] * 3


async def test_a_turn_of_another_user_is_not_found(strict: AsyncClient, rig: Rig) -> None:
    turn = await strict.submit("x", session_id=fresh())

    async with rig.strictly(rig.other_token) as other:
        with pytest.raises(TurnlineError) as refused:
            await other.reply(turn.request_id)

    assert refused.value.code == "not_found"


async def test_an_id_used_for_something_else_is_refused(client: AsyncClient) -> None:
    request_id, session = fresh(), fresh()
    await client.submit("one", session_id=session, request_id=request_id)

    with pytest.raises(TurnlineError) as refused:
        await client.submit("two", session_id=session, request_id=request_id)

    error = refused.value
    assert (error.code, error.field) == ("request_id_reused", "request_id")
    assert (error.grpc_status, error.request_id) == ("ALREADY_EXISTS", request_id)


async def test_what_is_too_large_is_refused_and_not_tried_again(rig: Rig) -> None:
    async with rig.strictly(rig.token, RetryPolicy()) as client:
        with pytest.raises(TurnlineError) as refused:
            await client.chat("x" * 200_000, session_id="s")

    error = refused.value
    assert (error.grpc_status, error.retryable) == ("RESOURCE_EXHAUSTED", False)


async def test_a_full_session_says_when_to_come_back(strict: AsyncClient, rig: Rig) -> None:
    session, held = fresh(), ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    first = await strict.submit(held, session_id=session)
    await strict.submit("x", session_id=session)

    with pytest.raises(TurnlineError) as refused:
        await strict.submit("x", session_id=session)

    error = refused.value
    assert (error.code, error.status_code) == ("session_queue_full", 429)
    assert error.retryable
    assert error.retry_after is not None
    assert error.retry_after > 0
    await strict.cancel(first.request_id)


async def test_a_full_session_is_asked_again(strict: AsyncClient, rig: Rig) -> None:
    session, held = fresh(), ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    first = await strict.submit(held, session_id=session)
    await strict.submit("x", session_id=session)
    refused = asyncio.Event()

    def jitter() -> float:
        refused.set()
        return 0.0

    retry = RetryPolicy(max_tries=1000, jitter=jitter)
    async with rig.strictly(rig.token, retry) as patient:
        call = asyncio.ensure_future(patient.chat("at last", session_id=session))
        async with asyncio.timeout(LONG):
            await refused.wait()
        await strict.cancel(first.request_id)
        reply = await call

    assert reply.text == "at last "


@pytest.mark.parametrize("way", ["chat", "stream", "reply"])
async def test_a_failed_turn_is_an_error_of_its_caller(client: AsyncClient, way: str) -> None:
    request, session = ChatRequest(prompt="x", agent="broken"), fresh()

    with pytest.raises(TurnlineError) as failed:
        if way == "chat":
            await client.chat(request, session_id=session)
        elif way == "stream":
            async for _ in client.stream(request, session_id=session):
                pass
        else:
            turn = await client.submit(request, session_id=session)
            await client.reply(turn.request_id, wait=LONG)

    error = failed.value
    assert (error.code, error.status_code, error.retryable) == ("agent_failed", 500, False)
    assert "secret" not in error.message
    assert error.request_id


async def test_an_agents_own_status_and_words_reach_its_caller(client: AsyncClient) -> None:
    with pytest.raises(TurnlineError) as failed:
        await client.chat(ChatRequest(prompt="me", agent="refusing"), session_id=fresh())

    error = failed.value
    assert (error.status_code, error.message) == (402, "no credit for me")


async def test_a_callers_deadline_ends_its_wait_but_not_the_turn(
    client: AsyncClient, rig: Rig
) -> None:
    held, session = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold"), fresh()
    request_id = (await client.submit(held, session_id=session)).request_id

    with pytest.raises(TurnlineError) as late:
        await client.chat(held, session_id=session, request_id=request_id, timeout=0.5)
    pending = await client.reply(request_id)

    error = late.value
    assert (error.code, error.retryable) == ("deadline_exceeded", False)
    assert error.request_id == request_id
    assert pending is None
    await client.cancel(request_id)


async def test_a_stream_has_a_deadline_too(client: AsyncClient, rig: Rig) -> None:
    held = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    turn = await client.submit(held, session_id=fresh())
    stream = client.resume(turn.request_id, timeout=0.5)

    with pytest.raises(TurnlineError) as late:
        async for _ in stream:
            pass

    assert late.value.code == "deadline_exceeded"
    await client.cancel(stream.request_id)


async def test_the_servers_own_deadline_is_told_apart(strict: AsyncClient, rig: Rig) -> None:
    held = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")

    with pytest.raises(TurnlineError) as late:
        await strict.chat(held, session_id=fresh())

    assert (late.value.code, late.value.status_code) == ("turn_deadline_exceeded", 504)


async def test_a_gap_ends_a_stream_and_the_whole_answer_can_be_fetched(strict: AsyncClient) -> None:
    prompt = " ".join(f"word{number}" for number in range(1000))
    async with strict.stream(prompt, session_id=fresh()) as stream:
        await anext(stream)
    reply = await strict.reply(stream.request_id, wait=LONG)

    with pytest.raises(TurnlineError) as gap:
        async for item in strict.resume(stream.request_id):
            assert not isinstance(item, Chunk)

    assert gap.value.code == STREAM_GAP
    assert gap.value.message.startswith("chunks 0 to ")
    assert reply is not None
    assert reply.text.split() == prompt.split()


async def test_nobody_there_is_tried_again_until_the_tries_are_used_up() -> None:
    pauses: list[None] = []

    def jitter() -> float:
        pauses.append(None)
        return 1.0

    retry = RetryPolicy(max_tries=3, backoff=0.01, jitter=jitter)
    async with AsyncClient("127.0.0.1:1", retry=retry) as client:
        with pytest.raises(TurnlineError) as refused:
            await client.chat("x", session_id="s")

    assert (refused.value.code, refused.value.retryable) == ("unavailable", True)
    assert len(pauses) == 2


async def test_no_pause_is_begun_that_ends_behind_the_deadline() -> None:
    retry = RetryPolicy(backoff=10 * LONG, max_backoff=10 * LONG)
    async with AsyncClient("127.0.0.1:1", retry=retry) as client:
        with pytest.raises(TurnlineError) as refused:
            await asyncio.wait_for(client.chat("x", session_id="s", timeout=LONG), LONG)

    assert refused.value.code == "unavailable"


def test_a_pause_doubles_is_bounded_and_never_shorter_than_asked_for() -> None:
    early = RetryPolicy(backoff=1, max_backoff=3, jitter=lambda: 1.0)
    late = RetryPolicy(backoff=1, max_backoff=3, jitter=lambda: 0.0)

    assert [early.pause(failed, None) for failed in (1, 2, 3, 4)] == [0.5, 1, 1.5, 1.5]
    assert [late.pause(failed, None) for failed in (1, 2, 3, 4)] == [1, 2, 3, 3]
    assert early.pause(1, 10.0) == 10.5


async def test_a_draining_server_says_when_to_come_back(rig: Rig) -> None:
    held = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    async with AsyncClient(rig.draining, timeout=LONG, retry=RetryPolicy(max_tries=1)) as client:
        request_id = fresh()
        call = asyncio.ensure_future(client.chat(held, session_id="s1", request_id=request_id))
        await admitted(client, request_id)
        # Those who wait are sent away before it ends.
        os.kill(rig.draining_pid, signal.SIGTERM)
        with pytest.raises(TurnlineError) as refused:
            await call

    error = refused.value
    assert (error.code, error.status_code, error.retry_after) == ("draining", 503, 1.0)
    assert error.retryable
