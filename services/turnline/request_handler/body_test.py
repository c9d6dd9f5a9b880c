"""Request bodies within bounds."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from turnline.errors import Code, InvalidRequestError, PayloadTooLargeError
from turnline.protocol.json_body import parse_chat_body
from turnline.request_handler.body import parse_json, read_body


def receiving(*parts: bytes, ends: bool = True) -> tuple[Receive, list[bytes]]:
    """Give a receive function of these parts, and the list of those not read yet."""
    left = list(parts)

    async def receive() -> Message:
        if not left:
            if ends:
                return {"type": "http.disconnect"}
            await asyncio.Event().wait()
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left) or not ends}

    return receive, left


async def read(parts: Sequence[bytes], *, length: str = "", max_bytes: int = 10) -> bytes:
    receive, _ = receiving(*parts)
    return await read_body(receive, length=length, max_bytes=max_bytes, timeout=5.0)


async def test_parts_are_joined() -> None:
    assert await read([b"abc", b"", b"def"]) == b"abcdef"


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    assert await read([b"12345", b"67890"], length="10") == b"1234567890"


async def test_a_body_announced_too_large_is_refused_unread() -> None:
    receive, left = receiving(b"x" * 11)

    with pytest.raises(PayloadTooLargeError):
        await read_body(receive, length="11", max_bytes=10, timeout=5.0)

    assert left == [b"x" * 11]


async def test_a_chunked_body_is_refused_as_soon_as_it_is_too_large() -> None:
    receive, left = receiving(b"12345", b"678901", b"more")

    with pytest.raises(PayloadTooLargeError) as refused:
        await read_body(receive, length="", max_bytes=10, timeout=5.0)

    assert (left, refused.value.limit_bytes) == ([b"more"], 10)


async def test_a_client_that_leaves_meanwhile_ends_the_reading() -> None:
    receive, _ = receiving()

    with pytest.raises(ClientDisconnect):
        await read_body(receive, length="", max_bytes=10, timeout=5.0)


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    receive, _ = receiving(b"12", ends=False)

    with pytest.raises(HTTPException) as given_up:
        await read_body(receive, length="5", max_bytes=10, timeout=0.01)

    assert given_up.value.status_code == 408


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "application/JSON; charset=utf-8"]
)
def test_json_is_decoded(content_type: str) -> None:
    assert parse_json(b'{"a": 1}', content_type=content_type) == {"a": 1}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", ""),
        (b"{", ""),
        (b'{"a": "\xff"}', ""),
        (b'{"a": "\\ud800"}', ""),
        (b'{"a": NaN}', ""),
        (b'{"a": 1}', "text/plain"),
        (b"[" * 5000 + b"]" * 5000, ""),
    ],
)
def test_what_is_no_json_is_malformed(body: bytes, content_type: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_json(body, content_type=content_type)

    assert (refused.value.code, refused.value.field) == (Code.MALFORMED_BODY, "body")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
FIELDS = st.sampled_from(
    ["prompt", "session_id", "request_id", "files", "images", "resume", "schedule", "requests", "x"]
)


@settings(deadline=None)
@given(st.binary(max_size=300) | st.dictionaries(FIELDS, JSON_VALUES).map(json.dumps))
def test_any_body_is_a_request_or_a_callers_error(body: bytes | str) -> None:
    raw = body.encode() if isinstance(body, str) else body
    try:
        parse_chat_body(parse_json(raw, content_type=""))
    except InvalidRequestError as error:
        assert error.meaning.http_status in (400, 422)
