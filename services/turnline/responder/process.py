"""The responder as a process of its own: a broker, shared stores, and ways to the gateways' pods.

Read top to bottom: what is opened first is closed last.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.frontdoor import web_app
from turnline.hosting import (
    LeaseKeeper,
    Parts,
    Standalone,
    WebServer,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.push import PushSignals, Routes, UserPush
from turnline.push.http import HttpPods, pod_client
from turnline.responder.wiring import responder_loop
from turnline.telemetry import watch_loop_lag


async def serve_responder(process: Standalone) -> None:
    """Keep and push answers until the lifecycle drains.

    Raises:
        ConfigurationError: the port is taken.
    """
    settings, backends, lifecycle = process.settings, process.backends, process.lifecycle
    async with open_push(process) as push:
        keeper = LeaseKeeper(backends.metrics)
        responder = responder_loop(settings, backends, keeper, push=push)
        alive = {"responder": lambda: responder.reading}
        routes = operator_routes(settings, backends, lifecycle, alive=alive)
        app = web_app(routes)
        web = WebServer(app, web_options(settings))
        process.started(web.port)
        parts = Parts(
            web=web,
            responder=responder,
            background=[keeper.run, lambda: watch_loop_lag(backends.metrics, backends.clock)],
        )
        await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)


@asynccontextmanager
async def open_push(process: Standalone) -> AsyncIterator[UserPush | None]:
    """Open the ways to pods; None without the secret by which pods know each other."""
    secret = process.settings.websocket_api.push_auth_token
    if secret is None:
        yield None
        return
    async with pod_client() as client:
        yield UserPush(
            connections=process.backends.stores.connections,
            routes=Routes(remote=HttpPods(client, secret.get_secret_value())),
            signals=PushSignals(process.backends.metrics),
            clock=process.backends.clock,
        )
