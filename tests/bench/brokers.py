"""The bench over a broker and Valkey: five processes, and a bare message on the same broker below.

`python -m bench.brokers [--transport NAME] [--only WORD] [--rounds N] [--json FILE]
[--peer-python PYTHON]`.  Servers, services and the load driver share this machine.  The peer's two
processes are measured over NATS.
"""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import websockets

from bench.cases import (
    Figures,
    percentile,
    rest_latency,
    rest_throughput,
    thousand_sessions,
)
from bench.client import Connection, chat_request
from bench.peer import Peer, peer_command
from bench.raw import ROUND_TRIP
from bench.run import Asked, machine, median_of, play
from bench.server import Server, cpu_seconds_of, running
from chaos.processes.topology import DURABLE, Kind, Pod, Topology, topology
from e2e.tokens import token_for
from turnline.testing.servers.nats import NatsServer
from turnline.testing.servers.valkey import running_valkey

AGENT = Path(__file__).parent / "agent.py"
IDLE_SECONDS = 10.0
SESSIONS = 1000
TURNS_EACH = 3
# In one lane there is no more to learn from as many as from these.
LANE_TURNS = 200


@dataclass(frozen=True, slots=True)
class Installed:
    """The system under test.

    Attributes:
        rest: where REST is served; its processor time is that of all services.
        transport / broker: which broker, and where it is.
        topology: our own processes; None for the peer.
    """

    rest: Server
    transport: str
    broker: str
    topology: Topology | None = None


Measure = Callable[[Installed], Awaitable[Figures]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measurement.

    Attributes:
        peer: the peer can do the same.
        partitions: of each queue.
        runner: one is started beforehand.
    """

    name: str
    measure: Measure
    peer: bool = False
    partitions: int = 32
    runner: bool = True


async def latency(installed: Installed) -> Figures:
    """One caller, an instant agent, beside a bare message on the same broker."""
    figures = await rest_latency(installed.rest)
    raw = await ROUND_TRIP[installed.transport](installed.broker)
    return {
        "p50_ms": figures["p50_ms"],
        "p99_ms": figures["p99_ms"],
        "raw_p50_ms": raw * 1000,
        "raw_round_trips_a_turn": figures["p50_ms"] / (raw * 1000),
    }


async def throughput(installed: Installed) -> Figures:
    """64 callers, an instant agent."""
    return await rest_throughput(installed.rest)


async def sessions(installed: Installed) -> Figures:
    """1,000 sessions post a one-second turn at once, on one runner."""
    return await thousand_sessions(installed.rest)


async def push_latency(installed: Installed) -> Figures:
    """From the moment an agent answers to the moment its user's socket has the answer."""
    assert installed.topology is not None
    (gateway,) = installed.topology.of(Kind.GATEWAY)
    bearer = {"authorization": f"Bearer {token_for('reader')}"}
    seconds = []
    async with websockets.connect(f"{gateway.server.ws_url}/ws", additional_headers=bearer) as ws:
        for number in range(200):
            body = {"prompt": "stamp", "session_id": f"s{number}"}
            await ws.send(json.dumps({"request_id": f"r{number}", "body": body}))
            frame = json.loads(await ws.recv())
            while frame["type"] != "CHAT_RESPONSE":
                frame = json.loads(await ws.recv())
            said = int(frame["result"])
            seconds.append((time.monotonic_ns() - said) / 1e9)
    return {"p50_ms": percentile(seconds, 0.5) * 1000, "p99_ms": percentile(seconds, 0.99) * 1000}


async def idle(installed: Installed) -> Figures:
    """Processor time of services with nothing to do, per cent of a core."""
    assert installed.topology is not None
    pids = {pod.kind.value: pod.server.process.pid for pod in installed.topology.pods}
    before = {kind: cpu_seconds_of(pid) for kind, pid in pids.items()}
    await asyncio.sleep(IDLE_SECONDS)
    return {
        f"{kind}_percent": (cpu_seconds_of(pid) - before[kind]) / IDLE_SECONDS * 100
        for kind, pid in pids.items()
    }


async def recovery(installed: Installed) -> Figures:
    """A runner is killed in a turn of one second; another takes it over, at default leases."""
    assert installed.topology is not None
    (quiet,) = installed.topology.of(Kind.RUNNER)
    quiet.terminate()
    await quiet.ended()
    told = {"logging": {"ak": {"level": "DEBUG"}}}
    runners = [await installed.topology.start(Kind.RUNNER, told) for _ in range(2)]
    connection = await Connection.open(installed.rest.port)
    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(connection.ask(chat_request("sleep=1", "killed")))
        (await _first_to_start(runners)).kill()
        killed = time.perf_counter()
    answer = asked.result()
    return {"answered_after_kill_s": started + answer.seconds - killed, "status": answer.status}


async def _first_to_start(runners: Sequence[Pod]) -> Pod:
    """Wait until one of the runners has started its agent; give which."""
    while True:
        for runner in runners:
            if runner.server.events("turn.started"):
                return runner
        await asyncio.sleep(0.01)


async def one_partition(installed: Installed) -> Figures:
    """Turns of 5 ms of 1,000 sessions wait on one partition: in one lane, or by session."""
    one_lane, _ = await _drained(installed, lanes=1, turns=LANE_TURNS)
    by_session, cpu = await _drained(installed, lanes=SESSIONS, turns=TURNS_EACH * SESSIONS)
    return {
        "runner_cpu_ms_per_turn": cpu * 1000,
        "one_lane_turns_per_s": one_lane,
        "by_session_turns_per_s": by_session,
        "ratio": by_session / one_lane,
    }


async def _drained(installed: Installed, *, lanes: int, turns: int) -> tuple[float, float]:
    """Fill the queue and start a runner.

    Returns:
        How many turns it commits a second, and the processor time of each in seconds.
    """
    assert installed.topology is not None
    connection = await Connection.open(installed.rest.port)
    for number in range(turns):
        request = chat_request(
            "sleep=0.005",
            f"l{lanes}-{number % SESSIONS}",
            headers="prefer: respond-async\r\n",
        )
        answer = await connection.ask(request)
        if answer.status != 202:
            raise RuntimeError(f"status {answer.status}")
    settings = {"execution": {"max_concurrency": lanes}}
    runner = await installed.topology.start(Kind.RUNNER, settings)
    begun = cpu_seconds_of(runner.server.process.pid)
    while True:
        await asyncio.sleep(0.5)
        done = runner.server.events("turn.committed")
        if len(done) >= turns:
            break
    cpu = cpu_seconds_of(runner.server.process.pid) - begun
    runner.terminate()
    await runner.ended()
    times = sorted(datetime.fromisoformat(line["timestamp"]).timestamp() for line in done)
    return (len(times) - 1) / (times[-1] - times[0]), cpu / turns


CASES = (
    Case(name="REST sync, 1 caller", measure=latency, peer=True),
    Case(name="REST sync, 64 callers", measure=throughput, peer=True),
    Case(name="1,000 sessions x 1 s, one runner", measure=sessions, peer=True),
    Case(name="1,000 sessions x 1 s, 4 partitions", measure=sessions, partitions=4),
    Case(name="1,000 x 5 ms on one partition", measure=one_partition, partitions=1, runner=False),
    Case(name="Push latency", measure=push_latency),
    Case(name="Idle services", measure=idle),
    Case(name="Recovery after SIGKILL", measure=recovery),
)


@asynccontextmanager
async def turnline(
    transport: str, *, partitions: int = 32, runner: bool = True
) -> AsyncIterator[Installed]:
    """Run our services: all five, or all but the runner."""
    settings = {"auth": {"type": "jwt"}, "execution": {"max_concurrency": 1000}}
    kinds = (Kind.GATEWAY, Kind.RESPONDER, Kind.PUSH_ENDPOINT, *([Kind.RUNNER] if runner else []))
    with tempfile.TemporaryDirectory(prefix="turnline-bench-") as folder:
        async with topology(
            Path(folder), settings, transport=transport, partitions=partitions
        ) as installed:
            installed.agents = AGENT
            rest = await installed.start(Kind.REQUEST_HANDLER, {"auth": {"type": "none"}})
            others = [await installed.start(kind) for kind in kinds]
            server = Server(
                pid=rest.server.process.pid,
                port=rest.server.port,
                ready_seconds=0.0,
                others=tuple(pod.server.process.pid for pod in others),
            )
            yield Installed(server, transport, installed.broker.address, installed)


@asynccontextmanager
async def peer_processes(peer: Peer) -> AsyncIterator[Installed]:
    """Run the peer's two processes over servers of the same kind."""
    with running_valkey(*DURABLE) as valkey:
        async with NatsServer() as server:
            environ = {
                "PYTHONPATH": "",
                "AK_EXECUTION__MODE": "rest_sync",
                "AK_EXECUTION__QUEUES__TYPE": "nats",
                "AK_EXECUTION__QUEUES__NATS__URL": server.url,
                "AK_EXECUTION__QUEUES__NATS__AUTO_PROVISION": "true",
                "AK_EXECUTION__RESPONSE_STORE__TYPE": "valkey",
                "AK_EXECUTION__RESPONSE_STORE__VALKEY__URL": valkey.url,
                "AK_EXECUTION__RESPONSE_STORE__RETRY_COUNT": "60",
                "AK_EXECUTION__RESPONSE_STORE__DELAY": "1",
                "AK_SESSION__TYPE": "valkey",
                "AK_SESSION__VALKEY__URL": valkey.url,
            }
            async with running(peer.command, environ, cwd=peer.cwd) as rest:
                runner = await asyncio.create_subprocess_exec(
                    *peer.command,
                    env={**os.environ, **environ, "BENCH_ROLE": "runner"},
                    cwd=peer.cwd,
                    stdout=asyncio.subprocess.DEVNULL,
                )
                try:
                    whole = Server(
                        pid=rest.pid,
                        port=rest.port,
                        ready_seconds=rest.ready_seconds,
                        others=(runner.pid,),
                    )
                    yield Installed(whole, "nats", server.url)
                finally:
                    runner.terminate()
                    await runner.wait()


DURABILITY = {
    "kafka": "one Kafka broker, its log in the page cache; Valkey appendfsync always",
    "nats": "NATS file store, Valkey appendfsync always",
    "sqs": "none of the queues (an emulator), Valkey appendfsync always",
}


async def run(asked: Asked) -> dict[str, object]:
    """Measure the cases, both systems in turn in each round."""
    measured_on = machine(DURABILITY[asked.transport])
    print(json.dumps(measured_on))
    peer = peer_command(asked.peer_python) if asked.transport == "nats" else None
    results: dict[str, dict[str, Figures]] = {}
    for case in (case for case in CASES if asked.only.lower() in case.name.lower()):
        ours: list[Figures] = []
        theirs: list[Figures] = []
        for _ in range(asked.rounds):
            async with turnline(
                asked.transport, partitions=case.partitions, runner=case.runner
            ) as installed:
                ours.append(await case.measure(installed))
            if peer is not None and case.peer:
                async with peer_processes(peer) as installed:
                    theirs.append(await case.measure(installed))
        results[case.name] = {"turnline": median_of(ours)}
        if theirs:
            results[case.name]["peer"] = median_of(theirs)
        print(json.dumps({case.name: results[case.name]}), flush=True)
    return {"machine": measured_on, "results": results}


if __name__ == "__main__":
    play(__doc__, run, ("nats", "kafka", "sqs"))
