"""Custom routes, whatever their handlers do."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from turnline.errors import InternalError, NotFoundError
from turnline.gateway.custom import CustomRoutes, RouteHandler, RouteMessage
from turnline.telemetry import bind, bound_fields, captured_logs

MESSAGE: RouteMessage = {"message": {"route": "r", "x": 1}, "user_id": "u"}


async def call(handler: RouteHandler, *, timeout: float = 5.0) -> Mapping[str, Any] | None:
    return await CustomRoutes({"r": handler}, timeout=timeout).call("r", MESSAGE)


async def test_a_sync_handler_runs_in_a_thread_of_its_own() -> None:
    threads: list[str] = []

    def handler(message: RouteMessage) -> dict[str, Any]:
        threads.append(threading.current_thread().name)
        return {"got": message}

    assert await call(handler) == {"got": MESSAGE}
    assert threads != [threading.current_thread().name]


async def test_an_async_handler_is_awaited() -> None:
    async def handler(message: RouteMessage) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"got": message["user_id"]}

    assert await call(handler) == {"got": "u"}


async def test_a_callable_that_gives_an_awaitable_is_awaited() -> None:
    async def answer() -> dict[str, Any]:
        return {"ok": True}

    assert await call(lambda _: answer()) == {"ok": True}


async def test_a_handler_may_have_nothing_to_say() -> None:
    assert await call(lambda _: None) is None


async def test_a_handler_sees_the_ids_bound_around_it() -> None:
    with bind(connection_id="c1"):
        reply = await call(lambda _: dict(bound_fields()))

    assert reply == {"connection_id": "c1"}


def raising(_: RouteMessage) -> None:
    raise ValueError("secret")


def exhausting(_: RouteMessage) -> None:
    raise StopIteration


async def raising_async(_: RouteMessage) -> None:
    raise ValueError("secret")


async def hanging(_: RouteMessage) -> None:
    await asyncio.Event().wait()


def giving(value: object) -> RouteHandler:
    careless: Callable[..., Any] = lambda _: value  # noqa: E731 - typed as what it is not
    return careless


@pytest.mark.parametrize(
    "handler",
    [
        raising,
        raising_async,
        exhausting,
        hanging,
        giving([1]),
        giving("text"),
        giving(5),
        giving({"a": object()}),
        giving({1: "a"}),
        giving({"a": {1, 2}}),
        giving({"a": "\ud800"}),
        giving({"a": 2**80}),
    ],
)
async def test_a_handler_that_fails_is_said_to_have_failed_and_no_more(
    handler: RouteHandler,
) -> None:
    with captured_logs() as logs, pytest.raises(InternalError) as failure:
        await call(handler, timeout=0.2)

    assert failure.value.message == "Route handler encountered an error"
    assert [record["event"] for record in logs] == ["route.failed"]


async def test_a_sync_handler_that_hangs_costs_its_caller_only_the_time_of_a_route() -> None:
    release = threading.Event()
    try:
        with captured_logs(), pytest.raises(InternalError):
            async with asyncio.timeout(30):
                await call(lambda _: {"late": release.wait(30)}, timeout=0.05)
    finally:
        release.set()


async def test_an_unknown_route_is_not_found() -> None:
    with pytest.raises(NotFoundError) as missing:
        await CustomRoutes({}, timeout=1.0).call("n" * 100, MESSAGE)

    assert missing.value.message == f"Route '{'n' * 64}' not found"
