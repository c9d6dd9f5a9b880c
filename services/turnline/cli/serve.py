"""`turnline serve SERVICE`: run one service by name."""

import importlib
from pathlib import Path
from types import MappingProxyType

import click

from turnline.cli.dev import load_file

SERVICES = MappingProxyType(
    {
        "all": "turnline.pipeline.main",
        "request-handler": "turnline.request_handler.main",
        "gateway": "turnline.gateway.main",
        "runner": "turnline.runner.main",
        "responder": "turnline.responder.main",
        "push-endpoint": "turnline.push_endpoint.main",
    }
)


@click.command()
@click.argument("service", type=click.Choice(list(SERVICES)))
@click.option(
    "--agents",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Python file that registers the agents; needed by `all` and `runner`.",
)
def serve(service: str, agents: Path | None) -> None:
    """Run SERVICE until SIGTERM; `all` is the whole pipeline in one process."""
    if agents is not None:
        load_file(agents)
    importlib.import_module(SERVICES[service]).main()
