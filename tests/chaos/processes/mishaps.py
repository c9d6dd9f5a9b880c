"""Mishaps that befall an installation: drawn by a seed, and made to happen."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from chaos.processes.brokers import Ill
from chaos.processes.topology import Kind, Layout, Pod, Topology

FROZEN_SECONDS = (0.5, 6.0)
AWAY_SECONDS = (0.2, 4.0)


class What(StrEnum):
    """What happens to processes, and to Valkey; what happens to the broker is an `Ill`."""

    KILL = "a process is killed"
    FREEZE = "a process freezes and wakes up"
    TERMINATE = "a process is told to stop"
    VISIT = "one more process joins and leaves"
    VALKEY_PAUSE = "Valkey freezes and wakes up"
    VALKEY_KILL = "Valkey is killed and started with what it confirmed"
    VALKEY_CUT = "connections to Valkey are reset"


_OF_PROCESSES = (What.KILL, What.FREEZE, What.TERMINATE, What.VISIT)
_SHORT = (What.KILL, What.TERMINATE, What.VALKEY_CUT, Ill.CUT)
_OF_VALKEY = (What.VALKEY_PAUSE, What.VALKEY_KILL, What.VALKEY_CUT)


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
    what: What | Ill
    kind: Kind
    number: int
    seconds: float

    def __str__(self) -> str:
        """Say it in one line."""
        whom = f" ({self.kind.value} {self.number})"
        lasts = "" if self.what in _SHORT else f" for {self.seconds:.1f} s"
        return f"{self.at:6.2f} s: {self.what.value}{whom}{lasts}"


def drawn(
    rng: random.Random, *, count: int, within: float, layout: Layout, ills: Sequence[Ill]
) -> list[Mishap]:
    """Draw so many mishaps, half of them of processes, in order of time.

    Args:
        ills: what may befall the broker.
    """
    kinds = layout.kinds
    mishaps = (_draw(rng, within, kinds, [*ills, *_OF_VALKEY]) for _ in range(count))
    return sorted(mishaps, key=lambda mishap: mishap.at)


def _draw(
    rng: random.Random, within: float, kinds: Sequence[Kind], of_servers: Sequence[What | Ill]
) -> Mishap:
    what = rng.choice(_OF_PROCESSES if rng.random() < 0.6 else of_servers)
    return Mishap(
        at=rng.uniform(0, within),
        what=what,
        kind=rng.choice(kinds),
        number=rng.randrange(2),
        seconds=rng.uniform(*(FROZEN_SECONDS if what is What.FREEZE else AWAY_SECONDS)),
    )


async def befall(installed: Topology, mishap: Mishap) -> None:
    """Make one happen, and return when what lasts is over; who dies is the watch's to replace."""
    match mishap.what:
        case What.KILL | What.FREEZE | What.TERMINATE:
            pods = installed.of(mishap.kind)
            await _on_process(pods[mishap.number % len(pods)], mishap)
        case What.VISIT:
            await _visit(installed, mishap)
        case What.VALKEY_PAUSE | What.VALKEY_KILL | What.VALKEY_CUT:
            await _on_valkey(installed, mishap)
        case Ill():
            await _on_broker(installed, mishap)


async def _visit(installed: Topology, mishap: Mishap) -> None:
    """Have one more process join and leave."""
    # Its agent may end it, and a server that is away keeps it from being ready.
    with suppress(AssertionError, ProcessLookupError, TimeoutError):
        visitor = await installed.start(mishap.kind)
        await asyncio.sleep(mishap.seconds)
        visitor.terminate()
        await visitor.ended()


async def _on_valkey(installed: Topology, mishap: Mishap) -> None:
    if mishap.what is What.VALKEY_CUT:
        installed.proxies[mishap.kind].cut()
        return
    async with installed.valkey_turn:
        if mishap.what is What.VALKEY_PAUSE:
            installed.valkey.pause()
            await asyncio.sleep(mishap.seconds)
            installed.valkey.resume()
        else:
            await asyncio.to_thread(installed.valkey.kill)
            await asyncio.sleep(mishap.seconds)
            await asyncio.to_thread(installed.valkey.start)


async def _on_broker(installed: Topology, mishap: Mishap) -> None:
    broker = installed.broker
    match Ill(mishap.what):
        case Ill.KILL | Ill.STOP:
            async with installed.broker_turn:
                await broker.stop(hard=mishap.what is Ill.KILL)
                await asyncio.sleep(mishap.seconds)
                await broker.start()
        case Ill.FREEZE:
            async with installed.broker_turn:
                broker.freeze()
                await asyncio.sleep(mishap.seconds)
                broker.thaw()
        case Ill.CUT:
            broker.proxies[mishap.kind].cut()
        case Ill.STALL | Ill.DEAF:
            proxy = broker.proxies[mishap.kind]
            proxy.stall("to_server" if mishap.what is Ill.STALL else "to_client")
            await asyncio.sleep(mishap.seconds)
            proxy.heal()


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
