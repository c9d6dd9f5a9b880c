"""`turnline dev FILE.py`: the whole pipeline on this machine, restarted when the file changes.

Listens on loopback.  REST is open; the WebSocket takes any token and believes it to be the user's
name, so that `turnline chat` works at once.  Never use it where others can reach it.
"""

import importlib.util
import os
import signal
import sys
from pathlib import Path

import click
from watchfiles import PythonFilter, run_process

from turnline.agent import default_registry
from turnline.auth import AuthValidator, ValidationResult
from turnline.hosting import run_process as run_service
from turnline.pipeline.single_process import SingleProcess, serve_single_process
from turnline.pipeline.start import start
from turnline.pipeline.websocket_routes import PipelineWebSocketHandler


class AnyToken(AuthValidator):
    """Takes every token for the name of its user; for development only."""

    def validate(self, token: str, context: object = None) -> ValidationResult:
        """Accept."""
        return ValidationResult(is_valid=True, claims={"userId": token})


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), help="Port; default api.port.")
@click.option("--reload/--no-reload", default=True, show_default=True)
def dev(file: Path, port: int | None, *, reload: bool) -> None:
    """Run the agents of FILE with every client mode on http://127.0.0.1:8000."""
    os.environ.setdefault("AK_API__HOST", "127.0.0.1")
    if port is not None:
        os.environ["AK_API__PORT"] = str(port)
    path = str(file.resolve())
    if not reload:
        serve_file(path)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    run_process(
        file.resolve().parent,
        target=serve_file,
        args=(path,),
        watch_filter=PythonFilter(),
        callback=lambda changes: click.echo(f"reloading: {len(changes)} file(s) changed", err=True),
    )


def serve_file(path: str) -> None:
    """Load the agents of a file and serve them until told to stop; leaves the process."""
    load_file(Path(path))
    settings = start()
    what = SingleProcess(
        agents=default_registry,
        rest_validator=None,
        socket_validator=AnyToken(),
        socket_routes=PipelineWebSocketHandler.routes(),
    )
    click.echo(
        f"agents {', '.join(default_registry.names())} on "
        f"http://{settings.api.host}:{settings.api.port}  (docs: GET /openapi.json)",
        err=True,
    )
    sys.exit(run_service(lambda life: serve_single_process(settings, life, what)))


def load_file(path: Path) -> None:
    """Import a file by path, as the module of its name; its agents register themselves."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    if not default_registry.names():
        raise click.ClickException(f"{path.name} registers no agent; decorate one with @agent")
