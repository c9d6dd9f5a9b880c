"""The operator's routes over real queues."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from turnline.frontdoor import Admin
from turnline.protocol import ChatRequest, Envelope
from turnline.testing import FakeClock
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

TOKEN = "an operator's token"
PROMPT = "words of a user"
NOW = 1_700_000_000.0

ROUTES = [
    ("GET", "/admin/queues"),
    ("GET", "/admin/dlq/input"),
    ("DELETE", "/admin/dlq/input"),
    ("GET", "/admin/dlq/input/1"),
    ("DELETE", "/admin/dlq/input/1"),
    ("POST", "/admin/dlq/input/1/redrive"),
]


@pytest.fixture
async def transport() -> AsyncIterator[InMemoryTransport]:
    async with InMemoryTransport(InMemoryOptions(), FakeClock(NOW)) as transport:
        yield transport


def client_of(
    transport: InMemoryTransport, *, configured: str = TOKEN, given: str = f"Bearer {TOKEN}"
) -> httpx.AsyncClient:
    app = Starlette(routes=Admin(transport=transport, token=configured).routes())
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app),
        base_url="http://process",
        headers={"authorization": given} if given else {},
    )


@pytest.fixture
async def client(transport: InMemoryTransport) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(transport) as client:
        yield client


async def send(transport: InMemoryTransport, *names: str) -> None:
    for name in names:
        payload = ChatRequest(prompt=PROMPT)
        await transport.input.send(
            Envelope(request_id=name, session_id=f"of {name}", user_id="u1", payload=payload)
        )


async def bury(transport: InMemoryTransport, *names: str) -> None:
    """Make dead letters, in this order."""
    for name in names:
        await send(transport, name)
        async with transport.input.consumer() as consumer:
            delivery = await consumer.receive()
            await delivery.dead_letter(f"{name} was no good")


async def listed(client: httpx.AsyncClient, **query: str | int) -> list[dict[str, Any]]:
    answer = await client.get("/admin/dlq/input", params=query)
    letters: list[dict[str, Any]] = answer.json()["letters"]
    return letters


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_without_a_configured_token_every_route_is_off(
    transport: InMemoryTransport, method: str, path: str
) -> None:
    async with client_of(transport, configured="") as client:
        answer = await client.request(method, path)

    assert answer.status_code == 403
    assert "api.admin_token" in answer.json()["detail"]["error"]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
async def test_every_route_wants_the_token(
    transport: InMemoryTransport, method: str, path: str, given: str
) -> None:
    await bury(transport, "r1")
    async with client_of(transport, given=given) as client:
        answer = await client.request(method, path)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert (await transport.input.stats()).dead == 1


async def test_the_scheme_may_be_written_in_any_case(transport: InMemoryTransport) -> None:
    async with client_of(transport, given=f"bearer {TOKEN}") as client:
        answer = await client.get("/admin/queues")

    assert answer.status_code == 200


async def test_queues_are_counted(transport: InMemoryTransport, client: httpx.AsyncClient) -> None:
    await bury(transport, "r1")
    await send(transport, "r2", "r3")

    answer = await client.get("/admin/queues")

    nothing = {"waiting": 0, "in_flight": 0, "dead": 0, "oldest_age_seconds": 0}
    assert answer.json() == {"input": {**nothing, "waiting": 2, "dead": 1}, "output": nothing}


async def test_dead_letters_are_listed_oldest_first_and_without_their_prompt(
    transport: InMemoryTransport, client: httpx.AsyncClient
) -> None:
    await bury(transport, "r1", "r2")

    answer = await client.get("/admin/dlq/input")

    first, second = answer.json()["letters"]
    assert (first["request_id"], second["request_id"]) == ("r1", "r2")
    assert first["reason"] == "r1 was no good"
    assert (first["session_id"], first["user_id"]) == ("of r1", "u1")
    assert (first["at"], first["attempt"]) == (NOW, 1)
    assert first["bytes"] > 0
    assert PROMPT not in answer.text


async def test_a_list_goes_on_behind_an_id(
    transport: InMemoryTransport, client: httpx.AsyncClient
) -> None:
    await bury(transport, "r1", "r2", "r3")

    [first] = await listed(client, limit=1)
    rest = await listed(client, after=first["id"])

    assert first["request_id"] == "r1"
    assert [letter["request_id"] for letter in rest] == ["r2", "r3"]


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "many", "", "9" * 40, "٣"])
async def test_a_limit_that_is_none_is_refused(client: httpx.AsyncClient, limit: str) -> None:
    answer = await client.get("/admin/dlq/input", params={"limit": limit})

    assert answer.status_code == 400
    assert answer.json()["detail"]["field"] == "limit"


async def test_showing_a_letter_gives_its_bytes(
    transport: InMemoryTransport, client: httpx.AsyncClient
) -> None:
    await bury(transport, "r1")
    [letter] = await listed(client)

    shown = (await client.get(f"/admin/dlq/input/{letter['id']}")).json()

    assert PROMPT.encode() in base64.b64decode(shown.pop("raw"))
    assert shown == letter


async def test_a_redriven_letter_is_queued_again(
    transport: InMemoryTransport, client: httpx.AsyncClient
) -> None:
    await bury(transport, "r1")
    [letter] = await listed(client)

    answer = await client.post(f"/admin/dlq/input/{letter['id']}/redrive")

    stats = await transport.input.stats()
    assert answer.json() == {"redriven": 1}
    assert (stats.waiting, stats.dead) == (1, 0)


async def test_letters_are_purged_one_by_one_or_all(
    transport: InMemoryTransport, client: httpx.AsyncClient
) -> None:
    await bury(transport, "r1", "r2", "r3")
    first, *_ = await listed(client)

    one = await client.delete(f"/admin/dlq/input/{first['id']}")
    left = await listed(client)
    rest = await client.delete("/admin/dlq/input")

    assert (one.json(), rest.json()) == ({"purged": 1}, {"purged": 2})
    assert [letter["request_id"] for letter in left] == ["r2", "r3"]
    assert await listed(client) == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/admin/dlq/other"),
        ("DELETE", "/admin/dlq/other"),
        ("GET", "/admin/dlq/input/unknown"),
        ("DELETE", "/admin/dlq/input/unknown"),
        ("POST", "/admin/dlq/input/unknown/redrive"),
    ],
)
async def test_what_is_not_there_is_404(client: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path)

    assert answer.status_code == 404
    assert answer.json()["detail"]["code"] == "not_found"


async def test_the_output_queue_has_its_own_letters(
    transport: InMemoryTransport, client: httpx.AsyncClient
) -> None:
    await bury(transport, "r1")

    answer = await client.get("/admin/dlq/output")

    assert answer.json() == {"letters": []}
