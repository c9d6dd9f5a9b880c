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
        "gateway": "turnline.gateway.main:main",
        "push-endpoint": "turnline.push_endpoint.main:main",
        "request-handler": "turnline.request_handler.main:main",
        "responder": "turnline.responder.main:main",
        "runner": "turnline.pipeline:AgentRunner.run",
        "scaler": "turnline.scaler.main:main",
    }
)
RUN_AGENTS = ("all", "runner")


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
    elif service in RUN_AGENTS:
        raise click.UsageError(f"{service} runs agents; name their file with --agents")
    pkgutil.resolve_name(SERVICES[service])()
