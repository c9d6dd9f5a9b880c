"""An installation of packed services that is deployed anew, process by process, under load.

A process is replaced as Kubernetes does it with `maxUnavailable: 0`: the new one is ready before
the old one is told to end, and callers may meet the old one until it has ended.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import chaos
from chaos.oracle import History
from chaos.processes import workload
from chaos.processes.brokers.nats import one_nats
from chaos.processes.directives import Directives
from chaos.processes.observed import eventually, urls
from chaos.processes.ordeal import note_the_rest
from chaos.processes.pushes import Pusher
from chaos.processes.sockets import JsonFrame, SocketClient
from chaos.processes.topology import (
    DURABLE,
    FIVE,
    Kind,
    Pod,
    Topology,
    merged,
    usual_settings,
)
from chaos.processes.workload import Asked, Plan, Style, Workload, user_of
from contract.services import apps
from contract.services.packages import Packed, Service
from e2e.process import Ended, Server
from turnline.testing.servers.valkey import running_valkey

GAP_SECONDS = 0.1
SERVICE_RESTART = 1012
WAIT_SECONDS = 60.0

_APP = Path(next(iter(apps.__path__))) / "directed.py"
_TESTS = Path(next(iter(chaos.__path__))).parent


class PackedTopology(Topology):
    """Processes of the pexes."""

    async def _launch(self, kind: Kind, name: str, settings: Mapping[str, str]) -> Server:
        # Its agent is of the tests, and a pex knows its own code alone.
        given = {**settings, "PEX_EXTRA_SYS_PATH": str(_TESTS)}
        service = Service(kind.value.replace("-", "_"))
        return await Packed().launch(service, self.directory / name, given, _APP)


@asynccontextmanager
async def installed(directory: Path) -> AsyncIterator[Topology]:
    """Run one of each service, and two gateways, over NATS and Valkey."""
    with running_valkey(*DURABLE) as valkey:
        async with one_nats((), partitions=4) as broker:
            settings = merged(usual_settings(valkey.url), broker.settings)
            topology = PackedTopology(directory, valkey, settings, broker)
            try:
                await topology.start_all(*FIVE.kinds, Kind.GATEWAY)
                yield topology
            finally:
                await topology.close()


class Deploy:
    """One rolling deploy, its callers, and what they saw.

    Attributes:
        work: what is asked and seen, of the whole deploy.
        waves: by what was replaced, in order.
    """

    def __init__(self, topology: Topology, seed: int) -> None:
        self.topology = topology
        self.rng = random.Random(seed)
        self.work = Workload(
            rest_urls=lambda: urls(topology, Kind.REQUEST_HANDLER),
            socket_urls=lambda: _ws(urls(topology, Kind.GATEWAY)),
            rng=self.rng,
        )
        self.pusher = Pusher(lambda: urls(topology, Kind.PUSH_ENDPOINT), self.rng)
        self.waves: list[Wave] = []

    async def run(self) -> History:
        """Replace every process; give the history of it all."""
        async with asyncio.TaskGroup() as callers:
            for leaving in list(self.topology.pods):
                await self._replace(leaving, callers)
        await self.work.read_all_again()
        await note_the_rest(self.topology, self.work)
        for user, connections in self.work.connections.items():
            for frames in connections:
                self.work.history.complaints += self.pusher.faults(user, frames)
        await self._are_reached()
        return self.work.history

    async def _replace(self, leaving: Pod, callers: asyncio.TaskGroup) -> None:
        wave = Wave(self.topology, leaving, self.work)
        self.waves.append(wave)
        others = passing(self.rng, leaving.name, self.topology.directory)
        user = user_of(len(self.waves))

        async def meanwhile() -> None:
            await self.pusher.push(user)
            if leaving.kind is Kind.GATEWAY:
                await wave.sockets_go_on()

        callers.create_task(wave.play([*wave.under_way(), *others]))
        callers.create_task(self.pusher.push(user))
        ended = await wave.roll(meanwhile)
        assert ended.code == 0, ended.stderr

    async def _are_reached(self) -> None:
        client = SocketClient(self.work.socket_urls, user_of(0), self.rng)
        try:
            await self.pusher.reaches(client)
        finally:
            await client.close()
        self.work.history.complaints += self.pusher.complaints


class Wave:
    """The replacing of one process, and those who ask meanwhile.

    Attributes:
        work: what they ask and see, noted where that of the whole deploy is.
        asked: the turns they ask.
    """

    def __init__(self, topology: Topology, leaving: Pod, whole: Workload) -> None:
        self.topology = topology
        self.leaving = leaving
        self.asked: list[str] = []
        self.work = replace(whole, socket_urls=self.socket_urls)
        # Turns that are under way when the process is replaced go on until it exists.
        self._until = topology.directory / f"{leaving.name}-is-replaced"

    def under_way(self) -> list[Plan]:
        """Give a turn in every mode that goes on for as long as the process is being replaced."""
        return [self._flowing(style) for style in Style]

    async def play(self, plans: list[Plan]) -> None:
        """Let clients do as planned."""
        self.asked += [asked.request for plan in plans for asked in plan.turns]
        await self.work.play(plans)

    async def roll(self, meanwhile: Callable[[], Awaitable[None]]) -> Ended:
        """Start a process and tell the one before to end; give how that one ended.

        Args:
            meanwhile: awaited while both are there and the old one knows that it is to end.
        """
        await self._all_are_under_way()
        await self.topology.start(self.leaving.kind)
        try:
            self.leaving.terminate()
            await self.leaving.server.is_draining()
            await meanwhile()
        finally:
            self._until.touch()
        return await self.leaving.ended(within=WAIT_SECONDS)

    def socket_urls(self) -> list[str]:
        """Give the gateway that leaves, until it is told to, then the others."""
        leaves = self.leaving.kind is Kind.GATEWAY
        if leaves and not self.leaving.server.events("process.draining"):
            found = [self.leaving.server.url]
        else:
            gone = {self.leaving.server.url} if leaves else set()
            found = [url for url in urls(self.topology, Kind.GATEWAY) if url not in gone]
        return _ws(found)

    def sockets(self) -> list[SocketClient]:
        """Give the clients whose turns are under way over a socket."""
        return [
            self.work.clients[self._session(style)] for style in (Style.SOCKET, Style.SOCKET_STREAM)
        ]

    async def sockets_go_on(self) -> None:
        """Wait until every socket's turn is heard of on a second connection."""
        await eventually(
            lambda: all(len(_of_turns(client)) > 1 for client in self.sockets()),
            within=WAIT_SECONDS,
        )
        streaming = self.work.clients[self._session(Style.SOCKET_STREAM)]
        await eventually(lambda: _pieces(streaming.connections[-1]) > 0, within=WAIT_SECONDS)

    async def _all_are_under_way(self) -> None:
        entries = {self._session(style) for style in Style}
        await eventually(
            lambda: entries <= {entry.session for entry in self.topology.agent_entries},
            within=WAIT_SECONDS,
        )
        queued, streaming = self.sockets()
        await eventually(
            lambda: bool(_of_turns(queued)) and any(map(_pieces, streaming.connections)),
            within=WAIT_SECONDS,
        )

    def _flowing(self, style: Style) -> Plan:
        session = self._session(style)
        asked = Asked(
            request=f"{session}-1",
            directives=Directives(until=str(self._until), gap=GAP_SECONDS),
            pause=0.0,
            leave_after=None,
            repeated=False,
            cancelled_after=None,
        )
        return Plan(user=session, session=session, style=style, turns=(asked,))

    def _session(self, style: Style) -> str:
        return f"{self.leaving.name}-{style}"


def passing(rng: random.Random, name: str, scratch: Path) -> list[Plan]:
    """Draw what others ask meanwhile, whose agents raise once at most and end no process."""
    drawn = workload.drawn(
        rng, name, sessions=len(Style), turns=2, scratch=scratch, styles=list(Style)
    )
    return [replace(plan, turns=tuple(_calm(asked) for asked in plan.turns)) for plan in drawn]


def untold(client: SocketClient) -> list[str]:
    """Say what a client's connections but for the last lack of being told to come back."""
    faults = []
    for frames in client.connections[:-1]:
        # A piece that was on its way may come behind it.
        if not any(_says_when_to_come_back(frame) for frame in frames):
            faults.append(f"{client.user} was cut off after {frames[-1:]}")
    if set(client.closed_with) != {SERVICE_RESTART}:
        faults.append(f"{client.user} was closed with {client.closed_with}")
    return faults


def _ws(found: list[str]) -> list[str]:
    return [url.replace("http", "ws", 1) for url in found]


def _says_when_to_come_back(frame: JsonFrame) -> bool:
    return frame.get("status") == "RECONNECT" and frame.get("retry_after", 0) > 0


def _calm(asked: Asked) -> Asked:
    calm = replace(asked.directives, crash_once="", raises=min(asked.directives.raises, 1))
    return replace(asked, directives=calm)


def _of_turns(client: SocketClient) -> list[list[JsonFrame]]:
    """Give the connections over which something of a turn came."""
    return [
        frames for frames in client.connections if any("request_id" in frame for frame in frames)
    ]


def _pieces(frames: list[JsonFrame]) -> int:
    return sum("delta" in frame for frame in frames)
