"""A validator by settings: services check tokens without a line of the application's own code."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from e2e.process import APPS, Server, cli, dev, run, serving
from e2e.tokens import SECRET, token_for

CHAT = "/api/v1/chat"
BODY = {"prompt": "hi", "session_id": "s"}
JWT = {"AK_AUTH__TYPE": "jwt", "AK_AUTH__JWT__SECRET": SECRET}
SERVE_ALL = cli("serve", "all", "--agents", str(APPS / "e2e_agents.py"))

OWN_VALIDATOR = """
from turnline.auth import AuthValidator, ValidationResult

class Own(AuthValidator):
    def validate(self, token, context=None):
        return ValidationResult(token.startswith("own-"), {"userId": token})
"""


async def status(server: Server, token: str | None) -> int:
    """What a chat over REST is answered with."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with server.client() as client:
        return (await client.post(CHAT, json=BODY, headers=headers)).status_code


async def closed_with(server: Server, token: str) -> int | None:
    """What a socket is closed with at once; None if it is taken."""
    async with connect(f"{server.ws_url}/ws?token={token}") as client:
        try:
            await (await client.ping())
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 0
    return None


@pytest.mark.parametrize("command", [SERVE_ALL, dev()], ids=["serve", "dev"])
async def test_the_ready_made_validator_checks_rest_and_sockets(
    tmp_path: Path, command: Sequence[str]
) -> None:
    async with serving(tmp_path, *command, settings=JWT) as server:
        statuses = [await status(server, token) for token in (None, "x", token_for("u1"))]
        codes = [await closed_with(server, token) for token in ("x", token_for("u1"))]

    assert statuses == [401, 401, 200]
    assert codes == [1008, None]


async def test_a_validator_of_ones_own_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "own_auth.py").write_text(OWN_VALIDATOR)
    settings = {
        "AK_AUTH__TYPE": "custom",
        "AK_AUTH__VALIDATOR": "own_auth:Own",
    }
    async with serving(tmp_path, *SERVE_ALL, settings=settings) as server:
        statuses = [await status(server, token) for token in (None, "x", "own-1")]

    assert statuses == [401, 401, 200]


async def test_a_validator_in_code_counts_before_the_settings_and_that_is_said(
    tmp_path: Path,
) -> None:
    settings = {**JWT, "AK_AUTH__JWT__SECRET": SECRET[::-1]}
    async with serving(tmp_path, str(APPS / "io_app.py"), settings=settings) as server:
        answered = await status(server, token_for("u1"))
        said = [line["setting"] for line in server.events("config.warning")]

    assert answered == 200
    assert said == ["auth.type"]


@pytest.mark.parametrize("service", ["gateway", "request-handler", "all"])
async def test_all_faults_of_the_validator_are_told_before_anything_is_opened(
    tmp_path: Path, service: str
) -> None:
    agents = ("--agents", str(APPS / "e2e_agents.py")) if service == "all" else ()
    settings = {
        "AK_AUTH__TYPE": "jwt",
        "AK_AUTH__JWT__SECRET": SECRET,
        "AK_AUTH__JWT__ALGORITHMS": "HS512,RS256",
        "AK_AUTH__VALIDATOR": "a:b",
        # Nobody listens there: what is said is said without it.
        "AK_EXECUTION__QUEUES__TYPE": "in_memory" if service == "all" else "nats",
        "AK_EXECUTION__QUEUES__NATS__URL": "nats://127.0.0.1:1",
    }

    ended = await run(tmp_path, *cli("serve", service, *agents), settings=settings)

    assert ended.code == 78
    for told in (
        "auth.validator: is set, but auth.type is jwt",
        "auth.jwt.algorithms: RS256 cannot be used with a secret",
        "auth.jwt.secret: is too short for HS512,RS256",
    ):
        assert told in ended.stderr
    assert SECRET not in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_a_gateway_without_a_validator_says_which_settings_name_one(tmp_path: Path) -> None:
    settings = {
        "AK_EXECUTION__QUEUES__TYPE": "nats",
        "AK_EXECUTION__QUEUES__NATS__URL": "nats://127.0.0.1:1",
    }

    ended = await run(tmp_path, *cli("serve", "gateway"), settings=settings)

    assert ended.code == 78
    assert "auth.type: is none, but the gateway takes no sockets without" in ended.stderr
    assert "websocket_api.push_auth_token: is not set" in ended.stderr
