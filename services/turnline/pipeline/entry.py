"""The guide's classes with their `run`: they read the settings, refuse what cannot work, and serve.

`run` blocks until SIGTERM or SIGINT and then leaves the process with the exit codes of
`turnline.hosting.process`.
"""

import sys
from collections.abc import Sequence
from typing import NoReturn

from starlette.routing import BaseRoute

from turnline.agent import default_registry
from turnline.auth import AuthValidator
from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.hosting import EXIT_CONFIGURATION, run_process
from turnline.pipeline.inline import serve_inline
from turnline.pipeline.single_process import SingleProcess, serve_single_process
from turnline.pipeline.start import start
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
        settings = start()
        if handlers is not None or cls is not RESTAPI:
            routes = [route for handler in handlers or () for route in handler.routes()]
            sys.exit(run_process(lambda life: serve_inline(settings, life, routes)))
        _need_in_memory(
            settings,
            "RESTAPI.run() boots the whole pipeline in one process and needs in_memory; "
            "on a broker start IOHandler.run() and AgentRunner.run()",
        )
        _serve_single_process(settings, auth_validator)


class IOHandler:
    """The IO side: request handler and responder, and on in_memory the runner as well."""

    @classmethod
    def run(cls, auth_validator: AuthValidator | None = None) -> NoReturn:
        """Serve until told to stop, then exit.

        Args:
            auth_validator: adds /ws; its claims must hold a `userId`.  Chat routes then demand a
                token too.
        """
        settings = start()
        _need_in_memory(settings, "this installation has in_memory only")
        _serve_single_process(settings, auth_validator)


class AgentRunner:
    """The runner in a process of its own; needs a broker."""

    @classmethod
    def run(cls) -> NoReturn:
        """Refuse: no transport of this installation reaches over processes."""
        _refuse_separate(start(), "agent runner")


class WebSocketGateway:
    """The gateway in a process of its own; needs a broker."""

    @classmethod
    def run(cls, *, auth_validator: AuthValidator) -> NoReturn:
        """Refuse: no transport of this installation reaches over processes."""
        _refuse_separate(start(), "WebSocket gateway")


def refuse(fault: str) -> NoReturn:
    """Print a configuration fault and leave with its exit code."""
    print(ConfigurationError([fault]), file=sys.stderr)
    sys.exit(EXIT_CONFIGURATION)


def _serve_single_process(settings: Settings, validator: AuthValidator | None) -> NoReturn:
    what = SingleProcess(
        agents=default_registry,
        rest_validator=validator,
        socket_validator=validator,
        socket_routes=PipelineWebSocketHandler.routes(),
    )
    sys.exit(run_process(lambda life: serve_single_process(settings, life, what)))


def _need_in_memory(settings: Settings, fix: str) -> None:
    if settings.execution.queues.type != "in_memory":
        refuse(f"execution.queues.type is {settings.execution.queues.type!r}: {fix}")


def _refuse_separate(settings: Settings, part: str) -> NoReturn:
    if settings.execution.queues.type == "in_memory":
        refuse(
            "execution.queues.type is 'in_memory': its queue lives inside one process, so a "
            f"separate {part} cannot share it; use IOHandler.run(), which holds every part, "
            "or choose a broker"
        )
    _need_in_memory(settings, "this installation has in_memory only")
    raise AssertionError("unreachable")
