"""The request handler as a Lambda function behind an HTTP API, a REST API or a function URL.

Without queues it runs agents itself (`callers`).
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import ClassVar

from starlette.responses import Response

from turnline.agent import default_registry
from turnline.auth import AuthValidator
from turnline.aws import own_paths
from turnline.aws.callers import RESERVE_SECONDS, Callers, QueuedCallers, open_direct_callers
from turnline.aws.checks import is_direct, part_of, read_settings_for, validator_of
from turnline.aws.environment import AtInit, Event, Invocation
from turnline.aws.http_events import HttpAnswer, HttpRequest, read_request
from turnline.aws.identities import CHECKED_HEADER, checked
from turnline.aws.never_arrived import in_routers_words
from turnline.aws.own_paths import HandlerT, OwnPaths, route_of
from turnline.aws.spans import sending_spans
from turnline.config import Settings, Topology
from turnline.errors import TurnDeadlineExceededError
from turnline.frontdoor import error_response
from turnline.hosting import Lifecycle, Standalone, open_backends
from turnline.protocol.clock import SystemClock


class Lambda:
    """The guide's REST entry point on Lambda: chat, and the application's own paths.

    In direct mode it runs the agents itself; register them before `handler` is read.

    Attributes:
        handler: what Lambda calls.  Reading it opens the queue and the stores.
    """

    handler = AtInit(lambda owner: owner.open)
    _validator: ClassVar[AuthValidator | None] = None

    @classmethod
    def set_auth_validator(cls, validator: AuthValidator) -> "type[Lambda]":
        """Have bearer tokens checked where no authorizer of API Gateway did; before `handler`."""
        cls._validator = validator
        return cls

    @classmethod
    def register(cls, path: str, method: str = "GET") -> Callable[[HandlerT], HandlerT]:
        """Answer a path of the application's own; see `own_paths.register`."""
        return own_paths.register(path, method)

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Invocation]:
        """Open what an environment needs; gives what answers one request.

        Raises:
            ConfigurationError: lists every fault.
        """
        settings, validator = read_settings_for(
            Topology.REQUEST_HANDLER,
            validator_of(cls._validator),
            more=_direct_mode_faults,
            direct=default_registry,
        )
        part = part_of(settings, Topology.REQUEST_HANDLER)
        async with open_backends(settings, SystemClock(), part=part) as backends:
            lifecycle = Lifecycle()
            lifecycle.ready()
            process = Standalone(settings=settings, lifecycle=lifecycle, backends=backends)
            async with _callers(process, validator) as callers:
                yield sending_spans(Router(callers, OwnPaths()), backends.tracing)


class Router:
    """Answers requests: the application's own paths, then the product's."""

    def __init__(self, callers: Callers, own: OwnPaths) -> None:
        self._callers = callers
        self._own = own

    async def __call__(self, event: Event, seconds: float, /) -> Event:
        """Answer one event of API Gateway."""
        request = read_request(event)
        usable = max(0.1, seconds - RESERVE_SECONDS)
        route = route_of(request.method, request.path)
        if route in self._own:
            answer = _rendered(await self._own.answer(route, event))
        else:
            answer = in_routers_words(request, await self._chat(request, usable))
        return answer.event(old_format=request.old_format)

    async def _chat(self, request: HttpRequest, usable: float) -> HttpAnswer:
        claims = request.identity
        if claims is not None:
            request = request.with_header(*CHECKED_HEADER)
        with nullcontext() if claims is None else checked(claims):
            answer = await self._callers.answer(request, usable, is_checked=claims is not None)
        return answer or _rendered(error_response(TurnDeadlineExceededError()))


def _callers(
    process: Standalone, validator: AuthValidator | None
) -> AbstractAsyncContextManager[Callers]:
    if is_direct(process.settings):
        return open_direct_callers(process, validator, agents=default_registry)
    return nullcontext(QueuedCallers(process, validator))


def _direct_mode_faults(settings: Settings) -> Iterator[str]:
    if is_direct(settings) and settings.execution.mode != "rest_sync":
        yield (
            f"execution.mode: is {settings.execution.mode}, but without queues this function "
            "answers once the turn is done; set rest_sync, use WebsocketConnectionHandler, or set "
            "execution.queues.type to sqs"
        )


def _rendered(response: Response) -> HttpAnswer:
    return HttpAnswer(
        status=response.status_code,
        headers=[(name.decode(), value.decode()) for name, value in response.raw_headers],
        body=bytes(response.body),
    )
