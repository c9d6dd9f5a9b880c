"""Real Kafka brokers for tests: one or several in KRaft mode, on loopback ports, files below /tmp.

A broker is a Java process of some 220 MB that starts in about four seconds: share one among many
tests, on topics of their own.
"""

import asyncio
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from turnline.testing.servers.kafka_jars import cache_folder, find_java, kafka_jars, locked
from turnline.testing.servers.process import end, free_ports, freeze

START_SECONDS = 90.0
STOP_SECONDS = 15.0
_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
_LOG4J = """Configuration:
  Appenders:
    Console: {name: STDOUT, PatternLayout: {pattern: "[%d] %p %m (%c)%n"}}
  Loggers:
    Root: {level: WARN, AppenderRef: [{ref: STDOUT}]}
"""
# Small and quick: joins do not wait for more members, and short sessions are allowed.
_COMMON = """process.roles=broker,controller
controller.listener.names=CONTROLLER
auto.create.topics.enable=false
offsets.topic.num.partitions=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=200
group.consumer.heartbeat.interval.ms=500
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
log.cleaner.dedupe.buffer.size=2097152
log.index.size.max.bytes=65536
"""
# Of several, the others soon see that one is dead.
_SEVERAL = """broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A further listener of every broker, beside the plain one.

    Attributes:
        name: of the listener, in capitals.
        protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; what it needs is in `extra`.
    """

    name: str
    protocol: str = "PLAINTEXT"


class KafkaServer:
    """Brokers that also are the controllers; use as an async context manager.

    Ports are chosen when it is made and kept by every start.  A client that came in by one listener
    is sent on to the same listener of the others.

    Args:
        nodes: how many brokers, numbered from 0.
        extra: lines of their configuration.
        doors: further listeners.
    """

    def __init__(self, nodes: int = 1, extra: str = "", doors: Sequence[Door] = ()) -> None:
        self._extra = extra
        self._doors = (Door(name="PLAINTEXT"), *doors)
        self._folder = Path(tempfile.mkdtemp(prefix="turnline-kafka-"))
        ports = iter(free_ports(nodes * (1 + len(self._doors))))
        self._controllers = [next(ports) for _ in range(nodes)]
        self._at = {door.name: [next(ports) for _ in range(nodes)] for door in self._doors}
        # Where clients are sent on to, which need not be where a broker listens.
        self._advertised = {name: list(at) for name, at in self._at.items()}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        """Where clients connect: host:port of every broker, separated by commas."""
        return self.bootstrap_at("PLAINTEXT")

    def bootstrap_at(self, door: str) -> str:
        """Give where clients connect that come by another listener."""
        return ",".join(f"127.0.0.1:{port}" for port in self._advertised[door])

    def ports_of(self, door: str) -> list[int]:
        """Give where the brokers listen by a name, in their order."""
        return self._at[door]

    def advertise(self, door: str, ports: Sequence[int]) -> None:
        """Send clients of a listener on to these ports, one a broker; before the first start."""
        self._advertised[door] = list(ports)

    @property
    def log(self) -> str:
        """What the brokers wrote, one after the other."""
        logs = sorted(self._folder.glob("node*.log"))
        return "\n".join(log.read_text(errors="replace") for log in logs)

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await asyncio.to_thread(self.remove)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.remove)

    def remove(self) -> None:
        """Stop them and delete their files; for good."""
        for node in list(self._processes):
            self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self) -> None:
        """Start all that do not run, on the files they left; return when every one serves."""
        for node in range(len(self._controllers)):
            if node not in self._processes:
                await asyncio.to_thread(self._spawn, node)
        async with asyncio.timeout(START_SECONDS):
            while not await asyncio.to_thread(self._is_ready):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    def stop(self, node: int = 0) -> None:
        """Stop one in the ordinary way; its files stay."""
        self._end(node, signal.SIGTERM)

    def kill(self, node: int = 0) -> None:
        """Kill one on the spot; its files stay."""
        self._end(node, signal.SIGKILL)

    def freeze(self, node: int = 0) -> None:
        """Let one answer nothing any more, with its sockets open (SIGSTOP)."""
        freeze(self._processes[node])

    def thaw(self, node: int = 0) -> None:
        """Let it go on."""
        self._processes[node].send_signal(signal.SIGCONT)

    async def restart(self, node: int = 0, *, hard: bool = False) -> None:
        """Stop and start one; `hard` kills it."""
        await asyncio.to_thread(self.kill if hard else self.stop, node)
        await self.start()

    async def leader_of(self, topic: str, partition: int = 0) -> int:
        """Give which broker leads a partition."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                leader = await asyncio.to_thread(self._leader_of, topic, partition)
                if leader >= 0:
                    return leader
                await asyncio.sleep(0.05)

    def _leader_of(self, topic: str, partition: int) -> int:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            found = client.list_topics(topic, timeout=1.0).topics[topic].partitions
        except KafkaException:
            return -1
        return found[partition].leader - 1 if partition in found else -1

    def _spawn(self, node: int) -> None:
        config = self._folder / f"node{node}.properties"
        if not config.exists():
            (self._folder / "log4j2.yaml").write_text(_LOG4J)
            config.write_text(self._properties(node))
            self._format(config, self._folder / f"data{node}")
        with (self._folder / f"node{node}.log").open("ab") as log:
            self._processes[node] = subprocess.Popen(
                self._java("256m", "kafka.Kafka", str(config)),
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def _properties(self, node: int) -> str:
        voters = ",".join(f"{n + 1}@127.0.0.1:{p}" for n, p in enumerate(self._controllers))
        protocols = ",".join(f"{door.name}:{door.protocol}" for door in self._doors)
        copies = min(len(self._controllers), 3)
        return (
            f"{_COMMON}{_SEVERAL if copies > 1 else ''}node.id={node + 1}\n"
            f"controller.quorum.voters={voters}\n"
            f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocols}\n"
            f"listeners={_listeners(self._at, node)},"
            f"CONTROLLER://127.0.0.1:{self._controllers[node]}\n"
            f"advertised.listeners={_listeners(self._advertised, node)}\n"
            f"inter.broker.listener.name=PLAINTEXT\n"
            f"log.dirs={self._folder}/data{node}\n"
            f"offsets.topic.replication.factor={copies}\n"
            f"transaction.state.log.replication.factor={copies}\n"
            f"share.coordinator.state.topic.replication.factor={copies}\n{self._extra}\n"
        )

    def _format(self, config: Path, data: Path) -> None:
        """Make a broker's folder; that of a single one is made once and copied ever after."""
        if len(self._controllers) > 1:
            self._run_format(config)
            return
        template = cache_folder() / "formatted"
        with locked("formatted"):
            if not template.is_dir():
                self._run_format(config)
                half = template.with_name("formatted.part")
                shutil.rmtree(half, ignore_errors=True)
                shutil.copytree(data, half)
                half.rename(template)
        shutil.copytree(template, data, dirs_exist_ok=True)

    def _run_format(self, config: Path) -> None:
        tool = self._java("64m", "kafka.tools.StorageTool", "format")
        subprocess.run(
            [*tool, "-t", _CLUSTER_ID, "-c", str(config)], check=True, stdout=subprocess.DEVNULL
        )

    def _java(self, memory: str, *command: str) -> list[str]:
        return [
            *(find_java(), f"-Xmx{memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-XX:-UsePerfData", "-Xshare:auto"),
            f"-Dlog4j2.configurationFile={self._folder}/log4j2.yaml",
            *("-cp", f"{kafka_jars()}/*", *command),
        ]

    def _is_ready(self) -> bool:
        for process in self._processes.values():
            if process.poll() is not None:
                raise RuntimeError(f"a Kafka broker ended:\n{self.log[-4000:]}")
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            return len(client.list_topics(timeout=1.0).brokers) == len(self._controllers)
        except KafkaException:
            return False

    def _end(self, node: int, how: signal.Signals) -> None:
        process = self._processes.pop(node, None)
        if process is not None:
            end(process, how, within=STOP_SECONDS)


def _listeners(ports: Mapping[str, Sequence[int]], node: int) -> str:
    return ",".join(f"{name}://127.0.0.1:{each[node]}" for name, each in ports.items())
