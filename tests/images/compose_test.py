"""The topologies of deploy/compose, started by Docker Compose from the product's own images."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from websockets.sync.client import connect

from images.brokers import elasticmq, kafka, prometheus, store_and_nats
from images.build import SERVICES, image_of
from images.compose import SECRETS, Topology, alert_expressions, dashboard_expressions
from images.engine import DockerEngine

STREAMS = Path(__file__).absolute().parents[2] / "examples" / "transport" / "nats" / "streams.py"
# Nothing scales there.
PROCESSES = {image_of(service).removeprefix("turnline-") for service in SERVICES} - {
    "scaler",
    "turnline",
}
# Prometheus looks every ten seconds.
SCRAPED_SECONDS = 60.0
# The first test waits for the images.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="session")
def brokers(images: DockerEngine) -> Mapping[str, str]:
    """Images of what the services need, beside those of the services."""
    return store_and_nats(images)


def test_over_nats_users_are_answered_and_all_services_stop_in_good_order(
    images: DockerEngine, brokers: Mapping[str, str]
) -> None:
    _check(images, ["nats"], brokers, also=_check_streams)


def test_over_kafka_users_are_answered_and_prometheus_finds_every_service(
    images: DockerEngine, brokers: Mapping[str, str]
) -> None:
    named = {**brokers, **kafka(images), **prometheus(images), "GRAFANA_PASSWORD": "unused"}

    _check(images, ["kafka", "observability"], named, also=_check_prometheus)


def test_over_sqs_users_are_answered_and_all_services_stop_in_good_order(
    images: DockerEngine, brokers: Mapping[str, str]
) -> None:
    _check(images, ["sqs"], {**brokers, **elasticmq(images)})


def _check(
    engine: DockerEngine,
    layers: Sequence[str],
    named: Mapping[str, str],
    also: Callable[[DockerEngine], None] | None = None,
) -> None:
    topology = Topology(engine, layers, {**SECRETS, **named})
    with topology.up(*PROCESSES, *(["prometheus"] if "observability" in layers else [])):
        with engine.port_of(8000) as rest, engine.port_of(8001) as sockets:
            answer = _asked_over_rest(rest)
            frames = _asked_over_a_socket(sockets)
        if also is not None:
            also(engine)
        codes = topology.exit_codes()

    assert "runner" in answer["result"]
    assert ["CHAT_QUEUED" in frames[0], "CHAT_RESPONSE" in frames[1]] == [True, True]
    assert {service: codes[service] for service in PROCESSES} == dict.fromkeys(PROCESSES, 0)


def _check_streams(engine: DockerEngine) -> None:
    with engine.port_of(4222) as port:
        looked = subprocess.run(
            [sys.executable, str(STREAMS), f"nats://127.0.0.1:{port}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )

    # Beneath each stream are its messages, if an ack of the turns is still on its way.
    found = [line.split(" messages")[0] for line in looked.stdout.splitlines() if line[0] != " "]
    assert [line.partition(":")[0] for line in found] == [
        "AGENT_REQUESTS",
        "AGENT_REPLIES",
        "AGENT_REQUESTS_DEAD",
        "AGENT_REPLIES_DEAD",
    ]
    assert found[2:] == ["AGENT_REQUESTS_DEAD: 0", "AGENT_REPLIES_DEAD: 0"]


def _check_prometheus(engine: DockerEngine) -> None:
    with engine.port_of(9090) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:

        def asked(expression: str) -> list[dict[str, Any]]:
            answer = client.get("/api/v1/query", params={"query": expression})
            assert answer.status_code == 200, answer.text
            return list(answer.json()["data"]["result"])

        deadline, up = time.monotonic() + SCRAPED_SECONDS, set[str]()
        while up != PROCESSES and time.monotonic() < deadline:
            threading.Event().wait(0.5)
            up = {each["metric"]["service"] for each in asked('up{job="turnline"} == 1')}
        groups = client.get("/api/v1/rules").json()["data"]["groups"]
        for expression in dashboard_expressions():
            asked(expression.replace("$__rate_interval", "1m"))

    assert up == PROCESSES
    assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
    assert len([rule for group in groups for rule in group["rules"]]) == len(alert_expressions())


def _asked_over_rest(port: int) -> dict[str, str]:
    answer = httpx.post(
        f"http://127.0.0.1:{port}/api/v1/chat",
        json={"prompt": "What happens when a runner dies?", "session_id": "s1"},
        headers=_bearer(),
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _asked_over_a_socket(port: int) -> list[str]:
    with connect(f"ws://127.0.0.1:{port}/ws", additional_headers=_bearer()) as socket:
        socket.send(json.dumps({"body": {"prompt": "Which modes are there?", "session_id": "s2"}}))
        return [str(socket.recv(timeout=60)), str(socket.recv(timeout=60))]


def _bearer() -> dict[str, str]:
    claims = {"userId": "you", "exp": int(time.time()) + 600}
    return {"authorization": f"Bearer {jwt.encode(claims, SECRETS['AUTH_SECRET'], 'HS256')}"}
