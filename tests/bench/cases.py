"""What is measured, one function a figure; each gets a fresh server and gives plain numbers."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import websockets

from bench.client import Connection, chat_request
from bench.server import Server

Figures = dict[str, float]
Measure = Callable[[Server], Awaitable[Figures]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measurement.

    Attributes:
        payload: what one request asks for and one answer brings.
        mode: `execution.mode` of the server.
        environ: further settings.
        peer: whether the peer can do the same.
    """

    name: str
    measure: Measure
    payload: str
    mode: str = "rest_sync"
    environ: tuple[tuple[str, str], ...] = ()
    peer: bool = True


def percentile(values: list[float], part: float) -> float:
    """Give the value below which `part` of the sorted values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


async def _closed_loop(
    port: int, *, workers: int, requests: int, prompt: str, session: str = "s"
) -> list[float]:
    """Have `workers` connections send `requests` in all, each its next after its last answer."""
    left = iter(range(requests))
    seconds: list[float] = []

    async def work(number: int) -> None:
        connection = await Connection.open(port)
        for turn in left:
            answer = await connection.ask(chat_request(prompt, f"{session}{number}-{turn}"))
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")
            seconds.append(answer.seconds)
        connection.close()

    async with asyncio.TaskGroup() as tasks:
        for number in range(workers):
            tasks.create_task(work(number))
    return seconds


async def rest_latency(server: Server) -> Figures:
    """One caller, an instant agent."""
    await _closed_loop(server.port, workers=1, requests=50, prompt="warm")
    seconds = await _closed_loop(server.port, workers=1, requests=300, prompt="hi")
    return {
        "p50_ms": percentile(seconds, 0.5) * 1000,
        "p99_ms": percentile(seconds, 0.99) * 1000,
        "ready_s": server.ready_seconds,
    }


async def rest_throughput(server: Server) -> Figures:
    """64 callers, an instant agent."""
    await _closed_loop(server.port, workers=64, requests=200, prompt="warm")
    cpu, started = server.cpu_seconds(), time.perf_counter()
    seconds = await _closed_loop(server.port, workers=64, requests=4000, prompt="hi")
    wall = time.perf_counter() - started
    return {
        "turns_per_s": len(seconds) / wall,
        "p50_ms": percentile(seconds, 0.5) * 1000,
        "cpu_ms_per_turn": (server.cpu_seconds() - cpu) / len(seconds) * 1000,
    }


async def thousand_sessions(server: Server) -> Figures:
    """1,000 sessions post a one-second turn at once."""
    connections = [await Connection.open(server.port) for _ in range(1000)]
    started = time.perf_counter()
    answers = await asyncio.gather(
        *(
            connection.ask(chat_request("sleep=1", f"s{number}"))
            for number, connection in enumerate(connections)
        )
    )
    wall = time.perf_counter() - started
    return {"all_answered_s": wall, "ok": sum(answer.status == 200 for answer in answers)}


async def sse_rate(server: Server) -> Figures:
    """One reply of 1,000 chunks, then one of 50,000: rate of the first and of its last tenth."""
    connection = await Connection.open(server.port)
    await _read_stream(connection, "chunks=1000", "warm")
    short = [await _read_stream(connection, "chunks=1000", f"s{number}") for number in range(5)]
    marks = await _stream_marks(connection, "chunks=50000", "long")
    first, last = _rate(marks, 0.0, 0.1), _rate(marks, 0.9, 1.0)
    return {
        "chunks_per_s": statistics.median(1000 / seconds for seconds in short),
        "first_tenth_of_50k_per_s": first,
        "last_tenth_of_50k_per_s": last,
    }


async def _read_stream(connection: Connection, prompt: str, session: str) -> float:
    started = time.perf_counter()
    async for _ in connection.events(chat_request(prompt, session)):
        pass
    return time.perf_counter() - started


async def _stream_marks(connection: Connection, prompt: str, session: str) -> list[float]:
    marks: list[float] = []
    async for count in connection.events(chat_request(prompt, session)):
        marks += [time.perf_counter()] * count
    return marks


def _rate(marks: list[float], begin: float, end: float) -> float:
    part = marks[int(begin * len(marks)) : int(end * len(marks))]
    return len(part) / max(1e-9, part[-1] - part[0])


async def first_chunk(server: Server) -> Figures:
    """Time to the first chunk while 200 other streams are open and silent."""
    silent = [await Connection.open(server.port) for _ in range(200)]
    streams = [
        connection.events(chat_request("chunks=2 gap=600", f"silent{number}"))
        for number, connection in enumerate(silent)
    ]
    for stream in streams:
        await anext(stream)
    seconds = []
    for number in range(100):
        connection = await Connection.open(server.port)
        started = time.perf_counter()
        stream = connection.events(chat_request("chunks=3", f"s{number}"))
        await anext(stream)
        seconds.append(time.perf_counter() - started)
        connection.close()
    for connection in silent:
        connection.close()
    return {"p50_ms": percentile(seconds, 0.5) * 1000, "p99_ms": percentile(seconds, 0.99) * 1000}


async def idle_sockets(server: Server, count: int = 5000) -> Figures:
    """Memory of idle sockets above the empty process."""
    empty = server.rss_kib()
    url = f"ws://127.0.0.1:{server.port}/ws"
    sockets = []
    for number in range(count):
        sockets.append(await _connect(f"{url}?token=user-{number}"))
    await asyncio.sleep(1)
    used = server.rss_kib() - empty
    for socket in sockets:
        socket.transport.abort()
    return {"kib_per_socket": used / count}


async def many_idle_sockets(server: Server) -> Figures:
    """The same of 10,000, to see that it grows no faster than they do."""
    return await idle_sockets(server, 10_000)


async def _connect(url: str) -> websockets.ClientConnection:
    return await websockets.connect(
        url, compression=None, ping_interval=None, max_queue=1, open_timeout=60
    )


async def unread_replies(server: Server) -> Figures:
    """Memory over 100,000 replies that nobody reads again, each of a session of its own.

    The stores are full from the first 10,000 on, and deduplication remembers some seconds; what
    grows behind 50,000 is not bounded by either.
    """
    figures: Figures = {"rss_empty_mib": server.rss_kib() / 1024}
    answered = 0
    for count in (10_000, 50_000, 100_000):
        await _closed_loop(
            server.port,
            workers=64,
            requests=count - answered,
            prompt="size=100",
            session=f"upto{count}-",
        )
        answered = count
        figures[f"rss_at_{count // 1000}k_mib"] = server.rss_kib() / 1024
    grown = figures["rss_at_100k_mib"] - figures["rss_at_50k_mib"]
    return {**figures, "bytes_per_reply_past_50k": grown * 2**20 / 50_000}


_THOUSAND = (("AK_EXECUTION__MAX_CONCURRENCY", "1000"),)
_SOCKETS = (("BENCH_SOCKETS", "1"),)
_SMALL_STORES = (
    ("AK_EXECUTION__RESPONSE_STORE__TYPE", "in_memory"),
    ("AK_EXECUTION__RESPONSE_STORE__IN_MEMORY__MAX_REPLIES", "10000"),
    ("AK_SESSION__TYPE", "in_memory"),
    ("AK_SESSION__IN_MEMORY__MAX_SESSIONS", "10000"),
    ("AK_EXECUTION__QUEUES__TYPE", "in_memory"),
    ("AK_EXECUTION__QUEUES__IN_MEMORY__DEDUP_WINDOW", "5"),
)

_WORD = "prompt of 2 bytes, reply of 6"
_CHUNKS = "chunks of 6 bytes"
_NOTHING = "no frames; each socket of a user of its own"

CASES = (
    Case(name="REST sync, 1 caller", measure=rest_latency, payload=_WORD),
    Case(name="REST sync, 64 callers", measure=rest_throughput, payload=_WORD),
    Case(
        name="1,000 sessions x 1 s",
        measure=thousand_sessions,
        payload="prompt of 7 bytes, reply of 6",
        environ=_THOUSAND,
    ),
    Case(name="SSE rate", measure=sse_rate, payload=_CHUNKS, mode="stream"),
    Case(
        name="SSE first chunk, 200 silent",
        measure=first_chunk,
        payload=_CHUNKS,
        mode="stream",
        environ=_THOUSAND,
        peer=False,
    ),
    Case(
        name="5,000 idle sockets",
        measure=idle_sockets,
        payload=_NOTHING,
        mode="stream",
        environ=_SOCKETS,
    ),
    Case(
        name="10,000 idle sockets",
        measure=many_idle_sockets,
        payload=_NOTHING,
        mode="stream",
        environ=_SOCKETS,
    ),
    Case(
        name="100,000 unread replies",
        measure=unread_replies,
        payload="prompt of 8 bytes, reply of 100",
        environ=_SMALL_STORES,
        peer=False,
    ),
)
