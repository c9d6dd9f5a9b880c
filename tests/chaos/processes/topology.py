"""The whole pipeline as it runs in production: every service a process, broker and Valkey between.

Processes are started, killed, frozen and replaced by the test.  Each listens on port 0 and says in
its log which port that became; a replacement has another, as pods have other addresses.
"""

import asyncio
import json
import signal
import uuid
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Any

from chaos.processes import agent_log
from chaos.processes.brokers import BROKERS, Block, Broker, Served
from e2e.process import ADMIN_TOKEN, Ended, Server, cli, launched
from e2e.tokens import SECRET
from turnline.config import Settings
from turnline.protocol import SessionKey
from turnline.protocol.clock import SystemClock
from turnline.store import New, Session
from turnline.store.registry import Stores, open_stores
from turnline.testing.servers.tcp_proxy import TcpProxy
from turnline.testing.servers.valkey import ValkeyServer, running_valkey

AGENTS = Path(__file__).parent / "apps" / "directed.py"
PUSH_TOKEN = "push-token-of-these-tests"
SHORT_LEASES = {"execution": {"drain_grace": 3}, "session": {"lease": 2}}
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class Kind(StrEnum):
    """A service, by the name `turnline serve` knows it by; IO is the guide's IO side."""

    REQUEST_HANDLER = "request-handler"
    GATEWAY = "gateway"
    RUNNER = "runner"
    RESPONDER = "responder"
    PUSH_ENDPOINT = "push-endpoint"
    IO = "io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which processes make up an installation.

    Attributes:
        kinds: one each of these is enough.
        rest: who serves REST.
        sockets / push: who serves sockets and pushes to them; None: nobody does.
    """

    kinds: tuple[Kind, ...]
    rest: Kind
    sockets: Kind | None = None
    push: Kind | None = None


FIVE = Layout(
    kinds=tuple(kind for kind in Kind if kind is not Kind.IO),
    rest=Kind.REQUEST_HANDLER,
    sockets=Kind.GATEWAY,
    push=Kind.PUSH_ENDPOINT,
)
TWO = Layout(kinds=(Kind.IO, Kind.RUNNER), rest=Kind.IO)


@dataclass(slots=True)
class Pod:
    """One process of a service, and those that took its place.

    Attributes:
        server: the process that runs now, or ran last.
        settings: what it and its replacements are started with.
        frozen: it is stopped by SIGSTOP.
        past: the processes it replaced, oldest first.
    """

    kind: Kind
    name: str
    server: Server
    settings: Mapping[str, str]
    frozen: bool = False
    past: list[Server] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether it can be expected to answer."""
        return self.server.process.returncode is None and not self.frozen

    @property
    def servers(self) -> list[Server]:
        """Every process it has been."""
        return [*self.past, self.server]

    def kill(self) -> None:
        """End it on the spot."""
        self.server.signal(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop it where it is; its sockets stay open."""
        self.frozen = True
        self.server.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.server.signal(signal.SIGCONT)
        self.frozen = False

    def terminate(self) -> None:
        """Ask it to end, as an orchestrator does."""
        self.server.signal(signal.SIGTERM)

    async def ended(self, *, within: float = 40.0) -> Ended:
        """Wait for its end."""
        return await self.server.ended(within=within)


@dataclass(slots=True)
class Topology:
    """The processes of one installation, over a broker and a Valkey that tests may break.

    Attributes:
        settings: what every process is started with, as nested blocks.
        served_by: the broker, or several.
        agents: the file of the runners' agents.
        proxies: between Valkey and the kinds that come through one.
        broker_turn / valkey_turn: held by whoever breaks that server.
    """

    directory: Path
    valkey: ValkeyServer
    settings: Block
    served_by: Served
    agents: Path = AGENTS
    pods: list[Pod] = field(default_factory=list)
    proxies: dict[Kind, TcpProxy] = field(default_factory=dict)
    broker_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    valkey_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _started: int = 0

    @property
    def broker(self) -> Broker:
        """The one broker, where there is one."""
        assert isinstance(self.served_by, Broker)
        return self.served_by

    @property
    def agent_entries(self) -> list[agent_log.Entry]:
        """What agents have noted."""
        return agent_log.read(self._agent_log)

    @property
    def _agent_log(self) -> Path:
        return self.directory / "agents.log"

    def of(self, kind: Kind) -> list[Pod]:
        """The pods of a kind."""
        return [pod for pod in self.pods if pod.kind is kind]

    async def start(self, kind: Kind, settings: Block | None = None) -> Pod:
        """Start a process and wait until it is ready.

        Args:
            settings: blocks for it alone, laid over those of all.
        """
        self._started += 1
        name = f"{kind.value}-{self._started}"
        given = environment(merged(self._settings_of(kind), settings or {}))
        given |= self.served_by.variables
        given[agent_log.PATH_VARIABLE] = str(self._agent_log)
        server = await self._launch(kind, name, given)
        pod = Pod(kind, name, server, given)
        self.pods.append(pod)
        await server.is_ready()
        return pod

    async def start_all(self, *kinds: Kind) -> list[Pod]:
        """Start several at once; pods come in the order of `kinds`."""
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(self.start(kind)) for kind in kinds]
        return [task.result() for task in started]

    async def replace(self, pod: Pod) -> None:
        """Start a process in a pod's place, with its settings; what ran there is killed."""
        await pod.server.kill()
        await self.start_beside(pod)

    async def start_beside(self, pod: Pod) -> None:
        """Start a process in a pod's place, while what ran there may still be ending."""
        pod.past.append(pod.server)
        name = f"{pod.name}.{len(pod.past)}"
        pod.server, pod.frozen = await self._launch(pod.kind, name, pod.settings), False
        await pod.server.is_ready()

    async def close(self) -> None:
        """End every process."""
        for pod in self.pods:
            for server in pod.servers:
                await server.kill()

    async def session(self, key: SessionKey) -> Session:
        """Read a session from its store, once nobody holds it."""
        async with self.stores() as stores, asyncio.timeout(30):
            while True:
                begun = await stores.sessions.begin_turn(key, f"look-{uuid.uuid4()}", lease=5.0)
                if isinstance(begun, New):
                    await stores.sessions.abandon_turn(begun.claim)
                    return begun.session
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def stores(self) -> AsyncIterator[Stores]:
        """Open the stores of this installation from here."""
        async with open_stores(Settings.model_validate(self.settings), SystemClock()) as stores:
            yield stores

    def _settings_of(self, kind: Kind) -> Block:
        if (proxy := self.proxies.get(kind)) is None:
            return self.settings
        through = self.broker.through(self.broker.proxies[kind])
        return merged(merged(self.settings, through), valkey_at(f"valkey://127.0.0.1:{proxy.port}"))

    async def _launch(self, kind: Kind, name: str, settings: Mapping[str, str]) -> Server:
        agents = ("--agents", str(self.agents)) if kind is Kind.RUNNER else ()
        serve = cli("serve", kind.value, *agents)
        command = ("-m", "turnline.pipeline.main") if kind is Kind.IO else serve
        return await launched(self.directory / name, *command, settings=settings)


@asynccontextmanager
async def topology(
    directory: Path,
    settings: Block | None = None,
    *,
    transport: str = "nats",
    partitions: int = 4,
    proxied: Collection[Kind] = (),
    short_leases: bool = False,
) -> AsyncIterator[Topology]:
    """Run a broker and Valkey for the length of a block; the services are the test's to start.

    Args:
        settings: blocks laid over the usual ones.
        transport: which broker.
        partitions: of each of its queues.
        proxied: kinds whose processes reach broker and Valkey through proxies.
        short_leases: what a dead process held comes back within seconds.
    """
    async with (
        BROKERS[transport](proxied, partitions=partitions) as broker,
        over(broker, directory, settings, short_leases=short_leases) as installed,
        AsyncExitStack() as stack,
    ):
        for kind in proxied:
            proxy = TcpProxy(installed.valkey.port)
            installed.proxies[kind] = await stack.enter_async_context(proxy)
        # Before the proxies: they end when what comes through them has.
        stack.push_async_callback(installed.close)
        yield installed


@asynccontextmanager
async def over(
    served_by: Served,
    directory: Path,
    settings: Block | None = None,
    *,
    short_leases: bool = False,
) -> AsyncIterator[Topology]:
    """Run a Valkey beside a broker that is there, as `topology` does."""
    with running_valkey(*DURABLE) as valkey:
        blocks = [usual_settings(valkey.url), served_by.settings]
        if short_leases:
            blocks += [SHORT_LEASES, served_by.short_leases]
        installed = Topology(
            directory, valkey, reduce(merged, [*blocks, settings or {}]), served_by
        )
        try:
            yield installed
        finally:
            await installed.close()


def usual_settings(valkey_url: str) -> Block:
    """Give what every process of one installation is started with, but for its broker.

    Names on the server are of this installation alone, so that it may be shared.
    """
    name = f"t{uuid.uuid4().hex[:8]}"
    usual = {
        "api": {"host": "127.0.0.1", "admin_token": ADMIN_TOKEN},
        "auth": {"type": "jwt", "jwt": {"secret": SECRET}},
        "execution": {
            "turn_timeout": 60,
            "response_store": {
                "type": "valkey",
                "retry_count": 60,
                "delay": 1,
                "valkey": {"prefix": f"{name}:responses:"},
            },
        },
        "session": {"type": "valkey", "valkey": {"prefix": f"{name}:sessions:"}},
        "websocket_api": {"push_auth_token": PUSH_TOKEN},
    }
    return merged(usual, valkey_at(valkey_url))


def valkey_at(url: str) -> Block:
    """Give the settings that say where Valkey is."""
    return {
        "execution": {"response_store": {"valkey": {"url": url}}},
        "session": {"valkey": {"url": url}},
    }


def merged(under: Block, over: Block) -> dict[str, Any]:
    """Lay nested blocks over others."""
    both = dict(under)
    for key, value in over.items():
        below = both.get(key)
        nested = isinstance(below, Mapping) and isinstance(value, Mapping)
        both[key] = merged(below, value) if nested and below is not None else value
    return both


def environment(settings: Block, prefix: str = "AK_") -> dict[str, str]:
    """Give nested blocks as the variables that say the same."""
    variables: dict[str, str] = {}
    for key, value in settings.items():
        name = prefix + key.upper()
        if isinstance(value, Mapping) and not any("." in inner for inner in value):
            variables |= environment(value, f"{name}__")
        else:
            # Names with dots are a library's own, and no variables.
            variables[name] = json.dumps(value) if isinstance(value, Mapping) else str(value)
    return variables
