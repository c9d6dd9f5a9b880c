"""Clients as applications have them: each call has a bound, a retry keeps its request_id.

A caller talks to whichever pod of a kind is said to be up, and to another when that one fails.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from e2e.tokens import token_for

CHAT = "/api/v1/chat"
BUSY = (429, 503)
PAUSE_SECONDS = 0.2
CALL_SECONDS = 70.0

Urls = Callable[[], list[str]]


class UnansweredError(AssertionError):
    """A caller's time ran out: nobody answered it, or not for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a request was answered: a status and a JSON body."""

    status: int
    body: dict[str, Any]

    @property
    def detail(self) -> dict[str, Any]:
        """What an error says; empty for others."""
        detail = self.body.get("detail")
        return detail if isinstance(detail, dict) else {}

    @property
    def code(self) -> str:
        """The code of an error; empty for others."""
        return str(self.detail.get("code", ""))


@dataclass(slots=True)
class RestCaller:
    """A user's REST client.

    Attributes:
        urls: the request handlers that are up now.
        budget: seconds for everything one call does, its retries included.
    """

    urls: Urls
    user: str
    rng: random.Random = field(default_factory=random.Random)
    budget: float = CALL_SECONDS
    client: httpx.AsyncClient = field(
        default_factory=lambda: httpx.AsyncClient(limits=httpx.Limits(max_connections=None))
    )
    _headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        token = token_for(self.user, seconds=36_000)
        self._headers = {"authorization": f"Bearer {token}"}

    async def close(self) -> None:
        """Close its connections."""
        await self.client.aclose()

    async def ask(self, session: str, request: str, prompt: str) -> Answer:
        """Send a turn and wait for its answer (rest_sync)."""
        return await self._until_answered("POST", json_body=_body(session, request, prompt))

    async def submit(self, session: str, request: str, prompt: str) -> Answer:
        """Send a turn and come back when it is accepted (rest_async)."""
        headers = {"prefer": "respond-async"}
        body = _body(session, request, prompt)
        return await self._until_answered("POST", json_body=body, headers=headers)

    async def cancel(self, request: str) -> Answer:
        """Cancel a turn."""
        return await self._until_answered("DELETE", params={"request_id": request})

    async def poll(self, request: str) -> Answer:
        """Ask for a turn's answer until there is one."""
        ends = time.monotonic() + self.budget
        while True:
            params = {"request_id": request, "wait": "5"}
            answer = await self._until_answered("GET", params=params)
            if answer.status != 404 or answer.code != "reply_not_ready":
                return answer
            if time.monotonic() > ends:
                raise UnansweredError(f"{request} has no answer")

    async def events(
        self,
        session: str,
        request: str,
        prompt: str,
        *,
        leave_after: Callable[[], int | None] = lambda: None,
        heard: Callable[[], None] = lambda: None,
    ) -> list[dict[str, Any]]:
        """Send a turn and read its stream, coming back with Last-Event-ID whenever it breaks off.

        Args:
            leave_after: after how many events to leave the next connection; None: not at all.
            heard: called whenever a connection was answered: the turn is accepted.

        Returns:
            Every event in the order read, over all connections, the end last; or just the answer
            as `{"status_code", "body"}` of a turn that was answered with no stream.
        """
        seen: list[dict[str, Any]] = []
        last = ""
        ends = time.monotonic() + self.budget
        while time.monotonic() < ends:
            leave = leave_after()
            try:
                async for at, event in self._events(_body(session, request, prompt), last, heard):
                    seen.append(event)
                    last = at or last
                    if _is_end(event):
                        return seen
                    if leave is not None and (leave := leave - 1) <= 0:
                        break
            except httpx.HTTPError:
                pass
            await asyncio.sleep(self.rng.uniform(0, PAUSE_SECONDS))
        raise UnansweredError(f"the stream of {request} has no end")

    async def _events(
        self, body: dict[str, str], last: str, heard: Callable[[], None]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Give (id, data) of each event of one connection; nothing if nobody takes it now."""
        headers = {**self._headers, "accept": "text/event-stream"}
        if last:
            headers["last-event-id"] = last
        url = self._url()
        if not url:
            return
        timeout = httpx.Timeout(5.0, read=25.0)
        async with self.client.stream(
            "POST", url + CHAT, json=body, headers=headers, timeout=timeout
        ) as answer:
            if answer.headers["content-type"].startswith("text/event-stream"):
                heard()
                async for item in _parsed(answer):
                    yield item
                return
            await answer.aread()
            if answer.status_code not in BUSY:
                heard()
                yield "", {"status_code": answer.status_code, "body": _answer(answer).body}

    async def _until_answered(
        self,
        method: str,
        *,
        json_body: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Call until somebody answers with something else than "not now"."""
        ends = time.monotonic() + self.budget
        while (left := ends - time.monotonic()) > 0:
            if url := self._url():
                try:
                    answer = await self.client.request(
                        method,
                        url + CHAT,
                        json=json_body,
                        params=params,
                        headers={**self._headers, **(headers or {})},
                        timeout=httpx.Timeout(5.0, read=left),
                    )
                except httpx.HTTPError:
                    pass
                else:
                    if answer.status_code not in BUSY:
                        return _answer(answer)
            await asyncio.sleep(self.rng.uniform(0.5, 1) * PAUSE_SECONDS)
        raise UnansweredError(f"{method} {json_body or params} was not answered")

    def _url(self) -> str:
        urls = self.urls()
        return self.rng.choice(urls) if urls else ""


async def _parsed(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    at = ""
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            at = line[4:]
        elif line.startswith("data: ") and not _sent_away(event := json.loads(line[6:])):
            yield at, event


def _answer(response: httpx.Response) -> Answer:
    """Read an answer; one that is no JSON, which none may be, shows as an error of its own code."""
    try:
        body = response.json()
    except ValueError:
        body = {"detail": {"error": response.text, "code": "no-json"}}
    return Answer(status=response.status_code, body=body)


def _body(session: str, request: str, prompt: str) -> dict[str, str]:
    return {"session_id": session, "request_id": request, "prompt": prompt}


def _is_end(event: dict[str, Any]) -> bool:
    return event.get("done") is True or "body" in event


def _sent_away(event: dict[str, Any]) -> bool:
    """Whether an end only says that this reader is to come back with its Last-Event-ID."""
    said = ("Stream timed out", "Stream delivery failed")
    return event.get("done") is True and event.get("error") in said
