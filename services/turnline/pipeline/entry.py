"""The guide's classes with their `run`: they read the settings, refuse what cannot work, and serve.

`run` blocks until SIGTERM or SIGINT and then leaves the process with the exit codes of
`turnline.hosting.process`.
"""

from collections.abc import Sequence
from typing import NoReturn

from starlette.routing import BaseRoute

from turnline.agent import default_registry
from turnline.auth import AuthValidator
from turnline.config import Settings, Topology
from turnline.errors import ConfigurationError
from turnline.hosting import Lifecycle, check_topology, serve_process, start
from turnline.pipeline.inline import serve_inline
from turnline.pipeline.single_process import SingleProcess, serve_single_process
from turnline.pipeline.websocket_routes import PipelineWebSocketHandler


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
            auth_validator: when given, chat routes demand a token and /ws is served.
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
    """The IO side: request handler and responder, and on in_memory the runner as well."""

    @classmethod
    def run(cls, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Serve until told to stop, then exit.

        Args:
            auth_validator: adds /ws; its claims must hold a `userId`.  Chat routes then demand a
                token too.
        """
        serve_process(lambda life: _serve_pipeline(life, auth_validator, elsewhere=_ONLY_IN_MEMORY))


class AgentRunner:
    """The runner in a process of its own; needs a broker."""

    @classmethod
    def run(cls) -> NoReturn:
        """Refuse: no transport of this installation reaches over processes."""
        serve_process(lambda _: _refuse_separate(Topology.RUNNER))


class WebSocketGateway:
    """The gateway in a process of its own; needs a broker."""

    @classmethod
    def run(cls, *, auth_validator: AuthValidator) -> NoReturn:  # noqa: ARG003 - the guide's
        """Refuse: no transport of this installation reaches over processes."""
        serve_process(lambda _: _refuse_separate(Topology.GATEWAY))


_ONLY_IN_MEMORY = "this installation has the in_memory transport only; set in_memory"


async def _serve_inline(lifecycle: Lifecycle, handlers: Sequence[RESTRequestHandler]) -> None:
    settings = start()
    routes = [route for handler in handlers for route in handler.routes()]
    await serve_inline(settings, lifecycle, routes)


async def _serve_pipeline(
    lifecycle: Lifecycle, validator: AuthValidator | None, *, elsewhere: str
) -> None:
    """Serve the whole pipeline; `elsewhere` says what to do on another transport than in_memory."""
    settings = start()
    _need_in_memory(settings, elsewhere)
    check_topology(settings, Topology.SINGLE_PROCESS)
    what = SingleProcess(
        agents=default_registry,
        rest_validator=validator,
        socket_validator=validator,
        socket_routes=PipelineWebSocketHandler.routes(),
    )
    await serve_single_process(settings, lifecycle, what)


async def _refuse_separate(topology: Topology) -> None:
    settings = start()
    check_topology(settings, topology)
    _need_in_memory(settings, _ONLY_IN_MEMORY)


def _need_in_memory(settings: Settings, fix: str) -> None:
    if settings.execution.queues.type != "in_memory":
        fault = f"execution.queues.type: is {settings.execution.queues.type}; {fix}"
        raise ConfigurationError([fault])
