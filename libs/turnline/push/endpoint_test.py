"""Pushes of other pods, over HTTP: who may, what is refused, and what they do."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
from pydantic import ValidationError

from turnline.config import Settings
from turnline.errors import StoreUnavailableError, TransportUnavailableError
from turnline.frontdoor import web_app
from turnline.hosting import WebOptions, WebServer
from turnline.push import (
    PUSH_PATH,
    PUSH_TOKEN_HEADER,
    Frame,
    PushSignals,
    Routes,
    UserPush,
)
from turnline.push.endpoint import MAX_FRAMES, PushHandler
from turnline.push.endpoint_routes import MAX_BODY_BYTES, USER_PUSH_PATH, push_routes
from turnline.push.http import HttpPods, HttpPush, pod_client
from turnline.store import LOCAL_ENDPOINT, Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.telemetry import Metrics
from turnline.testing import FakeClock

TOKEN = "secret-of-the-pods-of-these-tests"


class Sockets:
    """This pod's sockets: it holds `here` and no other."""

    def __init__(self) -> None:
        self.got: list[Frame] = []

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        if connection_id != "here":
            return False
        self.got += frames
        return True


class AwayStore(MemoryConnectionStore):
    """Answers nothing."""

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        raise StoreUnavailableError("The connection store did not answer", retry_after=1.0)


class Pod:
    """A pod that answers pushes."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        users: bool = True,
        inbox: bool = True,
        store: type[MemoryConnectionStore] = MemoryConnectionStore,
    ) -> None:
        self.sockets = Sockets()
        clock = FakeClock()
        self.store = store(MemoryConnectionOptions(), clock)
        push = UserPush(
            connections=self.store,
            routes=Routes(local=self.sockets),
            signals=PushSignals(Metrics(process=False)),
            clock=clock,
        )
        handler = PushHandler(
            token=token,
            local=self.sockets,
            users=push if users else None,
            inbox=inbox,
            new_id=map("p{}".format, itertools.count(1)).__next__,
        )
        self.app = web_app(push_routes(handler))

    async def post(
        self,
        body: object = None,
        *,
        path: str = PUSH_PATH,
        token: str | None = TOKEN,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Push as another pod would, without a network; `content` takes the place of a body."""
        headers = {} if token is None else {PUSH_TOKEN_HEADER.encode(): token.encode("latin-1")}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://pod") as client:
            if content is not None:
                return await client.post(path, headers=headers, content=content)
            return await client.post(path, headers=headers, json=body)


@asynccontextmanager
async def serving(pod: Pod) -> AsyncIterator[str]:
    """Serve a pod on a port of this machine; give its endpoint."""
    web = WebServer(pod.app, WebOptions(host="127.0.0.1", port=0, close_seconds=1.0))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.run(stop))
        await web.started.wait()
        try:
            yield f"http://127.0.0.1:{web.port}"
        finally:
            stop.set()


# --- who may push ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "\u00e9"]
)
@pytest.mark.parametrize("path", [PUSH_PATH, USER_PUSH_PATH])
async def test_whoever_has_not_the_token_is_refused(token: str | None, path: str) -> None:
    pod = Pod()

    answer = await pod.post(
        {"connection_id": "here", "user_id": "u", "message": {}},
        path=path,
        token=token,
    )

    assert answer.status_code == 401
    assert answer.json()["detail"]["error"] == "invalid push token"
    assert (pod.sockets.got, pod.store.size) == ([], (0, 0))


async def test_a_body_without_the_token_is_not_even_looked_at() -> None:
    answer = await Pod().post(token="wrong", content=b"not JSON")

    assert answer.status_code == 401


@pytest.mark.parametrize("token", [None, "", TOKEN])
async def test_without_a_configured_token_nobody_may_push(token: str | None) -> None:
    answer = await Pod(token="").post({"connection_id": "here", "message": {}}, token=token)

    assert answer.status_code == 403
    assert answer.json()["detail"]["error"] == (
        "push endpoint is disabled: websocket_api.push_auth_token is not configured"
    )


@pytest.mark.parametrize("token", ["x", "123456789012345", " " * 32])
def test_a_weak_token_cannot_be_configured(token: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"websocket_api": {"push_auth_token": token}})


# --- what pushes do -------------------------------------------------------------------------------


async def test_a_message_reaches_a_connection_of_this_pod() -> None:
    pod = Pod()

    answer = await pod.post({"connection_id": "here", "message": {"n": 1}})

    assert (answer.status_code, answer.json()) == (200, {"status": "SUCCESS"})
    assert answer.headers["content-type"] == "application/json"
    assert pod.sockets.got == [{"n": 1}]


async def test_several_messages_arrive_in_order() -> None:
    pod = Pod()
    messages = [{"n": number} for number in range(MAX_FRAMES)]

    assert (await pod.post({"connection_id": "here", "messages": messages})).is_success
    assert pod.sockets.got == messages


async def test_a_connection_that_is_not_here_is_not_found() -> None:
    answer = await Pod().post({"connection_id": "x", "message": {}})

    assert answer.status_code == 404
    assert answer.json() == {
        "detail": {
            "error": "connection 'x' is not held by this pod",
            "code": "not_found",
            "retry": "never",
            "field": "connection_id",
        }
    }


async def test_a_message_to_a_user_reaches_their_sockets_or_is_held() -> None:
    pod = Pod()
    body = {"user_id": "u", "message": {"n": 1}}

    held = await pod.post(body, path=USER_PUSH_PATH)
    await pod.store.add(Connection(user_id="u", connection_id="here", endpoint=LOCAL_ENDPOINT))
    reached = await pod.post(body, path=USER_PUSH_PATH)

    assert held.json() == {"status": "SUCCESS", "reached": 0, "held": True}
    assert reached.json() == {"status": "SUCCESS", "reached": 1, "held": False}
    assert (await pod.store.held("u")).frames == ({"n": 1, "push_id": "p1"},)
    assert pod.sockets.got == [{"n": 1, "push_id": "p2"}]


async def test_a_message_keeps_the_id_it_came_with_and_a_turns_frame_needs_none() -> None:
    pod = Pod()
    messages = [{"push_id": "mine"}, {"type": "CHAT_RESPONSE", "request_id": "r"}]

    await pod.post({"user_id": "u", "messages": messages}, path=USER_PUSH_PATH)

    assert (await pod.store.held("u")).frames == tuple(messages)


@pytest.mark.parametrize("push_id", [None, 5, "", "x" * 257, "a\nb"])
async def test_an_id_that_is_none_is_refused(push_id: object) -> None:
    pod = Pod()
    body = {"user_id": "u", "message": {"push_id": push_id}}

    answer = await pod.post(body, path=USER_PUSH_PATH)

    assert (answer.status_code, answer.json()["detail"]["field"]) == (400, "push_id")
    assert (await pod.store.held("u")).frames == ()


async def test_without_an_inbox_nothing_is_held() -> None:
    pod = Pod(inbox=False)

    answer = await pod.post({"user_id": "u", "message": {}}, path=USER_PUSH_PATH)

    assert answer.json() == {"status": "SUCCESS", "reached": 0, "held": False}
    assert (await pod.store.held("u")).frames == ()


async def test_a_pod_that_looks_no_users_up_says_so() -> None:
    answer = await Pod(users=False).post({"user_id": "u", "message": {}}, path=USER_PUSH_PATH)

    assert answer.status_code == 404


async def test_a_connection_store_that_is_away_can_be_asked_again() -> None:
    answer = await Pod(store=AwayStore).post({"user_id": "u", "message": {}}, path=USER_PUSH_PATH)

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ("text", "body"),
        (None, "body"),
        ({}, "connection_id"),
        ({"connection_id": 5, "message": {}}, "connection_id"),
        ({"connection_id": "", "message": {}}, "connection_id"),
        ({"connection_id": "here"}, "message"),
        ({"connection_id": "here", "message": "text"}, "message"),
        ({"connection_id": "here", "message": None}, "message"),
        ({"connection_id": "here", "messages": {}}, "message"),
        ({"connection_id": "here", "messages": [1]}, "message"),
        ({"connection_id": "here", "messages": []}, "messages"),
        ({"connection_id": "here", "message": {}, "messages": [{}]}, "message"),
        ({"connection_id": "here", "messages": [{}] * (MAX_FRAMES + 1)}, "messages"),
    ],
)
async def test_a_wrong_body_is_refused_by_its_field(body: object, field: str) -> None:
    pod = Pod()

    answer = await pod.post(body)

    assert answer.status_code in (400, 422)
    assert answer.json()["detail"]["field"] == field
    assert pod.sockets.got == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_json_is_refused(content: bytes) -> None:
    answer = await Pod().post(content=content)

    assert (answer.status_code, answer.json()["detail"]["error"]) == (422, "the body is not JSON")


async def test_too_large_a_body_is_refused() -> None:
    assert (await Pod().post(content=b" " * (MAX_BODY_BYTES + 1))).status_code == 413


async def test_only_post_pushes() -> None:
    transport = httpx.ASGITransport(Pod().app)
    async with httpx.AsyncClient(transport=transport, base_url="http://pod") as client:
        assert (await client.get(PUSH_PATH)).status_code == 405


# --- the way to another pod -----------------------------------------------------------------------


async def test_frames_travel_to_another_pod_in_one_request() -> None:
    pod = Pod()
    async with serving(pod) as endpoint, pod_client() as client:
        way = HttpPods(client, TOKEN)(endpoint + "/")

        assert await way.push("here", [{"n": 1}, {"n": 2}])
        assert not await way.push("elsewhere", [{"n": 3}])

    assert pod.sockets.got == [{"n": 1}, {"n": 2}]


async def test_a_pod_with_another_token_is_as_good_as_unreachable() -> None:
    async with serving(Pod()) as endpoint, pod_client() as client:
        with pytest.raises(TransportUnavailableError, match="401"):
            await HttpPush(client=client, endpoint=endpoint, token="other").push("here", [{}])


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:1", "garbage", "ftp://127.0.0.1", "http://[broken"]
)
async def test_an_endpoint_nobody_answers_at_is_unreachable(endpoint: str) -> None:
    async with pod_client() as client:
        with pytest.raises(TransportUnavailableError):
            await HttpPush(client=client, endpoint=endpoint, token=TOKEN).push("here", [{}])


async def test_pods_are_reached_past_the_proxies_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    pod = Pod()
    async with serving(pod) as endpoint, pod_client() as client:
        assert await HttpPush(client=client, endpoint=endpoint, token=TOKEN).push("here", [{}])


async def test_a_process_has_ways_only_to_the_pods_it_can_reach() -> None:
    with pytest.raises(TransportUnavailableError):
        await Routes().to(LOCAL_ENDPOINT).push("here", [{}])
    with pytest.raises(TransportUnavailableError):
        await Routes(local=Sockets()).to("http://elsewhere").push("here", [{}])
    assert await Routes(local=Sockets()).to(LOCAL_ENDPOINT).push("here", [{}])
