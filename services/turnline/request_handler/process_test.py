"""The request handler as a process of its own."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx

from turnline.config import Settings
from turnline.hosting import Lifecycle, Standalone, open_backends
from turnline.protocol.clock import SystemClock
from turnline.request_handler.process import serve_request_handler


def test_the_process_says_why_it_does_not_start_and_exits_78(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    process = subprocess.run(
        [sys.executable, "-m", "turnline.request_handler.main"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert process.returncode == 78
    assert "execution.queues.type: in_memory" in process.stderr
    assert "Traceback" not in process.stderr


async def test_it_serves_until_drained_and_lets_waiting_callers_go() -> None:
    settings = Settings.model_validate(
        {"api": {"host": "127.0.0.1", "port": 0}, "execution": {"drain_grace": 2}}
    )
    lifecycle = Lifecycle()
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with (
        asyncio.timeout(20),
        open_backends(settings, SystemClock()) as backends,
        asyncio.TaskGroup() as tasks,
    ):
        process = Standalone(
            settings=settings, lifecycle=lifecycle, backends=backends, started=bound.set_result
        )
        tasks.create_task(serve_request_handler(process))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{await bound}") as client:
            health = await _when_up(client)
            body = {"prompt": "x", "session_id": "s1", "request_id": "r1"}
            waiter = tasks.create_task(client.post("/api/v1/chat", json=body))
            while await _code_of_poll(client) != "reply_not_ready":
                pass
            metrics = await client.get("/metrics")
            lifecycle.drain()
            answer = await waiter

    assert health.json()["status"] == "ok"
    assert "turnline_queue_waiting" in metrics.text
    assert (answer.status_code, answer.json()["detail"]["code"]) == (503, "draining")
    assert answer.json()["detail"]["request_id"] == "r1"


async def _when_up(client: httpx.AsyncClient) -> httpx.Response:
    while True:
        try:
            return await client.get("/health")
        except httpx.ConnectError:
            await asyncio.sleep(0)


async def _code_of_poll(client: httpx.AsyncClient) -> str:
    poll = await client.get("/api/v1/chat", params={"request_id": "r1"})
    code: str = poll.json()["detail"]["code"]
    return code
