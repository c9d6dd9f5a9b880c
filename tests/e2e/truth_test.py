"""What a process says of itself is true, and says nothing of what its users said."""

import asyncio
import json
from pathlib import Path
from signal import SIGTERM

import httpx
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect

from e2e.clients import SERVED, SURFACES, Turn, caller, over_both
from e2e.process import APPS, dev, serving
from e2e.tokens import token_for

CHAT = "/api/v1/chat"

PROMPT = "marker-of-a-prompt"


def samples(text: str) -> dict[tuple[str, str], float]:
    """Read the metrics: by name and the values of its labels, sorted by label and joined."""
    return {
        (sample.name, ",".join(sample.labels[label] for label in sorted(sample.labels))): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def read(client: httpx.AsyncClient) -> dict[tuple[str, str], float]:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    return samples(answer.text)


@over_both
async def test_metrics_count_turns_and_requests_and_show_queues(
    surface: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    settings = {**SERVED, "AK_EXECUTION__MAX_CONCURRENCY": "1"}
    async with (
        serving(tmp_path / "app", *dev(), settings=settings) as server,
        server.client() as scraper,
        caller(server, surface) as client,
        asyncio.TaskGroup() as tasks,
    ):
        for index in range(3):
            await client.chat(Turn(prompt="x", session_id=f"s{index}"))
        await client.chat(Turn(prompt="x", session_id="s", agent="refusing"))
        before = await read(scraper)
        for index in range(2):
            held_turn = Turn(prompt=str(gate), session_id=f"h{index}", agent="hold")
            tasks.create_task(client.chat(held_turn))
        await server.has_queued(running=1, waiting=1)
        held = await read(scraper)
        await asyncio.to_thread(gate.touch)

    assert before["turnline_turns_total", "ok"] == 3
    assert before["turnline_turns_total", "fatal"] == 1
    assert before["turnline_requests_total", f"rest_sync,200,{surface}"] == 3
    assert before["turnline_requests_total", f"rest_sync,402,{surface}"] == 1
    assert before["turnline_queue_waiting", "input"] == 0
    assert before["turnline_turns_in_flight", ""] == 0
    assert held["turnline_queue_waiting", "input"] == 1
    assert held["turnline_queue_in_flight", "input"] == 1
    assert held["turnline_turns_in_flight", ""] == 1
    assert held["turnline_turns_total", "ok"] == 3


@over_both
async def test_health_is_true_while_draining_and_ready_is_not(surface: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with (
        serving(tmp_path / "app", *dev(), settings=SERVED) as server,
        server.client() as operator,
        caller(server, surface) as client,
        asyncio.TaskGroup() as tasks,
    ):
        up = await operator.get("/ready")
        waiting = tasks.create_task(client.chat(Turn(prompt=str(gate), agent="hold")))
        await server.has_queued(running=1, waiting=0)
        server.signal(SIGTERM)
        await server.is_draining()
        ready, health = await operator.get("/ready"), await operator.get("/health")
        refused = await client.chat(Turn(prompt="late", session_id="s2"))
        await asyncio.to_thread(gate.touch)
        ended = await server.ended()

    assert up.json() == {"status": "ready"}
    assert (ready.status_code, ready.json()) == (503, {"status": "draining"})
    assert (health.status_code, health.json()["state"]) == (200, "draining")
    assert (refused.status, refused.code) == (503, "draining")
    assert waiting.result().result == "holding done"
    assert ended.code == 0


async def test_nothing_that_users_said_or_signed_with_is_in_the_log(tmp_path: Path) -> None:
    settings = {
        **SERVED,
        "AK_EXECUTION__QUEUES__TYPE": "in_memory",
        "AK_EXECUTION__QUEUES__IN_MEMORY__RETRY_BACKOFF": "0.01",
    }
    token = token_for("u1")
    headers = {"authorization": f"Bearer {token}"}
    async with serving(tmp_path, str(APPS / "io_app.py"), settings=settings) as server:
        for surface in SURFACES:
            async with caller(server, surface, token=token) as client:
                for agent in ("echo", "upper", "refusing", "broken", "nobody"):
                    turn = Turn(prompt=PROMPT, session_id=f"s-{surface}-{agent}", agent=agent)
                    await client.chat(turn)
                await client.chat(Turn(prompt=PROMPT, session_id=""))
        async with server.client() as client:
            await client.post(CHAT, content=b'{"prompt": "marker-of-a-prompt', headers=headers)
            await client.post(CHAT, json={}, headers={"authorization": "Bearer not-a-token"})
        async with connect(f"{server.ws_url}/ws?token={token}") as socket:
            body = {"prompt": PROMPT, "session_id": "ws"}
            await socket.send(json.dumps({"route": "chat", "body": body}))
            frames = [json.loads(await socket.recv()) for _ in range(2)]
            await socket.send(json.dumps({"route": "failing", "x": PROMPT}))
            await socket.recv()
        server.signal(SIGTERM)
        ended = await server.ended()

    assert frames[-1]["result"] == f"{PROMPT} "
    log = ended.stderr.lower()
    assert '"event":"turn.committed"' in log.replace(" ", "")
    assert '"event":"agent.failed"' in log.replace(" ", "")
    for marker in (PROMPT, PROMPT.upper(), token, token.split(".")[1], "not-a-token"):
        assert marker.lower() not in log, marker
