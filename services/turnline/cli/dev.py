"""`turnline dev FILE.py`: the whole pipeline on this machine, restarted when the file changes.

Listens on loopback.  Unless `auth.type` asks for a validator, REST is open and the WebSocket takes
any token and believes it to be the user's name, so that `turnline chat` works at once: never use it
where others can reach it.
"""

from pathlib import Path

import click
from watchfiles import PythonFilter, run_process

from turnline.agent import default_registry
from turnline.auth import AuthValidator, ValidationResult, configured_validator
from turnline.cli.agent_file import load_agents
from turnline.config import Settings, Topology
from turnline.hosting import Lifecycle, check_and_prepare, serve_process, start
from turnline.pipeline.single_process import SingleProcess, serve_single_process
from turnline.pipeline.websocket_routes import PipelineWebSocketHandler

# A restart waits for running turns this long; below the 5 s after which watchfiles kills.
RELOAD_GRACE_SECONDS = 2


class AnyToken(AuthValidator):
    """Takes every token for the name of its user; for development only."""

    def validate(self, token: str, context: object = None) -> ValidationResult:
        """Accept."""
        return ValidationResult(is_valid=True, claims={"userId": token})


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0: any free one; default api.port."
)
@click.option(
    "--reload/--no-reload",
    default=True,
    show_default=True,
    help="Restart when a Python file beside FILE changes.",
)
def dev(file: Path, port: int | None, *, reload: bool) -> None:
    """Run the agents of FILE with every client mode on http://127.0.0.1:8000."""
    path = file.resolve()
    overrides = {} if port is None else {"AK_API__PORT": str(port)}
    if not reload:
        serve_file(path, overrides)
    overrides["AK_EXECUTION__DRAIN_GRACE"] = str(RELOAD_GRACE_SECONDS)
    run_process(
        path.parent,
        target=serve_file,
        args=(path, overrides),
        watch_filter=PythonFilter(),
        callback=lambda changes: click.echo(f"reloading: {len(changes)} file(s) changed", err=True),
    )


def serve_file(path: Path, overrides: dict[str, str]) -> None:
    """Load the agents of a file and serve them until told to stop; leaves the process."""
    load_agents(path)
    serve_process(lambda lifecycle: _serve(lifecycle, overrides))


async def _serve(lifecycle: Lifecycle, overrides: dict[str, str]) -> None:
    settings = start(defaults={"AK_API__HOST": "127.0.0.1"}, overrides=overrides)
    validator = check_and_prepare(
        settings, Topology.SINGLE_PROCESS, lambda read: configured_validator(read.auth)
    )
    what = SingleProcess(
        agents=default_registry,
        rest_validator=validator,
        socket_validator=validator or AnyToken(),
        socket_routes=PipelineWebSocketHandler.routes(),
        started=lambda port: _announce(settings, port),
    )
    await serve_single_process(settings, lifecycle, what)


def _announce(settings: Settings, port: int) -> None:
    url = f"http://{settings.api.host}:{port}"
    names = ", ".join(default_registry.names())
    click.echo(f"Turnline serves {names} on {url}  (API: {url}/openapi.json)")
