"""One command that runs an example: start, say how to talk to it, end it all with Ctrl-C."""

import argparse
import asyncio
import secrets
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import jwt
import pytest

from aws_local.client import Access, ask_in_all_modes
from aws_local.emulators import Emulators, running_emulators

PROMPT = "What happens when a runner dies?"
TOKEN_SECONDS = 86_400
# What sysexits.h calls a service that is not available.
MISSING = 69

_TALK = """
rest_sync    curl -s {http}/api/v1/chat -H "authorization: Bearer $TOKEN" \
-H 'content-type: application/json' -d '{{"prompt": "{prompt}", "session_id": "s1"}}'
rest_async   curl -s {http}/api/v1/chat -H "authorization: Bearer $TOKEN" \
-H 'content-type: application/json' -H 'prefer: respond-async' \
-d '{{"prompt": "{prompt}", "session_id": "s2"}}'
poll         curl -s "{http}/api/v1/chat?request_id=$REQUEST_ID" -H "authorization: Bearer $TOKEN"
sse          curl -sN {http}/api/v1/chat -H "authorization: Bearer $TOKEN" \
-H 'content-type: application/json' -H 'accept: text/event-stream' \
-d '{{"prompt": "{prompt}", "session_id": "s3"}}'
stream       {client} stream "{prompt}"
async        {client} async "{prompt}"
"""
_CLIENT = (
    "./pants --concurrent run examples/aws_local:client -- --http {http} --websocket {websocket} "
    '--token "$TOKEN"'
)

Start = Callable[
    [Emulators, Mapping[str, str], Path], AbstractAsyncContextManager[Mapping[str, str]]
]
"""Starts everything over emulators, with further variables of the application and a folder for
files; gives the addresses, by name: `http-api` and `websocket-api` are among them."""


def main(about: str, start: Start) -> None:
    """Run an example from its command line, and leave the process."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--once", action="store_true", help="ask in every client mode, print the answers, and end"
    )
    given = parser.parse_args()
    sys.exit(run(_serve(start, once=given.once)))


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run until done or told to stop (Ctrl-C, SIGTERM); give the exit code.

    Being told to stop ends the work by cancelling it, once: its clean-up is not cut off.
    """

    async def until_told() -> int:
        task = asyncio.current_task()
        assert task is not None
        told: list[signal.Signals] = []

        def stop(number: signal.Signals) -> None:
            if not told:
                task.cancel()
            told.append(number)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        try:
            return await work
        except asyncio.CancelledError:
            if not told:
                raise
            return 0

    try:
        return asyncio.run(until_told())
    except (pytest.skip.Exception, pytest.fail.Exception) as missing:
        # What a test would be skipped for, or fail for in CI.
        print(f"This needs something that is not here: {missing}", file=sys.stderr)
        return MISSING


async def _serve(start: Start, *, once: bool) -> int:
    secret = secrets.token_hex(32)
    auth = {
        "AK_AUTH__TYPE": "jwt",
        "AK_AUTH__JWT__SECRET": secret,
        "AK_AUTH__JWT__USER_ID_CLAIM": "userId",
    }
    print("starting; the first run on a machine fetches ElasticMQ", flush=True)
    async with (
        _folder() as folder,
        running_emulators() as emulators,
        start(emulators, auth, folder) as addresses,
    ):
        access = Access(
            http_url=addresses["http-api"],
            websocket_url=addresses["websocket-api"],
            token=_token(secret),
        )
        if once:
            await ask_in_all_modes(access, PROMPT)
            return 0
        _tell(access, {**addresses, "sqs": emulators.sqs_url, "logs": str(folder)})
        await asyncio.Event().wait()
        return 0


@asynccontextmanager
async def _folder() -> AsyncIterator[Path]:
    folder = Path(mkdtemp(prefix="turnline-example-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _token(secret: str) -> str:
    claims = {"userId": "you", "exp": int(time.time()) + TOKEN_SECONDS}
    return jwt.encode(claims, secret, algorithm="HS256")


def _tell(access: Access, addresses: Mapping[str, str]) -> None:
    client = _CLIENT.format(http=access.http_url, websocket=access.websocket_url)
    talk = _TALK.format(http=access.http_url, client=client, prompt=PROMPT)
    lines = [*(f"{name:16} {value}" for name, value in addresses.items()), talk]
    print("\n".join([*lines, f"export TOKEN={access.token}", "ready"]), flush=True)
