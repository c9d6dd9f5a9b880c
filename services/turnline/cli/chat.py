"""`turnline chat`: a terminal client over WebSocket that streams, and resumes after a cut."""

import asyncio
import json
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import click
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from turnline.cli.answer import Answer

MAX_RECONNECTS = 5
ANSWER_SECONDS = 600.0

# Close codes that another connection would meet as well: refused, token expired, too many sockets.
_FINAL_CODES = (1008, 4401, 4429)


@dataclass(slots=True)
class _Client:
    url: str
    token: str
    session_id: str
    agent: str
    token_in: str
    socket: ClientConnection | None = field(default=None)

    async def open(self) -> ClientConnection:
        if self.socket is None:
            url, headers = _address(self.url), {"authorization": f"Bearer {self.token}"}
            if self.token_in == "query":
                url, headers = _address(self.url, token=self.token), {}
            self.socket = await connect(url, additional_headers=headers)
        return self.socket

    async def ask(self, prompt: str) -> bool:
        """Ask and show the answer, over as many connections as it takes; False if it failed."""
        answer = Answer(
            request_id=str(uuid.uuid4()),
            text=lambda piece: click.echo(piece, nl=False),
            note=lambda remark: click.echo(f"\n[{remark}]", err=True),
        )
        failures = 0
        while not answer.done:
            before = answer.position
            try:
                await self._exchange(answer, prompt)
            except (ConnectionClosed, InvalidHandshake, OSError) as error:
                self.socket = None
                failures = failures + 1 if answer.position == before else 1
                _check_hope(error, failures)
                click.echo(f"\n[reconnecting: {error}]", err=True)
                await asyncio.sleep(0.2 * 2 ** (failures - 1))
        click.echo()
        return not answer.failed

    async def _exchange(self, answer: Answer, prompt: str) -> None:
        socket = await self.open()
        answer.resuming = answer.queued
        await socket.send(json.dumps(self._request(answer, prompt)))
        async with asyncio.timeout(ANSWER_SECONDS):
            while not answer.done:
                answer.take(json.loads(await socket.recv()))

    def _request(self, answer: Answer, prompt: str) -> dict[str, Any]:
        if answer.queued:
            return {
                "route": "resume",
                "request_id": answer.request_id,
                "body": {"after": answer.position},
            }
        return {
            "route": "chat",
            "request_id": answer.request_id,
            "stream": True,
            "body": {"prompt": prompt, "session_id": self.session_id, "agent": self.agent},
        }


def _address(url: str, **query: str) -> str:
    """Give where sockets are opened: `/ws`, unless the URL has a path (a stage of API Gateway)."""
    parts = urlsplit(url)
    asked = "&".join(filter(None, (parts.query, urlencode(query))))
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or "/ws", query=asked))


def _check_hope(error: Exception, failures: int) -> None:
    """Give up when another connection would not help."""
    close = error.rcvd if isinstance(error, ConnectionClosed) else None
    if close is not None and close.code in _FINAL_CODES:
        raise click.ClickException(f"the server refused: {close.reason}") from error
    if failures >= MAX_RECONNECTS:
        raise click.ClickException(f"lost the server: {error}") from error


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "--url",
    default="ws://127.0.0.1:8000",
    show_default=True,
    help="Gateway URL; the socket is at its path, or at /ws if it has none.",
)
@click.option("--token", envvar="TURNLINE_TOKEN", default="dev", help="Your token.")
@click.option(
    "--token-in",
    type=click.Choice(["header", "query"]),
    default="header",
    show_default=True,
    help="Where the token travels; proxies log queries.  API Gateway takes it from ?token= alone.",
)
@click.option("--session", "session_id", default="", help="Session to go on with.")
@click.option("--agent", default="", help="Name of the agent; default: the first one.")
def chat(
    prompt: str | None, url: str, token: str, token_in: str, session_id: str, agent: str
) -> None:
    """Talk to an agent.  With PROMPT: one question; without: line by line until end of input."""
    session_id = session_id or f"chat-{uuid.uuid4().hex[:8]}"
    client = _Client(url, token, session_id, agent, token_in)
    try:
        answered = asyncio.run(_talk(client, prompt))
    except InvalidURI as error:
        raise click.BadParameter(f"{url} is no ws:// or wss:// URL") from error
    except TimeoutError as error:
        raise click.ClickException("no answer in time") from error
    if not answered:
        raise SystemExit(1)


async def _talk(client: _Client, prompt: str | None) -> bool:
    """Ask one question, or every line of the input; False if the last answer failed."""
    try:
        if prompt is not None:
            return await client.ask(prompt)
        click.echo(f"session {client.session_id}; end with Ctrl-D", err=True)
        answered = True
        while line := await asyncio.to_thread(_read_line):
            if line.strip():
                answered = await client.ask(line.strip())
        return answered
    finally:
        if client.socket is not None:
            await client.socket.close()


def _read_line() -> str:
    if sys.stdin.isatty():
        click.echo("> ", nl=False)
    return sys.stdin.readline()
