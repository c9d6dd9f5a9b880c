"""A client in each mode: what an application's own clients would do.

    python client.py --http http://... --websocket ws://.../live --token TOKEN [MODE [PROMPT]]

Without a mode it asks in all of them.
"""

import argparse
import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
from websockets.asyncio.client import connect

CHAT = "/api/v1/chat"
ANSWER_SECONDS = 90.0
# API Gateway waits 29 for what lets a socket in, which may be a function that is cold.
OPEN_SECONDS = 30.0

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where to ask, and as whom.

    Attributes:
        http_url: of the HTTP API.
        websocket_url: of the WebSocket API, with its stage.
    """

    http_url: str
    websocket_url: str
    token: str

    def http(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.http_url,
            headers={"authorization": f"Bearer {self.token}"},
            timeout=ANSWER_SECONDS,
        )

    def socket(self) -> connect:
        url = f"{self.websocket_url}?token={self.token}"
        return connect(url, open_timeout=OPEN_SECONDS)


async def rest_sync(access: Access, body: dict[str, str], show: Show) -> None:
    """POST, and wait for the answer in its response."""
    async with access.http() as http:
        answer = await http.post(CHAT, json=body)
    show(result_in(answer))


async def rest_async(access: Access, body: dict[str, str], show: Show) -> None:
    """POST, and ask for the answer by its `request_id` later."""
    async with access.http() as http:
        accepted = await http.post(CHAT, json=body, headers={"prefer": "respond-async"})
        query = {"request_id": accepted.raise_for_status().json()["request_id"], "wait": "10"}
        while True:
            answer = await http.get(CHAT, params=query)
            # Not there yet: Lambda says so under a 200.
            if answer.status_code != 404 and answer.json().get("status") != "NOT_FOUND":
                break
    show(result_in(answer))


async def sse(access: Access, body: dict[str, str], show: Show) -> None:
    """POST, and read the answer as server-sent events."""
    headers = {"accept": "text/event-stream"}
    async with (
        access.http() as http,
        http.stream("POST", CHAT, json=body, headers=headers) as answer,
    ):
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                show_piece(json.loads(line.removeprefix("data:")), show)


async def stream(access: Access, body: dict[str, str], show: Show) -> None:
    """Send a frame, and read the answer in pieces as they come."""
    await _over_socket(access, body, show, stream=True)


async def websocket_async(access: Access, body: dict[str, str], show: Show) -> None:
    """Send a frame, and read the answer in one frame."""
    await _over_socket(access, body, show, stream=False)


MODES: dict[str, Callable[[Access, dict[str, str], Show], Awaitable[None]]] = {
    "rest_sync": rest_sync,
    "rest_async": rest_async,
    "sse": sse,
    "stream": stream,
    "async": websocket_async,
}


async def ask(access: Access, mode: str, prompt: str, show: Show) -> None:
    """Ask in a session of its own.

    Raises:
        RuntimeError: the answer is a failure.
        TimeoutError: none came.
    """
    body = {"prompt": prompt, "session_id": f"{mode}-{uuid.uuid4().hex[:8]}"}
    async with asyncio.timeout(ANSWER_SECONDS):
        await MODES[mode](access, body, show)


async def ask_in_all_modes(access: Access, prompt: str) -> None:
    """Ask in one mode after the other; prints a line for each, the mode and its answer."""
    for mode in MODES:
        pieces: list[str] = []
        await ask(access, mode, prompt, pieces.append)
        text = " ".join("".join(pieces).split())
        print(f"{mode:12} {len(pieces):3} pieces: {text[:80]}", flush=True)


def result_in(answer: httpx.Response) -> str:
    body = answer.json()
    if answer.is_error or "result" not in body:
        raise RuntimeError(f"{answer.status_code}: {body}")
    return str(body["result"])


def show_piece(frame: dict[str, object], show: Show) -> None:
    if "error" in frame:
        raise RuntimeError(str(frame))
    if delta := frame.get("delta"):
        show(str(delta))


async def _over_socket(access: Access, body: dict[str, str], show: Show, *, stream: bool) -> None:
    frame = {"route": "chat", "request_id": str(uuid.uuid4()), "stream": stream, "body": body}
    async with access.socket() as socket:
        await socket.send(json.dumps(frame))
        while True:
            got = json.loads(await socket.recv())
            if got.get("request_id") not in (None, frame["request_id"]):
                # Frames go to all sockets of a user.
                continue
            if got.get("status") == "FAILED":
                raise RuntimeError(str(got))
            if got["type"] == "CHAT_RESPONSE":
                show(str(got["result"]))
                return
            show_piece(got, show)
            if got.get("done"):
                return


async def main(access: Access, mode: str | None, prompt: str) -> None:
    if mode is None:
        await ask_in_all_modes(access, prompt)
        return
    await ask(access, mode, prompt, lambda piece: print(piece, end="", flush=True))
    print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", required=True, help="URL of the HTTP API")
    parser.add_argument("--websocket", required=True, help="URL of the WebSocket API")
    parser.add_argument("--token", required=True)
    parser.add_argument("mode", nargs="?", choices=list(MODES))
    parser.add_argument("prompt", nargs="?", default="What happens when a runner dies?")
    given = parser.parse_args()
    asyncio.run(
        main(
            Access(http_url=given.http, websocket_url=given.websocket, token=given.token),
            given.mode,
            given.prompt,
        )
    )
