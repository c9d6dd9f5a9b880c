"""Every error of every route has one shape, and no input makes a 500."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from turnline.request_handler.rig import Rig, RigOptions, open_rig

CHAT = "/api/v1/chat"


def assert_is_error(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["detail"]
    detail = answer.json()["detail"]
    assert detail["code"] == code
    assert isinstance(detail["error"], str)
    assert detail["retry"] in ("never", "now", "after")


async def raw(rig: Rig, body: bytes, content_type: str = "application/json") -> httpx.Response:
    return await rig.client.post(CHAT, content=body, headers={"Content-Type": content_type})


@pytest.mark.parametrize("path", ["/", "/nope", CHAT + "/", CHAT + "/x", "/api/v1", "/%00"])
async def test_an_unknown_path_is_404(path: str) -> None:
    async with open_rig() as rig:
        assert_is_error(await rig.client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", CHAT, "DELETE, GET, HEAD, POST"),
        ("PATCH", CHAT, "DELETE, GET, HEAD, POST"),
        ("OPTIONS", CHAT, "DELETE, GET, HEAD, POST"),
        ("GET", "/api/v1/chat-multipart", "POST"),
        ("POST", "/api/v1/agents", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_every_right_one(method: str, path: str, allowed: str) -> None:
    async with open_rig() as rig:
        answer = await rig.client.request(method, path)

    assert_is_error(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b'"text"',
        b"null",
        b'{"session_id": "s1"}',
        b'{"prompt": 5, "session_id": 7}',
        b'{"prompt": "\xff", "session_id": "s"}',
        b'{"prompt": "\\ud800", "session_id": "s"}',
        b'{"prompt": "x", "session_id": "s", "n": ' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"prompt": "x", "session_id": "s", "n": 1' + b"0" * 5000 + b"}",
        b'{"prompt": "x", "session_id": "s", "n": 1e999}',
        b'{"prompt": "x", "session_id": "s", "n": NaN}',
    ],
)
async def test_a_body_that_cannot_be_read_is_422(body: bytes) -> None:
    async with open_rig() as rig:
        assert_is_error(await raw(rig, body), 422, "malformed_body")

    assert rig.envelopes == []


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "multipart/form-data"])
async def test_a_body_of_another_type_is_422(content_type: str) -> None:
    body = b'{"prompt": "x", "session_id": "s"}'
    async with open_rig() as rig:
        assert_is_error(await raw(rig, body, content_type), 422, "malformed_body")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"prompt": "x"}, "No session_id is provided in the request"),
        ({"prompt": "x", "session_id": ""}, "No session_id is provided in the request"),
        ({"prompt": "", "session_id": "s1"}, "No prompt provided in the request"),
    ],
)
async def test_a_missing_field_is_400_in_the_guides_words(
    fields: dict[str, str], error: str
) -> None:
    async with open_rig() as rig:
        answer = await rig.client.post(CHAT, json=fields)

    assert_is_error(answer, 400, "invalid_request")
    assert answer.json()["detail"]["error"] == error
    assert answer.json()["detail"].get("session_id", "") == fields.get("session_id", "")


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "a\x00b\u2028\U0001f600"},
        {"n": 2**53, "m": 2**64, "f": 1e308},
        {"deep": json.loads("[" * 20 + "]" * 20)},
        {"extra": {"": "", "a\x00": [None, True, {"b": []}]}},
    ],
)
async def test_odd_but_sound_bodies_are_taken(fields: dict[str, object]) -> None:
    async with open_rig() as rig:
        answer = await rig.chat(**{"prompt": "x", "request_id": "r", **fields})  # type: ignore[arg-type]  # fields are the test's

    assert answer.status_code == 200


@pytest.mark.parametrize("extra", [2**63, -(2**60), {"deep": json.loads("[" * 200 + "]" * 200)}])
async def test_what_no_wire_format_carries_is_400_and_not_admitted(extra: object) -> None:
    async with open_rig() as rig:
        answer = await rig.chat(extra=extra)

    assert_is_error(answer, 400, "invalid_request")
    assert rig.envelopes == []


@pytest.mark.parametrize("session_id", ["a\x00b", "x" * 257, "\n", " "])
async def test_an_impossible_session_id_is_400(session_id: str) -> None:
    async with open_rig() as rig:
        answer = await rig.chat(session_id=session_id)

    assert answer.status_code == 400


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413_however_it_is_sent(chunked: bool) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 100

    async with open_rig(RigOptions(max_body_bytes=1000)) as rig:
        content = parts() if chunked else b"x" * 1001
        answer = await rig.client.post(CHAT, content=content)

    assert_is_error(answer, 413, "payload_too_large")


async def test_a_fault_of_ours_is_500_without_detail() -> None:
    async with open_rig() as rig:
        del rig.handler._admission
        answer = await rig.chat()

    assert_is_error(answer, 500, "internal")
    assert answer.json()["detail"] == {
        "error": "Internal error",
        "code": "internal",
        "retry": "never",
    }
