"""Puts a push endpoint together: a connection store, and the ways to the gateways' pods."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.config import Settings
from turnline.protocol.clock import Clock
from turnline.push import PushSignals, Routes, UserPush
from turnline.push.endpoint import PushHandler
from turnline.push.http import HttpPods, pod_client
from turnline.store import ConnectionStore
from turnline.telemetry import Metrics


@asynccontextmanager
async def open_push(
    settings: Settings, connections: ConnectionStore, metrics: Metrics, clock: Clock
) -> AsyncIterator[PushHandler]:
    """Open what the push routes work on.

    This process holds no sockets itself: a connection is never here, a user's are on other pods.
    """
    secret = settings.websocket_api.push_auth_token
    token = secret.get_secret_value() if secret is not None else ""
    async with pod_client() as client:
        users = UserPush(
            connections=connections,
            routes=Routes(remote=HttpPods(client, token)),
            signals=PushSignals(metrics),
            clock=clock,
        )
        yield PushHandler(token=token, local=None, users=users, inbox=settings.websocket_api.inbox)
