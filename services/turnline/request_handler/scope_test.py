"""With an AuthValidator the user is the scope: nobody reaches another's turns."""

import httpx
import pytest

from turnline.request_handler.rig import Rig, RigOptions, TokenIsUser, open_rig

PATH = "/api/v1/chat"
STREAM = {"Accept": "text/event-stream"}


SCOPED = RigOptions(validator=TokenIsUser())


def bearer(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer user-{user}"}


async def post(rig: Rig, user: str, prompt: str = "hello", **fields: str) -> httpx.Response:
    body = {"prompt": prompt, "session_id": "s1", "request_id": "r1", **fields}
    return await rig.client.post(PATH, json=body, headers=bearer(user))


async def get(rig: Rig, user: str, request_id: str = "r1") -> httpx.Response:
    return await rig.client.get(PATH, params={"request_id": request_id}, headers=bearer(user))


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer nobody", "Basic user-a", "user-a", "Bearer old-a"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", PATH),
        ("GET", PATH + "?request_id=r1"),
        ("DELETE", PATH + "?request_id=r1"),
        ("POST", "/api/v1/chat-multipart"),
        ("GET", "/api/v1/agents"),
    ],
)
async def test_every_route_wants_a_token(method: str, path: str, authorization: str) -> None:
    async with open_rig(SCOPED) as rig:
        headers = {"Authorization": authorization} if authorization else {}
        answer = await rig.client.request(method, path, headers=headers, content=b"not read")

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["detail"]["code"] == "unauthenticated"


async def test_the_document_is_open_and_says_that_a_token_is_needed() -> None:
    async with open_rig(SCOPED) as rig:
        document = (await rig.client.get("/openapi.json")).json()

    assert document["paths"][PATH]["post"]["security"] == [{"bearer": []}]


async def test_the_user_is_the_scope_whatever_the_body_says() -> None:
    async with open_rig(SCOPED) as rig:
        await post(rig, "alice", user_id="bob")

    envelope = rig.envelopes[0]
    assert (envelope.scope, envelope.user_id) == ("alice", "alice")


async def test_another_users_turn_looks_like_one_that_never_was() -> None:
    async with open_rig(SCOPED) as rig:
        await post(rig, "alice")
        foreign, unknown = await get(rig, "bob", "r1"), await get(rig, "bob", "r2")

    assert (foreign.status_code, foreign.headers) == (404, unknown.headers)
    assert foreign.text == unknown.text.replace("r2", "r1")


async def test_another_users_running_turn_cannot_be_joined_or_cancelled() -> None:
    async with open_rig(RigOptions(validator=TokenIsUser(), reply_budget=0.02)) as rig:
        await post(rig, "alice", "hold")
        query = {"request_id": "r1"}
        joined = await rig.client.get(PATH, params=query, headers=bearer("bob") | STREAM)
        cancelled = await rig.client.delete(PATH, params=query, headers=bearer("bob"))
        own = await get(rig, "alice")

    assert (joined.status_code, cancelled.status_code) == (404, 404)
    assert own.json()["detail"]["code"] == "reply_not_ready"


async def test_two_users_with_one_request_id_get_their_own_answers() -> None:
    async with open_rig(SCOPED) as rig:
        await post(rig, "alice", "for alice")
        await post(rig, "bob", "for bob")
        answers = [(await get(rig, user)).json()["result"] for user in ("alice", "bob")]

    assert answers == ["echo: for alice", "echo: for bob"]
