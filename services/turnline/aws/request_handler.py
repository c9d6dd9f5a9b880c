"""The request handler as a Lambda function behind an HTTP API, a REST API or a function URL."""

import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from starlette.responses import Response
from starlette.types import ASGIApp

from turnline.auth import AuthValidator
from turnline.aws.checks import read_settings_for, validator_of
from turnline.aws.environment import AtInit, Event, Invocation
from turnline.aws.http_app import answer_with
from turnline.aws.http_events import HttpAnswer, HttpRequest, read_request
from turnline.aws.identities import CHECKED_HEADER, CheckedByGateway, checked
from turnline.aws.never_arrived import in_routers_words
from turnline.aws.spans import sending_spans
from turnline.config import Settings, Topology
from turnline.errors import TurnDeadlineExceededError, TurnlineError
from turnline.frontdoor import error_response, json_response, web_app
from turnline.gateway.custom import CustomRoutes
from turnline.hosting import Lifecycle, Standalone, open_backends, operator_routes
from turnline.protocol.clock import SystemClock
from turnline.request_handler import WaitingRoom
from turnline.request_handler.process import client_routes
from turnline.telemetry import get_logger

_log = get_logger("aws")

# What is left of an invocation after the longest wait, to answer in.
_RESERVE_SECONDS = 0.5
_CUSTOM_SECONDS = 28.0

CustomHandler = Callable[[Event, Any], Any]
HandlerT = TypeVar("HandlerT", bound=CustomHandler)


class Lambda:
    """The guide's REST entry point on Lambda: chat, and the application's own paths.

    Attributes:
        handler: what Lambda calls.  Reading it opens the queue and the stores.
    """

    handler = AtInit(lambda owner: owner.open)
    _validator: ClassVar[AuthValidator | None] = None
    _custom: ClassVar[dict[str, CustomHandler]] = {}

    @classmethod
    def set_auth_validator(cls, validator: AuthValidator) -> "type[Lambda]":
        """Have bearer tokens checked where no authorizer of API Gateway did; before `handler`."""
        cls._validator = validator
        return cls

    @classmethod
    def register(cls, path: str, method: str = "GET") -> Callable[[HandlerT], HandlerT]:
        """Answer a path of the application's own; the handler gives a dict, sent as JSON.

        It is called with the event and None, past the queue, and whoever calls it was checked by
        API Gateway alone.
        """

        def keep(handler: HandlerT) -> HandlerT:
            cls._custom[_route(method, path)] = handler
            return handler

        return keep

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Invocation]:
        """Open what an environment needs; gives what answers one request.

        Raises:
            ConfigurationError: lists every fault.
        """
        settings, validator = read_settings_for(
            Topology.REQUEST_HANDLER, validator_of(cls._validator)
        )
        async with open_backends(
            settings, SystemClock(), part=Topology.REQUEST_HANDLER
        ) as backends:
            lifecycle = Lifecycle()
            lifecycle.ready()
            process = Standalone(settings=settings, lifecycle=lifecycle, backends=backends)
            router = Router(Apps(process, validator), cls._custom)
            yield sending_spans(router, backends.tracing)


@dataclass(frozen=True, slots=True)
class _Key:
    budget: float
    is_checked: bool


class Apps:
    """The application of REST routes, for as long as an invocation lets a caller wait."""

    def __init__(self, process: Standalone, validator: AuthValidator | None) -> None:
        self._process = process
        self._validator = validator
        self._checked = CheckedByGateway(process.settings.auth.jwt.user_id_claim)
        self._apps: dict[_Key, ASGIApp] = {}

    def within(self, seconds: float, *, is_checked: bool) -> ASGIApp:
        """Give the application whose callers wait no longer than `seconds`.

        Args:
            is_checked: an authorizer of API Gateway has named the caller.
        """
        store = self._process.settings.execution.response_store
        asked = store.retry_count * store.delay
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


class Router:
    """Answers requests: the application's own paths, then the product's."""

    def __init__(self, apps: Apps, custom: Mapping[str, CustomHandler]) -> None:
        self._apps = apps
        self._handlers = custom
        self._custom = CustomRoutes(
            {route: _called(handler) for route, handler in custom.items()},
            timeout=_CUSTOM_SECONDS,
        )

    async def __call__(self, event: Event, seconds: float, /) -> Event:
        """Answer one event of API Gateway."""
        request = read_request(event)
        usable = max(0.1, seconds - _RESERVE_SECONDS)
        route = _route(request.method, request.path)
        if route in self._handlers:
            answer = await self._own(route, event)
        else:
            answer = in_routers_words(request, await self._chat(request, usable))
        return answer.event(old_format=request.old_format)

    async def _own(self, route: str, event: Event) -> HttpAnswer:
        try:
            reply = await self._custom.call(route, {"event": event})
            return _rendered(json_response(200, dict(reply or {})))
        except TurnlineError as error:
            return _rendered(error_response(error))

    async def _chat(self, request: HttpRequest, usable: float) -> HttpAnswer:
        claims = request.identity
        app = self._apps.within(usable, is_checked=claims is not None)
        if claims is not None:
            request = request.with_header(*CHECKED_HEADER)
        with nullcontext() if claims is None else checked(claims):
            # Later than the wait of any caller, so that it comes to an end of its own.
            answer = await answer_with(app, request, usable + _RESERVE_SECONDS / 2)
        return answer or _rendered(error_response(TurnDeadlineExceededError()))


def with_budget(settings: Settings, budget: float) -> Settings:
    """Give the settings with another time that callers wait."""
    execution = settings.execution
    store = execution.response_store.model_copy(update={"retry_count": 1, "delay": budget})
    return settings.model_copy(
        update={"execution": execution.model_copy(update={"response_store": store})}
    )


def _called(handler: CustomHandler) -> Callable[[dict[str, Any]], Any]:
    return lambda message: handler(message["event"], None)


def _route(method: str, path: str) -> str:
    return f"{method.upper()} /{path.strip('/')}"


def _rendered(response: Response) -> HttpAnswer:
    return HttpAnswer(
        status=response.status_code,
        headers=[(name.decode(), value.decode()) for name, value in response.raw_headers],
        body=bytes(response.body),
    )


def _say_shorter(asked: float, budget: float) -> None:
    _log.warning(
        "config.warning",
        setting="execution.response_store.retry_count",
        reason=f"callers would wait {asked:g} s, but the function's timeout leaves {budget:g} s; "
        "raise the timeout, or lower retry_count x delay",
    )
