"""The guide's classes with their `run`: they read the settings, refuse what cannot work, and serve.

`run` blocks until SIGTERM or SIGINT and then leaves the process with the exit codes of
`turnline.hosting.process`.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

from starlette.routing import BaseRoute

from turnline.agent import default_registry
from turnline.auth import AuthValidator, configured_validator
from turnline.config import Settings, Topology
from turnline.errors import ConfigurationError
from turnline.gateway.main import main as run_gateway
from turnline.hosting import (
    Lifecycle,
    Standalone,
    check_and_prepare,
    open_backends,
    serve_process,
    serve_service,
    start,
)
from turnline.pipeline.inline import serve_inline
from turnline.pipeline.io_process import serve_io
from turnline.pipeline.single_process import SingleProcess, serve_single_process
from turnline.pipeline.websocket_routes import PipelineWebSocketHandler
from turnline.protocol.clock import SystemClock
from turnline.runner.process import serve_runner


class RESTRequestHandler:
    """Base of handlers for `RESTAPI.run([...])`: your routes, run inline, outside the pipeline."""

    def routes(self) -> Sequence[BaseRoute]:
        """The Starlette routes this handler serves, below `api.custom_router_prefix`."""
        raise NotImplementedError


class RESTAPI:
    """The guide's REST entry point."""

    @classmethod
    def run(
        cls,
        handlers: Sequence[RESTRequestHandler] | None = None,
        *,
        auth_validator: AuthValidator | None = None,
    ) -> NoReturn:
        """Serve until told to stop, then exit.

        Without handlers: the whole pipeline in this process (in_memory only).  With handlers, or
        on a subclass: just their routes, inline, with no queue (the guide's activation rule).

        Args:
            auth_validator: with one, chat routes demand a token and /ws is served.  None takes
                the one the settings name (`auth.type`).
        """
        if handlers is not None or cls is not RESTAPI:
            serve_process(lambda life: _serve_inline(life, handlers or ()))
        serve_process(
            lambda life: _serve_pipeline(
                life,
                auth_validator,
                elsewhere="RESTAPI.run() boots the whole pipeline in one process and needs "
                "in_memory; on a broker start IOHandler.run() and AgentRunner.run()",
            )
        )


class IOHandler:
    """The IO side: request handler and responder, and on in_memory every other part as well."""

    @classmethod
    def run(cls, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Serve until told to stop, then exit.

        Args:
            auth_validator: chat routes then demand a token; its claims must hold a `userId`.  On
                in_memory it adds /ws too, which on a broker is the gateway's.  None takes the one
                the settings name (`auth.type`).
        """
        serve_process(lambda life: _serve_io(life, auth_validator))


class AgentRunner:
    """The runner in a process of its own; needs a broker."""

    @classmethod
    def run(cls) -> NoReturn:
        """Run the registered agents until told to stop, then exit."""
        serve_service(
            Topology.RUNNER, lambda process: serve_runner(process, agents=default_registry)
        )


class WebSocketGateway:
    """The gateway in a process of its own; needs a broker."""

    @classmethod
    def run(cls, *, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Hold client sockets until told to stop, then exit.

        Args:
            auth_validator: checks the tokens of sockets; its claims must hold a `userId`.  None
                takes the one the settings name (`auth.type`).
        """
        run_gateway(auth_validator, PipelineWebSocketHandler.routes())


async def _serve_inline(lifecycle: Lifecycle, handlers: Sequence[RESTRequestHandler]) -> None:
    settings = start()
    routes = [route for handler in handlers for route in handler.routes()]
    await serve_inline(settings, lifecycle, routes)


async def _serve_pipeline(
    lifecycle: Lifecycle, validator: AuthValidator | None, *, elsewhere: str
) -> None:
    """Serve the whole pipeline; `elsewhere` says what to do on another transport than in_memory."""
    settings = start()
    transport = settings.execution.queues.type
    if transport != "in_memory":
        raise ConfigurationError([f"execution.queues.type: is {transport}; {elsewhere}"])
    await _serve_all(settings, lifecycle, validator)


async def _serve_io(lifecycle: Lifecycle, validator: AuthValidator | None) -> None:
    settings = start()
    if settings.execution.queues.type == "in_memory":
        await _serve_all(settings, lifecycle, validator)
        return
    checked = check_and_prepare(settings, Topology.IO_HANDLER, _validator_over(validator))
    async with open_backends(settings, SystemClock(), part=Topology.IO_HANDLER) as backends:
        process = Standalone(settings=settings, lifecycle=lifecycle, backends=backends)
        await serve_io(process, validator=checked)


async def _serve_all(
    settings: Settings, lifecycle: Lifecycle, validator: AuthValidator | None
) -> None:
    checked = check_and_prepare(settings, Topology.SINGLE_PROCESS, _validator_over(validator))
    what = SingleProcess(
        agents=default_registry,
        rest_validator=checked,
        socket_validator=checked,
        socket_routes=PipelineWebSocketHandler.routes(),
    )
    await serve_single_process(settings, lifecycle, what)


def _validator_over(
    given: AuthValidator | None,
) -> Callable[[Settings], AuthValidator | None]:
    """Give what picks the validator once the settings are known."""
    return lambda settings: configured_validator(settings.auth, given=given)
