"""Runs the bench and writes a table and JSON: `python -m bench.run [--only WORD] [--json FILE]`.

Figures mean something only on a quiet machine, and only beside others of the same run.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.cases import CASES, Case, Figures
from bench.peer import peer_command
from bench.server import running, turnline_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks for.

    Attributes:
        only: run the cases whose name holds this.
        peer_python: interpreter that has the peer; empty: it is not measured.
        transport: the broker; empty where there is none to choose.
    """

    only: str
    rounds: int
    peer_python: str
    transport: str = ""


# Gives the report.
Run = Callable[[Asked], Coroutine[Any, Any, dict[str, object]]]


async def measure(
    case: Case, command: list[str], cwd: Path | None = None, health: str = "/ready", **more: str
) -> Figures:
    """Measure one case on a fresh server; `more` are further environment variables."""
    environ = {
        "AK_EXECUTION__MODE": case.mode,
        "AK_LOGGING__AK__LEVEL": "WARNING",
        **dict(case.environ),
        **more,
    }
    async with running(command, environ, cwd=cwd, health=health) as server:
        return await case.measure(server)


def median_of(runs: list[Figures]) -> Figures:
    """Give the median of each figure."""
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


def machine(durability: str = "none (in_memory)") -> dict[str, object]:
    """Say what the figures were measured on, and what would have outlived a crash."""
    return {
        "cpus": os.cpu_count(),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "python": platform.python_version(),
        "system": platform.platform(),
        "durability": durability,
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def conditions(case: Case) -> dict[str, object]:
    """Say under which conditions a case's figures were measured."""
    return {"payload": case.payload, "mode": case.mode, "settings": dict(case.environ)}


async def run(asked: Asked) -> dict[str, object]:
    """Measure the cases, both systems in turn in each round."""
    print(json.dumps(machine()))
    peer = peer_command(asked.peer_python)
    results: dict[str, dict[str, Figures]] = {}
    cases = [case for case in CASES if asked.only.lower() in case.name.lower()]
    for case in cases:
        ours: list[Figures] = []
        theirs: list[Figures] = []
        for _ in range(asked.rounds):
            ours.append(await measure(case, turnline_command()))
            if peer is not None and case.peer:
                # Its interpreter must not find the libraries of ours.
                theirs.append(await measure(case, peer.command, peer.cwd, "/health", PYTHONPATH=""))
        results[case.name] = {"turnline": median_of(ours)}
        if theirs:
            results[case.name]["peer"] = median_of(theirs)
        print_row(case, results[case.name])
    return {
        "machine": machine(),
        "rounds": asked.rounds,
        "cases": {case.name: conditions(case) for case in cases},
        "results": results,
    }


def print_row(case: Case, systems: dict[str, Figures]) -> None:
    """Print one case of the table."""
    print(f"\n{case.name} ({case.mode}; {case.payload})", flush=True)
    for figure, value in systems["turnline"].items():
        line = f"  {figure:28}{value:>12}"
        if "peer" in systems:
            other = systems["peer"][figure]
            ratio = value / other if other else float("nan")
            line += f"   peer {other:>12}   ratio {ratio:.3f}"
        print(line)


def play(description: str | None, run: Run, transports: Collection[str] = ()) -> None:
    """Parse the command line of a bench, run it, write its figures.

    Args:
        transports: what `--transport` may say, the usual one first; none: it can't be said.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", default="", help="run the cases whose name holds this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--peer-python", default="", help="interpreter that has the peer")
    if transports:
        usual = next(iter(transports))
        parser.add_argument("--transport", choices=tuple(transports), default=usual)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report = runner.run(run(_asked(arguments)))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _asked(arguments: argparse.Namespace) -> Asked:
    return Asked(
        only=arguments.only,
        rounds=arguments.rounds,
        peer_python=arguments.peer_python,
        transport=getattr(arguments, "transport", ""),
    )


if __name__ == "__main__":
    play(__doc__, run)
