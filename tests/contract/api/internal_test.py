"""Routes that are kept from clients answer as docs/api/openapi-internal.yaml says."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from contract.api.answers import misfits
from contract.api.documents import document
from turnline.errors import StoreUnavailableError
from turnline.frontdoor import Admin, web_app
from turnline.hosting import Lifecycle, Ops
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import SystemClock
from turnline.push import PUSH_TOKEN_HEADER, Frame, PushSignals, Routes, UserPush
from turnline.push.endpoint import PushHandler
from turnline.push.endpoint_routes import MAX_BODY_BYTES, push_routes
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.telemetry import Metrics
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

DOCUMENT = document("openapi-internal.yaml")
TOKEN = "token-of-these-tests"
HEADERS = {PUSH_TOKEN_HEADER: TOKEN, "authorization": f"Bearer {TOKEN}"}


class Sockets:
    """Holds the connection `here`."""

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        return connection_id == "here"


class Process:
    """A process that has every internal route."""

    def __init__(self, transport: InMemoryTransport, token: str) -> None:
        self.transport = transport
        self.lifecycle = Lifecycle()
        self.alive = self.connected = True
        clock, metrics = SystemClock(), Metrics(process=False)
        users = UserPush(
            connections=MemoryConnectionStore(MemoryConnectionOptions(), clock),
            routes=Routes(local=Sockets()),
            signals=PushSignals(metrics),
            clock=clock,
        )

        async def scrape() -> tuple[bytes, str]:
            return metrics.render()

        ops = Ops(
            lifecycle=self.lifecycle,
            alive={"part": lambda: self.alive},
            checks={"store": self._check},
            render_metrics=scrape,
        )
        push = PushHandler(token=token, local=Sockets(), users=users)
        admin = Admin(transport=transport, token=token)
        self.app: Starlette = web_app([*ops.routes(), *push_routes(push), *admin.routes()])
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://process"
        )

    async def ask(self, method: str, path: str, **request: object) -> httpx.Response:
        """Ask; the answer must be in the document."""
        given = {"headers": HEADERS, **request}
        answer = await self._client.request(method, path, **given)  # type: ignore[arg-type]  # passed on as it is
        assert misfits(DOCUMENT, answer) == []
        return answer

    async def _check(self) -> None:
        if not self.connected:
            raise StoreUnavailableError("The store did not answer")


@asynccontextmanager
async def process(token: str = TOKEN) -> AsyncIterator[Process]:
    async with InMemoryTransport(InMemoryOptions(), SystemClock()) as transport:
        yield Process(transport, token)


async def test_every_internal_route_is_in_the_document() -> None:
    async with process() as at:
        routes = [route for route in at.app.routes if isinstance(route, Route)]

    there = {(r.path, m.lower()) for r in routes for m in r.methods or () if m != "HEAD"}
    said = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert there == said


async def test_pushes_are_answered_as_documented() -> None:
    async with process() as at:
        here = {"connection_id": "here", "message": {"n": 1}}
        statuses = [
            (await at.ask("POST", path, **request)).status_code
            for path, request in (
                ("/internal/push", {"json": here}),
                ("/internal/push", {"json": {**here, "connection_id": "gone"}}),
                ("/internal/push", {"json": {"connection_id": "here"}}),
                ("/internal/push", {"content": b"{"}),
                ("/internal/push", {"content": b" " * (MAX_BODY_BYTES + 1)}),
                ("/internal/push", {"headers": {}, "json": here}),
                ("/internal/push/user", {"json": {"user_id": "u", "messages": [{}, {}]}}),
                ("/internal/push/user", {"json": {"user_id": ""}}),
            )
        ]

    assert statuses == [200, 404, 400, 422, 413, 401, 200, 400]


async def test_how_a_process_is_told_as_documented() -> None:
    async with process() as at:
        starting = await at.ask("GET", "/ready")
        at.lifecycle.ready()
        fine = [await at.ask("GET", path) for path in ("/health", "/ready", "/metrics")]
        at.alive = at.connected = False
        broken = [await at.ask("GET", path) for path in ("/health", "/ready")]
        at.lifecycle.drain()
        draining = await at.ask("GET", "/ready")

    assert [answer.status_code for answer in fine] == [200, 200, 200]
    assert [answer.status_code for answer in (starting, *broken, draining)] == [503] * 4


async def test_queues_and_dead_letters_are_told_as_documented() -> None:
    async with process() as at:
        for name in ("a", "b"):
            payload = ChatRequest(prompt="hello")
            await at.transport.input.send(
                Envelope(request_id=name, session_id=name, payload=payload)
            )
        async with at.transport.input.consumer() as consumer:
            for _ in range(2):
                await (await consumer.receive()).dead_letter("of no use")
        listed = (await at.ask("GET", "/admin/dlq/input", params={"limit": "5"})).json()
        first, second = (letter["id"] for letter in listed["letters"])
        await at.ask("GET", "/admin/queues")
        await at.ask("GET", f"/admin/dlq/input/{first}")
        await at.ask("POST", f"/admin/dlq/input/{first}/redrive")
        await at.ask("DELETE", f"/admin/dlq/input/{second}")
        await at.ask("DELETE", "/admin/dlq/output")
        wrong = [
            await at.ask("GET", "/admin/dlq/input", params={"limit": "0"}),
            await at.ask("GET", "/admin/dlq/nope"),
            await at.ask("GET", "/admin/dlq/input/none"),
            await at.ask("GET", "/admin/queues", headers={}),
        ]

    assert [answer.status_code for answer in wrong] == [400, 404, 404, 401]


@pytest.mark.parametrize(("method", "path"), [("GET", "/admin/queues"), ("POST", "/internal/push")])
async def test_a_route_that_is_off_says_so_as_documented(method: str, path: str) -> None:
    async with process(token="") as at:
        answer = await at.ask(method, path)

    assert answer.status_code == 403
