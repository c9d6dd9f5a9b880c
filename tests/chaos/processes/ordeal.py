"""One seed from its beginning to its end: users at work while mishaps befall what serves them."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from chaos.oracle import History, Moment, Run
from chaos.processes import mishaps, workload
from chaos.processes.mishaps import KINDS, Mishap
from chaos.processes.observed import (
    dead_letters,
    ended_by_themselves,
    left_on_queues,
    logged,
    replaced_as_they_end,
    up,
    urls,
)
from chaos.processes.topology import Kind, Topology
from turnline.protocol import ChatReply

SHORT_LEASES = {
    "execution": {"drain_grace": 3, "queues": {"nats": {"ack_wait": 2, "retry_backoff": 0.2}}},
    "session": {"lease": 2},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much one seed does: mishaps come within the first `seconds`."""

    sessions: int = 10
    turns: int = 4
    mishaps: int = 6
    seconds: float = 10.0


async def _nothing() -> None:
    """Befalls where nothing further does."""


async def suffer(
    installed: Topology, seed: int, size: Size, *, beside: Callable[[], Awaitable[None]] = _nothing
) -> tuple[History, list[Mishap]]:
    """Play a seed and give what was seen, and what befell.

    Args:
        beside: a further mishap, which begins with the rest.
    """
    rng = random.Random(seed)
    scratch = installed.directory / f"seed{seed}"
    scratch.mkdir()
    plans = workload.drawn(
        rng, f"seed{seed}", sessions=size.sessions, turns=size.turns, scratch=scratch
    )
    befalling = mishaps.drawn(rng, count=size.mishaps, within=size.seconds)
    work = workload.Workload(
        rest_urls=lambda: urls(installed, Kind.REQUEST_HANDLER),
        socket_urls=lambda: [url.replace("http", "ws", 1) for url in urls(installed, Kind.GATEWAY)],
        rng=rng,
    )
    async with replaced_as_they_end(installed, *KINDS):
        async with asyncio.TaskGroup() as tasks:
            for mishap in befalling:
                tasks.create_task(_befall(installed, mishap))
            tasks.create_task(work.play(plans))
            await beside()
        await work.read_all_again()
        await _note_the_rest(installed, work)
    return work.history, befalling


async def _befall(installed: Topology, mishap: Mishap) -> None:
    await asyncio.sleep(mishap.at)
    await mishaps.befall(installed, mishap)


async def _note_the_rest(installed: Topology, work: workload.Workload) -> None:
    """Note what sessions hold, and what agents and runners wrote down."""
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
