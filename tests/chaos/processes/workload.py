"""What one seed has its users do: sessions in every way a client can ask, and how each went.

A session is one client's, who sends the next turn when the one before was accepted, so the order
of acceptance is known.  Everything a client sees goes into the history that the oracle judges.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from chaos.oracle import History
from chaos.processes.callers import Answer, RestCaller, UnansweredError, Urls
from chaos.processes.directives import Directives
from chaos.processes.readings import reply_of, stream_of
from chaos.processes.sockets import JsonFrame, SocketClient, SocketTurn
from chaos.processes.topology import Layout
from turnline.protocol import SessionKey
from turnline.store import StoredReply

USERS = 3


class Style(StrEnum):
    """How a session's client asks."""

    SYNC = "sync"
    ASYNC = "async"
    EVENTS = "events"
    SOCKET = "socket"
    SOCKET_STREAM = "socket-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One turn of a plan.

    Attributes:
        pause: seconds before it is sent.
        leave_after: events or frames after which its reader leaves, to come back elsewhere.
        repeated: it is sent once more meanwhile, by another client.
        cancelled_after: seconds after its acceptance; None: it is not cancelled.
    """

    request: str
    directives: Directives
    pause: float
    leave_after: int | None
    repeated: bool
    cancelled_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One session."""

    user: str
    session: str
    style: Style
    turns: tuple[Asked, ...]


def styles_of(layout: Layout) -> list[Style]:
    """Give the ways in which clients can ask there."""
    over_sockets = (Style.SOCKET, Style.SOCKET_STREAM)
    return [style for style in Style if layout.sockets or style not in over_sockets]


def user_of(number: int) -> str:
    """Give the user whose a session is, by its number."""
    return f"u{number % USERS}"


def drawn(
    rng: random.Random,
    name: str,
    *,
    sessions: int,
    turns: int,
    scratch: Path,
    styles: Sequence[Style],
) -> list[Plan]:
    """Draw the sessions of a seed; every style comes, whatever the seed.

    Args:
        name: makes ids unique in an installation.
        scratch: where agents leave the marks of their crashes.
    """
    plans = []
    for number in range(sessions):
        session = f"{name}-s{number}"
        asked = [_turn(rng, f"{session}-{turn}", scratch) for turn in range(turns)]
        plans.append(
            Plan(
                user=user_of(number),
                session=session,
                style=styles[number % len(styles)],
                turns=tuple(asked),
            )
        )
    return plans


def _turn(rng: random.Random, request: str, scratch: Path) -> Asked:
    chunks = rng.randint(1, 8)
    odd = rng.random()
    directives = Directives(
        sleep=rng.choice([0.0, 0.0, rng.uniform(0, 1.5)]),
        chunks=chunks,
        gap=rng.choice([0.0, 0.05, 0.2]),
        raises=0 if odd > 0.15 else 1 if odd > 0.05 else 5,
        fatal=0.15 < odd < 0.2,
        crash_once=str(scratch / request) if 0.2 < odd < 0.27 else "",
    )
    return Asked(
        request=request,
        directives=directives,
        pause=rng.uniform(0, 1.0),
        leave_after=rng.choice([None, 1, chunks]),
        repeated=rng.random() < 0.2,
        cancelled_after=rng.uniform(0, 1.0) if rng.random() < 0.08 else None,
    )


@dataclass(slots=True)
class Workload:
    """Plays plans against an installation and notes what is seen.

    Attributes:
        sessions: keys, by session id.
        requests: users, by request id.
        connections: frames of each user's sockets.
        clients: who holds a socket, or will, by session id.
    """

    rest_urls: Urls
    socket_urls: Urls
    rng: random.Random
    history: History = field(default_factory=History)
    sessions: dict[str, SessionKey] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    connections: dict[str, list[list[JsonFrame]]] = field(default_factory=dict)
    clients: dict[str, SocketClient] = field(default_factory=dict)

    async def play(self, plans: list[Plan]) -> None:
        """Play all plans at once; returns when every caller was answered or gave up."""
        async with asyncio.TaskGroup() as tasks:
            for plan in plans:
                self.sessions[plan.session] = SessionKey(plan.user, plan.session)
                tasks.create_task(self._session(plan))

    async def read_all_again(self) -> None:
        """Ask once more for every accepted turn's answer."""
        for user in sorted(set(self.requests.values())):
            rest = self._rest(user)
            mine = [request for request, owner in self.requests.items() if owner == user]
            async with asyncio.TaskGroup() as tasks:
                for request in mine:
                    tasks.create_task(self._read(rest, request))
            await rest.close()

    async def _session(self, plan: Plan) -> None:
        rest = self._rest(plan.user)
        socket = SocketClient(self.socket_urls, plan.user, random.Random(self.rng.random()))
        self.clients[plan.session] = socket
        try:
            async with asyncio.TaskGroup() as beside:
                for asked in plan.turns:
                    await asyncio.sleep(asked.pause)
                    began = time.monotonic()
                    await self._turn(plan, asked, rest, socket, beside)
                    self.history.waits[asked.request] = time.monotonic() - began
            if socket.connections:
                await socket.hear(0.3)
        finally:
            self.history.sockets += socket.connections
            self.connections.setdefault(plan.user, []).extend(socket.connections)
            await socket.close()
            await rest.close()

    async def _turn(
        self,
        plan: Plan,
        asked: Asked,
        rest: RestCaller,
        socket: SocketClient,
        beside: asyncio.TaskGroup,
    ) -> None:
        prompt = asked.directives.prompt

        def accepted() -> None:
            self.history.accepted.append((plan.session, asked.request))
            self.requests[asked.request] = plan.user
            if asked.repeated:
                repeat = rest.ask(plan.session, asked.request, prompt)
                beside.create_task(self._noted(asked.request, repeat))
            if asked.cancelled_after is not None:
                beside.create_task(self._cancel(rest, asked))

        try:
            match plan.style:
                case Style.SYNC:
                    answer = await rest.ask(plan.session, asked.request, prompt)
                    accepted()
                    if self._note(asked.request, answer) is None:
                        await self._read(rest, asked.request)
                case Style.ASYNC:
                    await self._submitted(plan, asked, rest)
                    accepted()
                    beside.create_task(self._read(rest, asked.request))
                case Style.EVENTS:
                    await self._events(plan, asked, rest, accepted)
                case Style.SOCKET | Style.SOCKET_STREAM:
                    await self._socket(plan, asked, socket, accepted)
        except UnansweredError as error:
            self.history.complaints.append(str(error))

    async def _submitted(self, plan: Plan, asked: Asked, rest: RestCaller) -> None:
        answer = await rest.submit(plan.session, asked.request, asked.directives.prompt)
        if answer.status >= 300 and answer.code not in _ENDS:
            self.history.complaints.append(f"{asked.request} was refused: {answer}")

    async def _events(
        self, plan: Plan, asked: Asked, rest: RestCaller, accepted: Callable[[], None]
    ) -> None:
        leaves = iter([asked.leave_after])

        def first_event() -> None:
            if asked.request not in self.requests:
                accepted()

        events = await rest.events(
            plan.session,
            asked.request,
            asked.directives.prompt,
            leave_after=lambda: next(leaves, None),
            heard=first_event,
        )
        end = events[-1]
        if "body" in end:
            self._note(asked.request, Answer(status=end["status_code"], body=end["body"]))
            return
        if (reply := await self._read(rest, asked.request)) is not None:
            self.history.streams[asked.request] = stream_of(events, reply)

    async def _socket(
        self, plan: Plan, asked: Asked, socket: SocketClient, accepted: Callable[[], None]
    ) -> None:
        turn = SocketTurn(
            session=plan.session,
            request=asked.request,
            prompt=asked.directives.prompt,
            stream=plan.style is Style.SOCKET_STREAM,
            leave_after=asked.leave_after,
            accepted=accepted,
        )
        end = await socket.turn(turn)
        if not turn.queued:
            self.history.complaints.append(f"{asked.request} was refused: {end}")

    async def _cancel(self, rest: RestCaller, asked: Asked) -> None:
        await asyncio.sleep(asked.cancelled_after or 0)
        try:
            answer = await rest.cancel(asked.request)
        except UnansweredError as error:
            self.history.complaints.append(str(error))
            return
        if answer.status not in (200, 202):
            self.history.complaints.append(f"{asked.request} could not be cancelled: {answer}")

    async def _noted(self, request: str, call: Awaitable[Answer]) -> None:
        try:
            self._note(request, await call)
        except UnansweredError as error:
            self.history.complaints.append(str(error))

    async def _read(self, rest: RestCaller, request: str) -> StoredReply | None:
        try:
            return self._note(request, await rest.poll(request))
        except UnansweredError as error:
            self.history.complaints.append(str(error))
            return None

    def _note(self, request: str, answer: Answer) -> StoredReply | None:
        """Note what somebody was answered; an answer that says to come back is none."""
        if answer.code in _COME_BACK:
            return None
        reply = reply_of(request, answer)
        self.history.readings.setdefault(request, []).append(reply)
        self.history.replies[request] = reply
        return reply

    def _rest(self, user: str) -> RestCaller:
        return RestCaller(self.rest_urls, user, random.Random(self.rng.random()))


_COME_BACK = frozenset({"reply_not_ready"})
_ENDS = frozenset({"agent_failed", "turn_cancelled", "turn_deadline_exceeded"})
