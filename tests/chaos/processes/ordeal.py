"""One seed from its beginning to its end: users at work while mishaps befall what serves them."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from chaos.oracle import History, Moment, Run, faults_of
from chaos.processes import mishaps, workload
from chaos.processes.mishaps import Mishap
from chaos.processes.observed import (
    dead_letters,
    ended_by_themselves,
    left_on_queues,
    logged,
    replaced_as_they_end,
    up,
    urls,
)
from chaos.processes.pushes import Pusher
from chaos.processes.sockets import SocketClient
from chaos.processes.topology import FIVE, Kind, Layout, Topology
from turnline.protocol import ChatReply

PUSH_PAUSE_SECONDS = (0.1, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much one seed does: mishaps come within the first `seconds`."""

    sessions: int = 10
    turns: int = 4
    notes: int = 12
    mishaps: int = 6
    seconds: float = 10.0


async def _nothing() -> None:
    """Befalls where nothing further does."""


async def suffer(
    installed: Topology,
    seed: int,
    size: Size,
    *,
    layout: Layout = FIVE,
    beside: Callable[[], Awaitable[None]] = _nothing,
) -> tuple[History, list[Mishap]]:
    """Play a seed and give what was seen, and what befell.

    Args:
        layout: the processes that were started, two each where mishaps are drawn.
        beside: a further mishap, which begins with the rest.
    """
    rng = random.Random(seed)
    plans = _plans(rng, installed, seed, size, layout)
    befalling = _drawn(rng, installed, size, layout)
    work = workload.Workload(
        rest_urls=lambda: urls(installed, layout.rest),
        socket_urls=lambda: _socket_urls(installed, layout),
        rng=rng,
    )
    pusher = Pusher(lambda: urls(installed, layout.push) if layout.push else [], rng)
    async with replaced_as_they_end(installed, *layout.kinds):
        async with asyncio.TaskGroup() as tasks:
            for mishap in befalling:
                tasks.create_task(_befall(installed, mishap))
            tasks.create_task(work.play(plans))
            if layout.push:
                tasks.create_task(_push_notes(pusher, rng, size))
            await beside()
        await work.read_all_again()
        if layout.push:
            await _note_pushes(pusher, work)
        await note_the_rest(installed, work)
    return work.history, befalling


async def judged(installed: Topology, seed: int, size: Size, *, layout: Layout = FIVE) -> list[str]:
    """Play a seed and give what was wrong, and then what befell; empty if nothing was."""
    history, befallen = await suffer(installed, seed, size, layout=layout)
    faults = faults_of(history)
    if len(history.accepted) < size.sessions * size.turns:
        faults.append(f"{len(history.accepted)} turns were accepted")
    return [*faults, *map(str, befallen)] if faults else []


def _plans(
    rng: random.Random, installed: Topology, seed: int, size: Size, layout: Layout
) -> list[workload.Plan]:
    scratch = installed.directory / f"seed{seed}"
    scratch.mkdir()
    return workload.drawn(
        rng,
        f"seed{seed}",
        sessions=size.sessions,
        turns=size.turns,
        scratch=scratch,
        styles=workload.styles_of(layout),
    )


def _drawn(rng: random.Random, installed: Topology, size: Size, layout: Layout) -> list[Mishap]:
    if not size.mishaps:
        return []
    return mishaps.drawn(
        rng,
        count=size.mishaps,
        within=size.seconds,
        layout=layout,
        ills=installed.broker.ills,
    )


def _socket_urls(installed: Topology, layout: Layout) -> list[str]:
    found = urls(installed, layout.sockets) if layout.sockets else []
    return [url.replace("http", "ws", 1) for url in found]


async def _push_notes(pusher: Pusher, rng: random.Random, size: Size) -> None:
    """Push to the users in turn, as an application does beside their chats."""
    for number in range(size.notes):
        await asyncio.sleep(rng.uniform(*PUSH_PAUSE_SECONDS))
        await pusher.push(workload.user_of(number))


async def _note_pushes(pusher: Pusher, work: workload.Workload) -> None:
    """Note what sockets were pushed, and whether they are reached still."""
    for user, connections in work.connections.items():
        for frames in connections:
            work.history.complaints += pusher.faults(user, frames)
    client = SocketClient(work.socket_urls, workload.user_of(0))
    try:
        await pusher.reaches(client)
    finally:
        await client.close()
    work.history.complaints += pusher.complaints


async def _befall(installed: Topology, mishap: Mishap) -> None:
    await asyncio.sleep(mishap.at)
    await mishaps.befall(installed, mishap)


async def note_the_rest(installed: Topology, work: workload.Workload) -> None:
    """Note what sessions and queues hold, and what agents and runners wrote down."""
    history = work.history
    for session_id, key in work.sessions.items():
        session = await installed.session(key)
        turns = [record.request_id for record in session.history]
        history.histories[session_id] = turns
        if session.state.get("answered", []) != turns:
            history.complaints.append(f"{session_id}: its state and its history disagree")
    _note_runs(installed, history)
    await _note_queues(installed, history)
    history.complaints += ended_by_themselves(installed)


async def _note_queues(installed: Topology, history: History) -> None:
    """Note what is left on queues, and letters of turns that need not have been given up."""
    if left := await left_on_queues(installed):
        history.complaints.append(left)
    for queue in ("input", "output"):
        for letter in await dead_letters(up(installed, Kind.RUNNER), queue):
            reply = history.replies.get(letter["request_id"])
            if reply is not None and (queue == "output" or isinstance(reply.payload, ChatReply)):
                history.complaints.append(f"dead on {queue}: {letter}")


def _note_runs(installed: Topology, history: History) -> None:
    """Note what agents did, and which of it runners committed."""
    mine = {request_id for _, request_id in history.accepted}
    committed: dict[tuple[int, str], float] = {}
    for line in logged(installed, Kind.RUNNER, "turn.committed"):
        if line["request_id"] in mine:
            at = datetime.fromisoformat(line["timestamp"]).timestamp()
            committed[line["pid"], line["request_id"]] = at
            history.commits.append(Moment(line["request_id"], at))
    history.commits.sort(key=lambda commit: commit.at)
    runs: dict[tuple[int, str], Run] = {}
    for entry in installed.agent_entries:
        key = (entry.pid, entry.request)
        if entry.request in mine and entry.what == "start":
            history.starts.append(Moment(entry.request, entry.time))
            runs[key] = Run(entry.session, entry.request, entry.at)
        elif entry.request in mine:
            runs[key].ended = entry.at
    ended = [run for key, run in runs.items() if key in committed and run.ended is not None]
    history.runs = sorted(ended, key=lambda run: run.started)
