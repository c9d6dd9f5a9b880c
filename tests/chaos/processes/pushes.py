"""An application that pushes to its users through the push endpoint, and what came of it."""

import asyncio
import random
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

import httpx

from chaos.processes.callers import PAUSE_SECONDS, Urls
from chaos.processes.sockets import SocketClient
from chaos.processes.topology import PUSH_TOKEN
from turnline.push import PUSH_ID, PUSH_TOKEN_HEADER

PATH = "/internal/push/user"
NOTE = "NOTE"
PARTS = 3
CALL_SECONDS = 8.0
BUDGET_SECONDS = 60.0
HEARD_SECONDS = 20.0


@dataclass(slots=True)
class Pusher:
    """Pushes notes of several parts, one after the other, and tries again until they are taken.

    Every other note names its parts itself.

    Attributes:
        urls: the push endpoints that are up now.
        mark: tells its notes from those of others, whose users may have the same names.
        most: how often each note may come to one socket: once if its parts were named, so that
            each try is known for the same, and once a try otherwise.
        complaints: notes nobody took.
    """

    urls: Urls
    rng: random.Random
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    most: Counter[int] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)

    async def push(self, user: str) -> int:
        """Push one note; give its number."""
        number = next(self._numbers)
        ends = time.monotonic() + BUDGET_SECONDS
        headers = {PUSH_TOKEN_HEADER: PUSH_TOKEN}
        async with httpx.AsyncClient(headers=headers, timeout=CALL_SECONDS) as client:
            while time.monotonic() < ends:
                self.most[number] = 1 if _is_named(number) else self.most[number] + 1
                if await self._taken(client, user, number):
                    return number
                await asyncio.sleep(self.rng.uniform(0.5, 1) * PAUSE_SECONDS)
        self.complaints.append(f"note {number} was taken by nobody")
        return number

    async def _taken(self, client: httpx.AsyncClient, user: str, number: int) -> bool:
        if not (urls := self.urls()):
            return False
        messages = [self.note(user, number, part) for part in range(PARTS)]
        body = {"user_id": user, "messages": messages}
        try:
            answer = await client.post(self.rng.choice(urls) + PATH, json=body)
        except httpx.HTTPError:
            return False
        if answer.status_code not in (200, 503):
            self.complaints.append(f"note {number}: {answer.status_code} {answer.text}")
        return answer.status_code == 200

    async def reaches(self, client: SocketClient) -> None:
        """Complain unless a note soon comes over a socket, now that nothing fails any more."""
        number = await self.push(client.user)
        last = self.note(client.user, number, PARTS - 1)
        if not await client.heard(last, within=HEARD_SECONDS):
            self.complaints.append(f"note {number} did not reach {client.user}")

    def note(self, user: str, number: int, part: int) -> dict[str, Any]:
        """Give one part of a note."""
        name = {PUSH_ID: f"{self.mark}-{number}-{part}"} if _is_named(number) else {}
        mine = {"type": NOTE, "pusher": self.mark, **name}
        return {**mine, "user": user, "number": number, "part": part}

    def faults(self, user: str, frames: list[dict[str, Any]]) -> list[str]:
        """Give what is wrong with the notes that one socket of a user brought."""
        notes = [frame for frame in frames if frame.get("pusher") == self.mark]
        faults = [f"{user} was shown {each}" for each in notes if each["user"] != user]
        faults += [f"{each} has no {PUSH_ID}" for each in notes if not each.get(PUSH_ID)]
        for number in {each["number"] for each in notes}:
            parts = [each["part"] for each in notes if each["number"] == number]
            # A socket that opens meanwhile may miss the beginning, one that breaks off the end.
            runs = 1 + sum(after != before + 1 for before, after in pairwise(parts))
            if runs > self.most[number]:
                faults.append(f"note {number} came as {parts}, in order {self.most[number]} times")
        return faults


def _is_named(number: int) -> bool:
    return number % 2 == 0
