"""The routes an operator's tools call: /health, /ready, /metrics.

/health is about this process: its loop runs and its parts are alive; a restart would help if it
is not 200.  /ready is about taking work now: it asks every dependency, with a deadline, and is
503 while starting, draining or cut off.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.errors import TurnlineError
from turnline.hosting.lifecycle import Lifecycle, State

Check = Callable[[], Awaitable[None]]
Alive = Callable[[], bool]
Render = Callable[[], Awaitable[tuple[bytes, str]]]


class Ops:
    """Answers for one process."""

    def __init__(
        self,
        *,
        lifecycle: Lifecycle,
        alive: Mapping[str, Alive],
        checks: Mapping[str, Check],
        render_metrics: Render | None,
        timeout: float = 2.0,
    ) -> None:
        """Wire it.

        Args:
            alive: part of this process -> whether it still does its work.
            checks: dependency -> returns if it answers, raises TurnlineError if not.
            render_metrics: makes the /metrics body and content type; None turns the route off.
            timeout: seconds for all checks together.
        """
        self._lifecycle = lifecycle
        self._alive = alive
        self._checks = checks
        self._render = render_metrics
        self._timeout = timeout

    def routes(self) -> list[Route]:
        """The Starlette routes."""
        routes = [Route("/health", self._health), Route("/ready", self._ready)]
        if (render := self._render) is not None:

            async def metrics(_: Request) -> Response:
                body, content_type = await render()
                return Response(body, headers={"content-type": content_type})

            routes.append(Route("/metrics", metrics))
        return routes

    async def _health(self, _: Request) -> Response:
        dead = [name for name, alive in self._alive.items() if not alive()]
        started = self._lifecycle.state is not State.STARTING
        draining = not self._lifecycle.accepting
        if dead and started and not draining:
            return _json(503, {"status": "failed", "parts": dict.fromkeys(dead, "stopped")})
        return _json(200, {"status": "ok", "state": self._lifecycle.state.value})

    async def _ready(self, _: Request) -> Response:
        state = self._lifecycle.state
        if state is not State.READY:
            return _json(503, {"status": state.value})
        async with asyncio.TaskGroup() as tasks:
            asked = {
                name: tasks.create_task(self._ask(check)) for name, check in self._checks.items()
            }
        failed = {name: reason for name, task in asked.items() if (reason := task.result())}
        if failed:
            return _json(503, {"status": "not ready", "dependencies": failed})
        return _json(200, {"status": "ready"})

    async def _ask(self, check: Check) -> str:
        """Give the reason a dependency does not answer; empty if it does."""
        try:
            async with asyncio.timeout(self._timeout):
                await check()
        except TimeoutError:
            return "no answer in time"
        except TurnlineError as error:
            return error.code.value
        return ""


def _json(status: int, body: dict[str, Any]) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")
