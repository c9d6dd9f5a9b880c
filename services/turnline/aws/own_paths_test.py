"""An application's own paths on a web server: what API Gateway routes to it is answered."""

from typing import Any

import httpx
import pytest

from turnline.aws import own_paths
from turnline.aws.environment import Event
from turnline.aws.own_paths import OwnPaths, register
from turnline.frontdoor import web_app


def told(event: Event, _context: object) -> dict[str, Any]:
    return {"route": event["routeKey"], "parts": event["pathParameters"]}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    monkeypatch.setattr(own_paths, "_handlers", {})
    register("/files/{rest+}", method="ANY")(told)
    register("/files/{rest+}", method="GET")(told)
    register("/files/list")(told)
    app = web_app(OwnPaths().web_routes(max_bytes=1_000))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://own")


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "PATCH", "POST", "PUT"])
async def test_any_answers_every_method_and_the_rest_of_a_path_is_one_part(
    client: httpx.AsyncClient, method: str
) -> None:
    answer = await client.request(method, "/files/a/b")

    assert answer.json() == {"route": "ANY /files/{rest+}", "parts": {"rest": "a/b"}}


@pytest.mark.parametrize(
    ("path", "route"),
    [("/files/list", "GET /files/list"), ("/files/a/b", "GET /files/{rest+}")],
)
async def test_the_nearest_route_answers_whichever_was_registered_first(
    client: httpx.AsyncClient, path: str, route: str
) -> None:
    assert (await client.get(path)).json()["route"] == route
