"""Ordeals for as long as wanted: `python -m chaos.processes.run --seed 7 --minutes 30`;
`--transport` and `--layout` choose what is played.

Prints of each seed what befell and what was wrong, and exits with 1 if anything was.  A seed that
failed is played again by `--seed N`.  Needs libs, services, gen/python and tests on PYTHONPATH.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.oracle import faults_of
from chaos.processes.brokers import BROKERS
from chaos.processes.ordeal import Size, suffer
from chaos.processes.topology import FIVE, TWO, Layout, topology

LAYOUTS = {"five": FIVE, "two": TWO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where seeds are played, and how much each does."""

    transport: str
    layout: Layout
    size: Size
    logs: Path


def main() -> None:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m chaos.processes.run")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--minutes", type=float, default=0.0, help="0: the one seed only")
    parser.add_argument("--mishaps", type=int, default=Size().mishaps, help="of each seed")
    parser.add_argument("--transport", choices=sorted(BROKERS), default="nats")
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="five", help="processes")
    parser.add_argument("--logs", type=Path, help="where logs go; a new folder below /tmp if not")
    given = parser.parse_args()
    logs = given.logs or Path(tempfile.mkdtemp(prefix="turnline-chaos-"))
    print(f"logs in {logs}")
    size = Size(mishaps=given.mishaps)
    seeds = _seeds(given.seed, until=time.monotonic() + given.minutes * 60)
    stage = Stage(transport=given.transport, layout=LAYOUTS[given.layout], size=size, logs=logs)
    failed = [seed for seed in seeds if not asyncio.run(_plays_well(seed, stage))]
    if failed:
        sys.exit(f"seeds that failed: {failed}; logs in {logs}")


def _seeds(first: int, *, until: float) -> Iterator[int]:
    yield first
    seed = first
    while time.monotonic() < until:
        yield (seed := seed + 1)


async def _plays_well(seed: int, stage: Stage) -> bool:
    """Play one seed in an installation of its own, as a replay does."""
    directory = stage.logs / f"seed{seed}"
    directory.mkdir(parents=True)
    began = time.monotonic()
    kinds = stage.layout.kinds
    async with topology(
        directory, transport=stage.transport, proxied=kinds, short_leases=True
    ) as installed:
        await installed.start_all(*kinds, *kinds)
        history, befallen = await suffer(installed, seed, stage.size, layout=stage.layout)
    faults = faults_of(history)
    print(f"seed {seed}: {len(history.accepted)} turns, {len(history.starts)} runs, ", end="")
    print(f"{time.monotonic() - began:.0f} s, {len(faults)} faults")
    slowest = sorted(history.waits.items(), key=lambda wait: -wait[1])[:3]
    for line in [*map(str, befallen), *(f"FAULT {fault}" for fault in faults)]:
        print(f"  {line}")
    print("  slowest:", ", ".join(f"{name} {wait:.1f} s" for name, wait in slowest), flush=True)
    return not faults


if __name__ == "__main__":
    main()
