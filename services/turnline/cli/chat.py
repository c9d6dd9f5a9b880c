"""`turnline chat`: a terminal client over WebSocket that streams, and resumes after a cut."""

import asyncio
import json
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any

import click
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

MAX_RECONNECTS = 5
ANSWER_SECONDS = 600.0


@dataclass(slots=True)
class _Answer:
    """What has come of one answer."""

    request_id: str
    position: str = ""
    done: bool = False
    queued: bool = False


@dataclass(slots=True)
class _Client:
    url: str
    token: str
    session_id: str
    socket: ClientConnection | None = field(default=None)

    async def open(self) -> ClientConnection:
        if self.socket is None:
            # The token travels in a header, so that no proxy writes it into an access log.
            self.socket = await connect(
                f"{self.url.rstrip('/')}/ws",
                additional_headers={"authorization": f"Bearer {self.token}"},
            )
        return self.socket

    async def ask(self, prompt: str) -> None:
        answer = _Answer(request_id=str(uuid.uuid4()))
        for attempt in range(MAX_RECONNECTS):
            try:
                await self._exchange(answer, prompt)
                return
            except (ConnectionClosed, InvalidHandshake, OSError) as error:
                self.socket = None
                if attempt + 1 == MAX_RECONNECTS:
                    raise click.ClickException(f"lost the server: {error}") from error
                click.echo(f"\n[reconnecting: {error}]", err=True)
                await asyncio.sleep(2**attempt * 0.2)

    async def _exchange(self, answer: _Answer, prompt: str) -> None:
        socket = await self.open()
        await socket.send(json.dumps(self._request(answer, prompt)))
        async with asyncio.timeout(ANSWER_SECONDS):
            while not answer.done:
                show(json.loads(await socket.recv()), answer)
        click.echo()

    def _request(self, answer: _Answer, prompt: str) -> dict[str, Any]:
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
            "body": {"prompt": prompt, "session_id": self.session_id},
        }


def show(frame: dict[str, Any], answer: _Answer) -> None:
    """Print what a frame adds to an answer; frames of other turns are passed over."""
    if frame.get("request_id") != answer.request_id:
        return
    kind = frame.get("type")
    if kind == "CHAT_QUEUED":
        answer.queued = True
    elif kind == "SYSTEM_RESPONSE" and frame.get("status") == "FAILED":
        answer.done = True
        click.echo(f"[{frame.get('message')}]", err=True)
    elif kind == "STREAM_CHUNK":
        _show_chunk(frame, answer)


def _show_chunk(frame: dict[str, Any], answer: _Answer) -> None:
    event = frame.get("event", {}).get("type")
    if event == "restart":
        click.echo("\n[the answer starts again]", err=True)
    elif event == "gap":
        click.echo("\n[part of the answer was missed]", err=True)
    click.echo(frame.get("delta", ""), nl=False)
    sys.stdout.flush()
    if "index" in frame and not frame["done"]:
        answer.position = f"{frame['attempt']}-{frame['index']}"
    if frame["done"]:
        answer.done = True
        if "error" in frame:
            click.echo(f"[{frame['error']}]", err=True)
        elif "result" in frame:
            click.echo(frame["result"], nl=False)


@click.command()
@click.argument("prompt", required=False)
@click.option("--url", default="ws://127.0.0.1:8000", show_default=True, help="Gateway URL.")
@click.option("--token", envvar="TURNLINE_TOKEN", default="dev", help="Your token.")
@click.option("--session", "session_id", default="", help="Session to go on with.")
def chat(prompt: str | None, url: str, token: str, session_id: str) -> None:
    """Talk to an agent.  With PROMPT: one question; without: line by line until end of input."""
    client = _Client(url, token, session_id or f"chat-{uuid.uuid4().hex[:8]}")
    asyncio.run(_talk(client, prompt))


async def _talk(client: _Client, prompt: str | None) -> None:
    try:
        if prompt is not None:
            await client.ask(prompt)
            return
        click.echo(f"session {client.session_id}; end with Ctrl-D", err=True)
        while line := await asyncio.to_thread(_read_line):
            if line.strip():
                await client.ask(line.strip())
    finally:
        if client.socket is not None:
            await client.socket.close()


def _read_line() -> str:
    if sys.stdin.isatty():
        click.echo("> ", nl=False)
    return sys.stdin.readline()
