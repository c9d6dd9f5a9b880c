"""Calls and streams whose connection is cut in the middle."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from client_tests.conftest import LONG, Rig, admitted
from client_tests.proxy import Proxy
from turnline_client import (
    Admitted,
    AsyncClient,
    ChatRequest,
    Chunk,
    Position,
    Reply,
    Restart,
    RetryPolicy,
    StreamItem,
    TurnlineError,
)


def fresh() -> str:
    return str(uuid.uuid4())


@pytest.fixture
async def proxy(rig: Rig) -> AsyncIterator[Proxy]:
    async with Proxy(rig.open) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy) -> AsyncIterator[AsyncClient]:
    """A client behind the proxy."""
    async with AsyncClient(proxy.target, timeout=LONG, retry=RetryPolicy(backoff=0.05)) as client:
        yield client


def positions(items: list[StreamItem]) -> list[Position]:
    return [item.position for item in items if isinstance(item, Chunk)]


async def test_a_stream_goes_on_behind_the_last_piece_after_each_cut(
    proxy: Proxy, far: AsyncClient, rig: Rig
) -> None:
    request = ChatRequest(prompt=str(rig.folder / fresh()), agent="steps")
    items: list[StreamItem] = []

    async for item in far.stream(request, session_id=fresh()):
        items.append(item)
        if isinstance(item, Chunk) and item.text:
            # What comes next is not made before the cut, so it comes over another connection.
            proxy.cut()
            (rig.folder / f"{request.prompt}.{int(item.text) + 1}").touch()

    assert proxy.connections >= 5
    assert [isinstance(item, Admitted) for item in items].count(True) == 1
    assert positions(items) == [Position(1, index) for index in range(len(items) - 2)]
    assert isinstance(items[-1], Reply)
    assert "".join(item.text for item in items if isinstance(item, Chunk)) == "1 2 3 4 5 "
    assert items[-1].text == "1 2 3 4 5 "


async def test_a_stream_cut_while_its_turn_runs_goes_on(
    proxy: Proxy, far: AsyncClient, rig: Rig
) -> None:
    request = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    items: list[StreamItem] = []

    async for item in far.stream(request, session_id=fresh()):
        items.append(item)
        if isinstance(item, Chunk) and item.text == "holding ":
            proxy.cut()
            (rig.folder / request.prompt).touch()

    texts = [item.text for item in items if isinstance(item, Chunk) and item.text]
    assert texts == ["holding ", "done"]


async def test_a_wait_that_is_cancelled_loses_nothing(client: AsyncClient, rig: Rig) -> None:
    request = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    stream = client.stream(request, session_id=fresh())
    items: list[StreamItem] = []
    async for item in stream:
        items.append(item)
        if isinstance(item, Chunk) and item.text == "holding ":
            break
    # Nothing comes before the turn is released.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stream), 0.1)

    (rig.folder / request.prompt).touch()
    items += [item async for item in stream]

    assert positions(items) == [Position(1, index) for index in range(len(items) - 2)]
    assert isinstance(items[-1], Reply)
    assert items[-1].text == "holding done"


async def test_a_new_attempt_is_told_and_its_places_begin_again(client: AsyncClient) -> None:
    request = ChatRequest(prompt="x", agent="flaky")

    items = [item async for item in client.stream(request, session_id=fresh())]

    at = items.index(Restart(attempt=2))
    assert {position.attempt for position in positions(items[:at])} == {1}
    assert {position.attempt for position in positions(items[at:])} == {2}
    assert isinstance(items[-1], Reply)
    assert items[-1].text == "kept"


async def test_a_new_attempt_is_told_once_however_often_the_connection_is_cut(
    proxy: Proxy, far: AsyncClient
) -> None:
    request = ChatRequest(prompt="x", agent="flaky")
    items: list[StreamItem] = []

    async for item in far.stream(request, session_id=fresh()):
        items.append(item)
        proxy.cut()

    assert items.count(Restart(attempt=2)) <= 1
    assert isinstance(items[-1], Reply)
    assert len(set(positions(items))) == len(positions(items))


async def test_a_stream_gives_up_when_the_server_stays_away(
    proxy: Proxy, far: AsyncClient, rig: Rig
) -> None:
    request = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    stream = far.stream(request, session_id=fresh())

    with pytest.raises(TurnlineError) as gone:
        async for item in stream:
            if isinstance(item, Chunk):
                proxy.refuse()

    assert (gone.value.code, gone.value.retryable) == ("unavailable", True)
    assert gone.value.request_id == stream.request_id
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    (rig.folder / request.prompt).touch()


async def test_a_call_whose_connection_is_cut_is_made_again_and_its_turn_runs_once(
    proxy: Proxy, far: AsyncClient, client: AsyncClient, rig: Rig
) -> None:
    session, request_id = fresh(), fresh()
    request = ChatRequest(prompt=str(rig.folder / fresh()), agent="hold")
    call = asyncio.ensure_future(far.chat(request, session_id=session, request_id=request_id))
    await admitted(client, request_id)
    proxy.cut()
    (rig.folder / request.prompt).touch()
    reply = await call
    counted = await client.chat(ChatRequest(prompt="x", agent="turns"), session_id=session)

    assert reply.text == "holding done"
    assert counted.text == "1"


async def test_a_server_that_comes_back_in_time_is_not_missed(proxy: Proxy) -> None:
    proxy.refuse()
    retry = RetryPolicy(max_tries=1000, backoff=0.05)
    async with AsyncClient(proxy.target, timeout=LONG, retry=retry) as far:
        call = asyncio.ensure_future(far.chat("still here", session_id=fresh()))
        async with asyncio.timeout(LONG):
            await proxy.refused.wait()
        proxy.heal()

        assert (await call).text == "still here "
