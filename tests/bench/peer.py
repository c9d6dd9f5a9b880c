"""The peer: the best-known implementation of the same guide, where its package is installed."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

PEER_DIR = Path(__file__).parent / "peer_app"


@dataclass(frozen=True, slots=True)
class Peer:
    """How to start it."""

    command: list[str]
    cwd: Path


def peer_command(python: str) -> Peer | None:
    """Give the command for an interpreter that has `agentkernel`; None, with the reason, if not."""
    if not python:
        print("peer: not measured (no --peer-python)")
        return None
    found = subprocess.run([python, "-c", "import agentkernel"], check=False, capture_output=True)
    if found.returncode != 0:
        print(f"peer: not measured ({python} has no agentkernel)")
        return None
    return Peer([python, "serve.py"], PEER_DIR)
