"""`turnline serve SERVICE`: run one service by name."""

import pkgutil
from pathlib import Path
from types import MappingProxyType

import click

from turnline.cli.agent_file import load_agents

# By name, so that a service's image needs no other service's dependencies.
SERVICES = MappingProxyType(
    {
        "all": "turnline.pipeline:IOHandler.run",
        "request-handler": "turnline.request_handler.main:main",
        "runner": "turnline.pipeline:AgentRunner.run",
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
        load_agents(agents.resolve())
    elif service != "request-handler":
        raise click.UsageError(f"{service} runs agents; name their file with --agents")
    pkgutil.resolve_name(SERVICES[service])()
