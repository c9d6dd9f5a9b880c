"""What a process says of itself depends on what it can do now."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import httpx
import pytest
from starlette.applications import Starlette

from turnline.errors import TransportUnavailableError
from turnline.hosting import Lifecycle, Ops

Check = Callable[[], Awaitable[None]]


async def answers() -> None:
    return


async def is_away() -> None:
    raise TransportUnavailableError("gone")


async def hangs() -> None:
    await asyncio.Event().wait()


async def get(
    path: str,
    lifecycle: Lifecycle,
    *,
    alive: Mapping[str, Callable[[], bool]] | None = None,
    checks: Mapping[str, Check] | None = None,
    metrics: Callable[[], Awaitable[tuple[bytes, str]]] | None = None,
) -> httpx.Response:
    ops = Ops(
        lifecycle=lifecycle,
        alive=alive or {},
        checks=checks or {},
        render_metrics=metrics,
        timeout=0.05,
    )
    transport = httpx.ASGITransport(app=Starlette(routes=ops.routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://process") as client:
        return await client.get(path)


def ready() -> Lifecycle:
    lifecycle = Lifecycle()
    lifecycle.ready()
    return lifecycle


def draining() -> Lifecycle:
    lifecycle = ready()
    lifecycle.drain()
    return lifecycle


async def test_it_is_ready_when_every_dependency_answers() -> None:
    answer = await get("/ready", ready(), checks={"transport": answers, "store": answers})

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


@pytest.mark.parametrize(("make", "status"), [(Lifecycle, "starting"), (draining, "draining")])
async def test_it_is_not_ready_before_and_after(make: Callable[[], Lifecycle], status: str) -> None:
    answer = await get("/ready", make(), checks={"transport": answers})

    assert (answer.status_code, answer.json()) == (503, {"status": status})


async def test_dependencies_that_do_not_answer_are_named_with_the_reason() -> None:
    checks = {"transport": is_away, "store": hangs, "other": answers}

    answer = await get("/ready", ready(), checks=checks)

    assert answer.status_code == 503
    assert answer.json()["dependencies"] == {
        "transport": "transport_unavailable",
        "store": "no answer in time",
    }


async def test_it_is_healthy_while_its_parts_work_whatever_dependencies_do() -> None:
    answer = await get(
        "/health", ready(), alive={"runner": lambda: True}, checks={"transport": is_away}
    )

    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "state": "ready"})


async def test_a_part_that_stopped_makes_it_unhealthy() -> None:
    alive = {"runner": lambda: False, "responder": lambda: True}

    answer = await get("/health", ready(), alive=alive)

    assert answer.status_code == 503
    assert answer.json()["parts"] == {"runner": "stopped"}


@pytest.mark.parametrize("make", [Lifecycle, draining])
async def test_parts_that_do_not_run_yet_or_any_more_are_no_fault(
    make: Callable[[], Lifecycle],
) -> None:
    answer = await get("/health", make(), alive={"runner": lambda: False})

    assert answer.status_code == 200


async def test_metrics_are_served_as_rendered() -> None:
    async def render() -> tuple[bytes, str]:
        return b"up 1\n", "text/plain; version=0.0.4"

    answer = await get("/metrics", ready(), metrics=render)

    assert (answer.text, answer.headers["content-type"]) == ("up 1\n", "text/plain; version=0.0.4")


async def test_without_metrics_there_is_no_such_route() -> None:
    assert (await get("/metrics", ready())).status_code == 404
