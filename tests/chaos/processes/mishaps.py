"""Mishaps that befall an installation: drawn by a seed, and made to happen."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from chaos.processes.topology import Kind, Pod, Topology

FROZEN_SECONDS = (0.5, 6.0)
AWAY_SECONDS = (0.2, 4.0)
KINDS = (Kind.REQUEST_HANDLER, Kind.GATEWAY, Kind.RUNNER, Kind.RESPONDER)


class What(StrEnum):
    """What happens."""

    KILL = "a process is killed"
    FREEZE = "a process freezes and wakes up"
    TERMINATE = "a process is told to stop"
    NATS_KILL = "NATS is killed and started"
    NATS_STOP = "NATS is stopped and started"
    NATS_CUT = "connections to NATS are reset"
    NATS_STALL = "bytes to NATS are held up"
    NATS_DEAF = "bytes from NATS are held up"
    VALKEY_PAUSE = "Valkey freezes and wakes up"
    VALKEY_KILL = "Valkey is killed and started with what it confirmed"
    VALKEY_CUT = "connections to Valkey are reset"


_OF_PROCESSES = (What.KILL, What.FREEZE, What.TERMINATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """One of them.

    Attributes:
        at: seconds from the beginning.
        kind: of the process or the connections it befalls.
        number: which process of the kind.
        seconds: how long it lasts.
    """

    at: float
    what: What
    kind: Kind
    number: int
    seconds: float

    def __str__(self) -> str:
        """Say it in one line."""
        whom = f" ({self.kind.value} {self.number})"
        lasts = "" if self.what in (What.KILL, What.TERMINATE) else f" for {self.seconds:.1f} s"
        return f"{self.at:6.2f} s: {self.what.value}{whom}{lasts}"


def drawn(rng: random.Random, *, count: int, within: float) -> list[Mishap]:
    """Draw so many mishaps, half of them of processes, in order of time."""
    return sorted((_draw(rng, within) for _ in range(count)), key=lambda mishap: mishap.at)


def _draw(rng: random.Random, within: float) -> Mishap:
    of_process = rng.random() < 0.6
    what = rng.choice(_OF_PROCESSES if of_process else [w for w in What if w not in _OF_PROCESSES])
    return Mishap(
        at=rng.uniform(0, within),
        what=what,
        kind=rng.choice(KINDS),
        number=rng.randrange(2),
        seconds=rng.uniform(*(FROZEN_SECONDS if what is What.FREEZE else AWAY_SECONDS)),
    )


async def befall(installed: Topology, mishap: Mishap) -> None:
    """Make one happen, and return when what lasts is over; who dies is the watch's to replace."""
    match mishap.what:
        case What.KILL | What.FREEZE | What.TERMINATE:
            pods = installed.of(mishap.kind)
            await _on_process(pods[mishap.number % len(pods)], mishap)
        case What.NATS_KILL | What.NATS_STOP:
            async with installed.nats_turn:
                hard = mishap.what is What.NATS_KILL
                await asyncio.to_thread(installed.nats.kill if hard else installed.nats.stop)
                await asyncio.sleep(mishap.seconds)
                await installed.nats.start()
        case What.NATS_CUT:
            installed.proxies[mishap.kind].nats.cut()
        case What.NATS_STALL | What.NATS_DEAF:
            proxy = installed.proxies[mishap.kind].nats
            proxy.stall("to_server" if mishap.what is What.NATS_STALL else "to_client")
            await asyncio.sleep(mishap.seconds)
            proxy.heal()
        case What.VALKEY_PAUSE:
            async with installed.valkey_turn:
                installed.valkey.pause()
                await asyncio.sleep(mishap.seconds)
                installed.valkey.resume()
        case What.VALKEY_KILL:
            async with installed.valkey_turn:
                await asyncio.to_thread(installed.valkey.kill)
                await asyncio.sleep(mishap.seconds)
                await asyncio.to_thread(installed.valkey.start)
        case What.VALKEY_CUT:
            installed.proxies[mishap.kind].valkey.cut()


async def _on_process(pod: Pod, mishap: Mishap) -> None:
    with suppress(ProcessLookupError):  # another mishap ended it
        if mishap.what is What.KILL:
            pod.kill()
        elif mishap.what is What.TERMINATE:
            pod.terminate()
        elif not pod.frozen:
            frozen = pod.server
            pod.freeze()
            await asyncio.sleep(mishap.seconds)
            if pod.server is frozen:
                pod.thaw()
