"""A client that asks in every mode and knows what it must be told."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed

from chaos.processes.topology import PUSH_TOKEN
from contract.services.installation import Installation
from contract.services.packages import Service
from contract.services.stage import Frame, nameless
from e2e.tokens import token_for
from turnline.gateway.rig_talks import Conversation, socket_at
from turnline.protocol import SessionKey
from turnline.push import PUSH_TOKEN_HEADER

CHAT = "/api/v1/chat"
EVENTS = "text/event-stream"
WORDS = "one two three "
LONG = "word " * 50
"""Half a second's answer: what is under way while a service is replaced."""


def new_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


class Client:
    """One user, with a session of its own."""

    def __init__(self, installed: Installation) -> None:
        self._installed = installed
        self.user = new_name("user")
        self.session = new_name("session")
        self.asked: list[str] = []

    async def asks_in_every_mode(self) -> None:
        """Ask, and find every answer right and the history whole."""
        await self._rest_sync()
        await self._stream()
        await self._is_told(await self._submit(WORDS), WORDS)
        away = await self._push({"n": 0})
        assert away == {"status": "SUCCESS", "reached": 0, "held": True}
        async with socket_at(self._port(Service.GATEWAY), token_for(self.user)) as talk:
            assert nameless(await talk.hear()) == {"n": 0}
            await self._over_a_socket(talk)
            await self._pushed(talk)
        await self.has_all_in_its_history()

    async def submits(self) -> str:
        """Ask for a long turn and leave; give its name."""
        return await self._submit(LONG)

    async def is_told_of(self, name: str) -> None:
        """Come back for a long turn."""
        await self._is_told(name, LONG)

    async def holds_on_to_a_socket(self, asked: asyncio.Event) -> None:
        """Ask for a long turn over a socket; ask again over another one until its answer comes."""
        body = self._body(LONG)
        while True:
            async with socket_at(self._port(Service.GATEWAY), token_for(self.user)) as talk:
                with suppress(ConnectionClosed):
                    await talk.say(stream=False, body=body)
                    while (frame := await talk.hear())["type"] != "CHAT_RESPONSE":
                        asked.set()
                    assert frame["result"] == LONG
                    return

    async def follows_a_stream(self, begun: asyncio.Event) -> None:
        """Read a long turn's stream, and join it again until its end comes."""
        body = self._body(LONG)
        request: dict[str, Any] = {"method": "POST", "json": body}
        text, end = "", False
        while not end:
            async for place, frame in self._events(**request):
                begun.set()
                if frame.get("event", {}).get("type") == "restart":
                    text = ""
                text, end = text + frame.get("delta", ""), frame["done"]
                after = {"request_id": body["request_id"], "last_event_id": place}
                request = {"method": "GET", "params": after}
        assert text == LONG

    async def has_all_in_its_history(self) -> None:
        """Find each turn once in the session, in the order asked."""
        key = SessionKey(self.user, self.session)
        assert await self._installed.history(key) == self.asked

    async def _events(
        self, method: str, **request: Any  # noqa: ANN401 - httpx's
    ) -> AsyncIterator[tuple[str, Frame]]:
        headers = {"authorization": f"Bearer {token_for(self.user)}", "accept": EVENTS}
        place = ""
        async with (
            self._installed.running[Service.REQUEST_HANDLER].client() as client,
            client.stream(method, CHAT, headers=headers, **request) as answer,
        ):
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    place = value
                elif name == "data":
                    yield place, json.loads(value)

    async def _submit(self, prompt: str) -> str:
        body = self._body(prompt)
        answer = await self._ask("POST", json=body, headers={"prefer": "respond-async"})
        assert answer.status_code == 202, answer.text
        return str(body["request_id"])

    async def _rest_sync(self) -> None:
        answer = await self._ask("POST", json=self._body(WORDS))
        assert (answer.status_code, answer.json()["result"]) == (200, WORDS), answer.text

    async def _stream(self) -> None:
        events = self._events("POST", json=self._body(WORDS))
        _check_stream([frame async for _, frame in events])

    async def _is_told(self, name: str, text: str) -> None:
        answer = await self._ask("GET", params={"request_id": name, "wait": "20"})
        assert (answer.status_code, answer.json()["result"]) == (200, text), answer.text

    async def _over_a_socket(self, talk: Conversation) -> None:
        queued = await talk.ask(stream=False, body=self._body(WORDS))
        answer = await talk.hear()
        assert (queued["type"], answer["type"]) == ("CHAT_QUEUED", "CHAT_RESPONSE")
        assert (answer["result"], answer["status_code"]) == (WORDS, 200)
        queued = await talk.ask(stream=True, body=self._body(WORDS))
        frames = await talk.hear_until_done()
        assert queued["type"] == "CHAT_QUEUED"
        _check_stream(frames)

    async def _pushed(self, talk: Conversation) -> None:
        frames = ({"type": "NOTE", "n": 1}, {"n": 2})
        answer = await self._push(*frames)
        assert answer == {"status": "SUCCESS", "reached": 1, "held": False}
        heard = (await talk.hear(), await talk.hear())
        assert tuple(map(nameless, heard)) == frames

    async def _push(self, *frames: Frame) -> dict[str, object]:
        url = self._installed.running[Service.PUSH_ENDPOINT].url
        body = {"user_id": self.user, "messages": frames}
        headers = {PUSH_TOKEN_HEADER: PUSH_TOKEN}
        async with httpx.AsyncClient(base_url=url, headers=headers) as client:
            answer = await client.post("/internal/push/user", json=body)
        taken: dict[str, object] = answer.json()
        return taken

    async def _ask(self, method: str, **request: Any) -> httpx.Response:  # noqa: ANN401 - httpx's
        headers = {"authorization": f"Bearer {token_for(self.user)}", **request.pop("headers", {})}
        async with self._installed.running[Service.REQUEST_HANDLER].client() as client:
            return await client.request(method, CHAT, headers=headers, **request)

    def _body(self, prompt: str) -> dict[str, object]:
        name = new_name("turn")
        self.asked.append(name)
        return {"prompt": prompt, "session_id": self.session, "request_id": name}

    def _port(self, service: Service) -> int:
        return self._installed.running[service].port


def _check_stream(frames: list[Frame]) -> None:
    *pieces, end = frames
    assert "".join(piece.get("delta", "") for piece in pieces) == WORDS
    assert [piece["index"] for piece in pieces] == list(range(len(pieces)))
    assert (end["done"], end["index"], end["status_code"]) == (True, len(pieces), 200)
