"""Answers the requests of REST callers on Lambda, each within its invocation."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from starlette.types import ASGIApp

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.aws.direct_rest import direct_client_routes
from turnline.aws.http_app import answer_with
from turnline.aws.http_events import HttpAnswer, HttpRequest
from turnline.aws.identities import CheckedByGateway
from turnline.aws.invocation_work import (
    TurnsOfInvocations,
    emptied,
    finish_of,
    seconds_of_turn,
    working,
)
from turnline.config import Settings
from turnline.frontdoor import web_app
from turnline.hosting import LeaseKeeper, Standalone, operator_routes
from turnline.request_handler import WaitingRoom
from turnline.request_handler.process import client_routes
from turnline.telemetry import get_logger
from turnline.transport.registry import open_transport

_log = get_logger("aws")

# What is left of an invocation after the longest wait, to answer in.
RESERVE_SECONDS = 0.5


class Callers(Protocol):
    """Whoever answers a request."""

    async def answer(
        self, request: HttpRequest, seconds: float, /, *, is_checked: bool
    ) -> HttpAnswer | None:
        """Give the answer to a request; None if there was none within `seconds`.

        Args:
            is_checked: an authorizer of API Gateway has named the caller.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Key:
    budget: float
    is_checked: bool


class QueuedCallers:
    """The REST routes, for as long as an invocation lets a caller wait."""

    def __init__(self, process: Standalone, validator: AuthValidator | None) -> None:
        self._process = process
        self._validator = validator
        self._checked = CheckedByGateway(process.settings.auth.jwt.user_id_claim)
        self._apps: dict[_Key, ASGIApp] = {}

    async def answer(
        self, request: HttpRequest, seconds: float, *, is_checked: bool
    ) -> HttpAnswer | None:
        """See `Callers.answer`."""
        # Later than the wait of any caller, so that it comes to an end of its own.
        app = self.within(seconds, is_checked=is_checked)
        return await answer_with(app, request, seconds + RESERVE_SECONDS / 2)

    def within(self, seconds: float, *, is_checked: bool) -> ASGIApp:
        """Give the application whose callers wait no longer than `seconds`.

        Args:
            is_checked: an authorizer of API Gateway has named the caller.
        """
        asked = budget_of(self._process.settings)
        # In whole seconds, so that one environment makes one application, or two.
        key = _Key(asked if asked <= seconds else max(0.0, math.floor(seconds)), is_checked)
        if key not in self._apps:
            if key.budget < asked:
                _say_shorter(asked, key.budget)
            self._apps[key] = self._make(key)
        return self._apps[key]

    def _make(self, key: _Key) -> ASGIApp:
        process = self._process
        settings = with_budget(process.settings, key.budget)
        shorter = Standalone(
            settings=settings, lifecycle=process.lifecycle, backends=process.backends
        )
        validator = self._checked if key.is_checked else self._validator
        routes = [
            *client_routes(shorter, WaitingRoom(), validator),
            *operator_routes(settings, process.backends, process.lifecycle),
        ]
        return web_app(routes)


class DirectCallers:
    """The REST routes and what runs their turns, made anew for each request (direct mode)."""

    def __init__(
        self,
        process: Standalone,
        validator: AuthValidator | None,
        *,
        agents: AgentRegistry,
        keeper: LeaseKeeper,
    ) -> None:
        self._process = process
        self._validator = validator
        self._checked = CheckedByGateway(process.settings.auth.jwt.user_id_claim)
        self._agents = agents
        self._keeper = keeper
        self._turns = TurnsOfInvocations()

    async def answer(
        self, request: HttpRequest, seconds: float, *, is_checked: bool
    ) -> HttpAnswer | None:
        """See `Callers.answer`; given once the turn has ended, also to who waits no longer."""
        process, until = self._process, finish_of(seconds)
        settings = self._within(seconds)
        async with open_transport(settings, process.backends.clock) as transport:
            backends = replace(process.backends, transport=transport)
            app = self._app(replace(process, settings=settings, backends=backends), is_checked)
            async with working(settings, backends, self._keeper, agents=self._agents, push=None):
                answer = await answer_with(app, request, seconds)
                await emptied(transport, until=until)
        return answer

    def _within(self, seconds: float) -> Settings:
        settings = self._turns.within(self._process.settings, seconds)
        return with_budget(settings, min(budget_of(settings), seconds_of_turn(seconds)))

    def _app(self, process: Standalone, is_checked: bool) -> ASGIApp:
        validator = self._checked if is_checked else self._validator
        routes = [
            *direct_client_routes(process, WaitingRoom(), validator, agents=self._agents),
            *operator_routes(process.settings, process.backends, process.lifecycle),
        ]
        return web_app(routes)


@asynccontextmanager
async def open_direct_callers(
    process: Standalone, validator: AuthValidator | None, *, agents: AgentRegistry
) -> AsyncIterator[Callers]:
    """Open what runs turns beside the stores."""
    agents.threads.resize(process.settings.execution.sync_agent_threads)
    keeper = LeaseKeeper(process.backends.metrics)
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(keeper.run())
        yield DirectCallers(process, validator, agents=agents, keeper=keeper)
        keeping.cancel()


def budget_of(settings: Settings) -> float:
    """Give the seconds that callers wait."""
    store = settings.execution.response_store
    return store.retry_count * store.delay


def with_budget(settings: Settings, budget: float) -> Settings:
    """Give the settings with another time that callers wait."""
    execution = settings.execution
    store = execution.response_store.model_copy(update={"retry_count": 1, "delay": budget})
    return settings.model_copy(
        update={"execution": execution.model_copy(update={"response_store": store})}
    )


def _say_shorter(asked: float, budget: float) -> None:
    _log.warning(
        "config.warning",
        setting="execution.response_store.retry_count",
        reason=f"callers would wait {asked:g} s, but the function's timeout leaves {budget:g} s; "
        "raise the timeout, or lower retry_count x delay",
    )
