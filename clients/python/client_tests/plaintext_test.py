"""Tokens that everybody on the way could read are not sent, unless the caller says so."""

import pytest

from client_tests.conftest import Rig
from turnline_client import AsyncClient, Client, Tls

ELSEWHERE = ["example.org:443", "10.0.0.1:8001", "[2001:db8::1]:8001", "dns:///example.org:1"]
TRICKS = ["127.0.0.1.example.org:1", "localhost.example.org:1", "example.org:1,127.0.0.1:1"]
HERE = ["localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "dns:///localhost:1", "unix:/tmp/x"]


@pytest.mark.parametrize("target", ELSEWHERE + TRICKS)
@pytest.mark.parametrize("token", ["t", lambda: "t"])
async def test_a_token_is_not_sent_elsewhere_without_tls(target: str, token: str) -> None:
    with pytest.raises(ValueError, match="allow_plaintext_token"):
        AsyncClient(target, token=token)


@pytest.mark.parametrize("target", HERE)
async def test_it_may_be_sent_to_this_machine(target: str) -> None:
    await AsyncClient(target, token="t").close()


async def test_it_may_be_sent_over_tls_and_where_that_is_allowed() -> None:
    await AsyncClient("example.org:443", token="t", tls=Tls()).close()
    await AsyncClient("example.org:443", token="t", allow_plaintext_token=True).close()
    await AsyncClient("example.org:443").close()


def test_the_client_without_a_loop_says_the_same(rig: Rig) -> None:
    with pytest.raises(ValueError, match="allow_plaintext_token"):
        Client("example.org:443", token="t")
    Client("example.org:443", token="t", allow_plaintext_token=True).close()
