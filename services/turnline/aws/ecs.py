"""The guide's entry points in containers: `run` blocks until the process is told to stop.

What the guide does with threads is done with asyncio consumers, so many as it says
(`no_of_consumers`: 5 on the input queue, 2 on the output queue).
"""

from collections.abc import Callable, Iterator
from typing import NoReturn

from turnline.agent import default_registry
from turnline.auth import AuthValidator
from turnline.aws import custom_routes, own_paths
from turnline.aws.checks import WEBSOCKET_MODES, is_direct, validator_of
from turnline.aws.custom_routes import HandlerT
from turnline.aws.direct_container import serve_direct
from turnline.aws.ecs_process import serve_front, serve_io, serve_output, serve_part
from turnline.aws.own_paths import HandlerT as PathHandlerT
from turnline.config import Settings, Topology
from turnline.errors import ConfigurationError
from turnline.hosting import Standalone
from turnline.runner.process import serve_runner


class ECSIOHandler:
    """The IO container: takes requests, over HTTP or a WebSocket API, and brings answers."""

    @classmethod
    def run(cls, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Serve until told to stop, then exit.

        Args:
            auth_validator: checks callers' tokens; mandatory in the WebSocket modes.  None takes
                the one the settings name (`auth.type`).
        """
        serve_part(
            Topology.IO_HANDLER, _needed_for_sockets(auth_validator), serve_io, more=_endpoint_fault
        )


class AWSRestAPI:
    """REST, for `rest_sync` and `rest_async`.

    With queues it takes requests alone; ECSOutputConsumer keeps the answers.  Without (the guide's
    direct mode) it runs the registered agents itself; register them before `run`.
    """

    @classmethod
    def run(cls, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Serve until told to stop, then exit."""

        def faults(settings: Settings) -> Iterator[str]:
            if settings.execution.mode in WEBSOCKET_MODES:
                yield (
                    f"execution.mode: is {settings.execution.mode}, but AWSRestAPI is for "
                    "rest_sync and rest_async; use AWSWebsocketAPI"
                )

        serve_part(
            Topology.REQUEST_HANDLER,
            validator_of(auth_validator),
            _serve_callers,
            more=faults,
            direct=default_registry,
        )

    @classmethod
    def register(cls, path: str, method: str = "GET") -> Callable[[PathHandlerT], PathHandlerT]:
        """Answer a path of the application's own, ECSIOHandler's too; see `own_paths.register`."""
        return own_paths.register(path, method)


class AWSWebsocketAPI:
    """Client sockets of a WebSocket API.

    With queues it takes frames alone; ECSOutputConsumer pushes the answers.  Without (the guide's
    direct mode) it runs the registered agents itself; register them before `run`.
    """

    @classmethod
    def run(cls, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Serve until told to stop, then exit."""

        def faults(settings: Settings) -> Iterator[str]:
            if settings.execution.mode not in WEBSOCKET_MODES:
                yield (
                    f"execution.mode: is {settings.execution.mode}, but AWSWebsocketAPI is for "
                    "async and stream; use AWSRestAPI"
                )
            yield from _endpoint_fault(settings)

        serve_part(
            Topology.GATEWAY,
            _needed_for_sockets(auth_validator),
            _serve_callers,
            more=faults,
            direct=default_registry,
        )

    @classmethod
    def register(cls, route: str) -> Callable[[HandlerT], HandlerT]:
        """Answer a route of the application's own; see `custom_routes.register`."""
        return custom_routes.register(route)


class ECSOutputConsumer:
    """The consumers of the output queue alone."""

    @classmethod
    def run(cls) -> NoReturn:
        """Keep and push answers until told to stop, then exit."""
        serve_part(Topology.RESPONDER, lambda _: None, serve_output, more=_endpoint_fault)


class ECSAgentRunner:
    """The agent runner's container; it streams turns that ask for it."""

    @classmethod
    def run(cls) -> NoReturn:
        """Run the registered agents until told to stop, then exit."""
        serve_part(Topology.RUNNER, lambda _: None, _serve_agents, more=cls.faults)

    @classmethod
    def faults(cls, _settings: Settings) -> Iterator[str]:
        """List what keeps this entry point from working."""
        yield from ()


class ECSStreamAgentRunner(ECSAgentRunner):
    """The runner of an installation that streams; refuses to start in any other mode."""

    @classmethod
    def faults(cls, settings: Settings) -> Iterator[str]:
        """List what keeps this entry point from working."""
        if settings.execution.mode != "stream":
            yield (
                f"execution.mode: is {settings.execution.mode}, but ECSStreamAgentRunner is for "
                "stream; set it, or use ECSAgentRunner"
            )


async def _serve_callers(process: Standalone, validator: AuthValidator | None) -> None:
    if is_direct(process.settings):
        await serve_direct(process, validator, agents=default_registry)
    else:
        await serve_front(process, validator)


async def _serve_agents(process: Standalone, _: None) -> None:
    await serve_runner(process, agents=default_registry)


def _needed_for_sockets(
    given: AuthValidator | None,
) -> Callable[[Settings], AuthValidator | None]:
    """Give what picks the validator, and refuses sockets without one."""

    def pick(settings: Settings) -> AuthValidator | None:
        validator = validator_of(given)(settings)
        if validator is None and settings.execution.mode in WEBSOCKET_MODES:
            raise ConfigurationError(
                [
                    "auth.type: is none, but no socket is let in without a validator; set jwt or "
                    "custom, or give run() an auth_validator"
                ]
            )
        return validator

    return pick


def _endpoint_fault(settings: Settings) -> Iterator[str]:
    if settings.execution.mode in WEBSOCKET_MODES and settings.websocket_api.endpoint_url is None:
        yield (
            "websocket_api.endpoint_url: is not set, but frames are posted there; set the "
            "management endpoint of the WebSocket API (https://...)"
        )
