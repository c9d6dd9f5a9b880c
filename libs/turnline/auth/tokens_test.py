"""Where a token may stand in a request."""

from typing import Any

import pytest

from turnline.auth import bearer_token, websocket_token


def scope(
    *, authorization: str | None = None, offered: tuple[str, ...] = (), query: str = ""
) -> dict[str, Any]:
    headers = [(b"host", b"x")]
    if authorization is not None:
        headers.append((b"authorization", authorization.encode("latin-1")))
    return {"headers": headers, "subprotocols": list(offered), "query_string": query.encode()}


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("BEARER a b", "a b"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
        (None, None),
    ],
)
def test_only_the_bearer_scheme_holds_a_token(value: str | None, token: str | None) -> None:
    assert bearer_token(value) == token


@pytest.mark.parametrize(
    ("given", "token"),
    [
        (scope(), None),
        (scope(query="token=q%2Bq&x=1"), "q+q"),
        (scope(query="token="), None),
        (scope(query="token=%20"), None),
        (scope(offered=("turnline.bearer", "s"), query="token=q"), "s"),
        (scope(offered=("turnline.bearer.s.s.s",), query="token=q"), "s.s.s"),
        (scope(offered=("turnline", "turnline.bearer.s")), "s"),
        (scope(offered=("graphql-ws", "turnline.bearer", "s")), "s"),
        (scope(offered=("turnline.bearer",), query="token=q"), "q"),
        (scope(offered=("turnline.bearer.",), query="token=q"), "q"),
        (scope(authorization="Bearer h", offered=("turnline.bearer", "s"), query="token=q"), "h"),
        (scope(authorization="Basic h", query="token=q"), "q"),
        ({}, None),
    ],
)
def test_the_header_comes_before_the_subprotocol_before_the_query(
    given: dict[str, Any], token: str | None
) -> None:
    assert websocket_token(given)[0] == token


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ((), None),
        (("graphql-ws",), None),
        (("turnline.bearer", "s"), "turnline.bearer"),
        (("turnline.bearer.s",), "turnline.bearer.s"),
        (("turnline.bearer.s", "turnline"), "turnline"),
        (("turnline.bearer", "s", "turnline"), "turnline"),
    ],
)
def test_one_offered_subprotocol_is_chosen_without_the_token_if_possible(
    offered: tuple[str, ...], chosen: str | None
) -> None:
    assert websocket_token(scope(offered=offered))[1] == chosen
