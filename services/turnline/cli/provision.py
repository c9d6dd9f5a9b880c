"""`turnline provision`: what the transport needs on its broker, made, compared or written down."""

import asyncio
from collections.abc import Sequence

import click

from turnline.config import Settings
from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.hosting import EXIT_CONFIGURATION, EXIT_FAILED, read_settings
from turnline.protocol.clock import SystemClock
from turnline.transport import Change, Provisioner
from turnline.transport.registry import open_provisioner

EXIT_DIFFERS = 2


@click.command()
@click.option("--diff", is_flag=True, help="Change nothing; exit with 2 if something would change.")
@click.option(
    "--manifests",
    is_flag=True,
    help="Print the objects for the cluster's tooling; needs no broker.",
)
def provision(*, diff: bool, manifests: bool) -> None:
    """Create the broker's objects that the settings call for, and update those that differ."""
    if diff and manifests:
        raise click.UsageError("--diff and --manifests are two different questions; ask one")
    try:
        provisioner = _provisioner(read_settings().settings)
        if manifests:
            click.echo(provisioner.manifests(), nl=False)
            return
        changes = asyncio.run(_changes(provisioner, apply=not diff))
    except ConfigurationError as error:
        click.echo(error, err=True)
        raise SystemExit(EXIT_CONFIGURATION) from error
    except TransportUnavailableError as error:
        click.echo(f"{error.message}; is the broker up?", err=True)
        raise SystemExit(EXIT_FAILED) from error
    for change in changes:
        click.echo(_line(change))
    if not changes:
        click.echo("nothing to do")
    elif diff:
        raise SystemExit(EXIT_DIFFERS)


def _provisioner(settings: Settings) -> Provisioner:
    provisioner = open_provisioner(settings, SystemClock())
    if provisioner is None:
        name = settings.execution.queues.type
        raise ConfigurationError(
            [f"execution.queues.type: {name} needs nothing made; there is nothing to provision"]
        )
    return provisioner


async def _changes(provisioner: Provisioner, *, apply: bool) -> Sequence[Change]:
    async with provisioner:
        return await (provisioner.apply() if apply else provisioner.plan())


def _line(change: Change) -> str:
    if change.missing:
        return f"+ {change.kind} {change.name}"
    return f"~ {change.kind} {change.name}: {'; '.join(change.details)}"
