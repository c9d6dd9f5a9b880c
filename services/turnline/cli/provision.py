"""`turnline provision`: what transport and stores need on their servers, made, compared or written.

Nothing here changes what is on a queue or in a table.
"""

import asyncio
from collections.abc import Sequence

import click

from turnline.config import Settings
from turnline.config.provisioning import Change, Provisioner
from turnline.errors import ConfigurationError, StoreUnavailableError, TransportUnavailableError
from turnline.hosting import EXIT_CONFIGURATION, EXIT_FAILED, read_settings
from turnline.protocol.clock import SystemClock
from turnline.store.registry import open_provisioners
from turnline.transport.registry import open_provisioner

EXIT_DIFFERS = 2


@click.command()
@click.option("--diff", is_flag=True, help="Change nothing; exit with 2 if something would change.")
@click.option(
    "--manifests",
    is_flag=True,
    help="Print the objects for the cluster's tooling; needs no server.",
)
def provision(*, diff: bool, manifests: bool) -> None:
    """Create the queues, streams and tables that the settings need; update what differs."""
    if diff and manifests:
        raise click.UsageError("--diff and --manifests are two different questions; ask one")
    try:
        provisioners = _provisioners(read_settings().settings)
        if manifests:
            click.echo("---\n".join(each.manifests() for each in provisioners), nl=False)
            return
        count = asyncio.run(_say_changes(provisioners, apply=not diff))
    except ConfigurationError as error:
        click.echo(error, err=True)
        raise SystemExit(EXIT_CONFIGURATION) from error
    except TransportUnavailableError as error:
        click.echo(f"{error.message}; is the broker up?", err=True)
        raise SystemExit(EXIT_FAILED) from error
    except StoreUnavailableError as error:
        click.echo(f"{error.message}; is the store up?", err=True)
        raise SystemExit(EXIT_FAILED) from error
    if not count:
        click.echo("nothing to do")
    elif diff:
        raise SystemExit(EXIT_DIFFERS)


def _provisioners(settings: Settings) -> Sequence[Provisioner]:
    clock = SystemClock()
    transport = open_provisioner(settings, clock)
    found = [*([] if transport is None else [transport]), *open_provisioners(settings, clock)]
    if not found:
        kinds = (
            settings.execution.queues.type,
            settings.execution.response_store.type,
            settings.session.type,
        )
        raise ConfigurationError(
            [
                f"execution.queues.type: {kinds[0]} needs nothing made, nor do stores of type "
                f"{kinds[1]} and {kinds[2]}; there is nothing to provision"
            ]
        )
    return found


async def _say_changes(provisioners: Sequence[Provisioner], *, apply: bool) -> int:
    """Make or compare one after the other, and say what was found; give how much that is.

    Raises:
        ConfigurationError: lists all that could not be done; the rest was done.
    """
    count = 0
    faults: list[str] = []
    for provisioner in provisioners:
        try:
            async with provisioner:
                changes = await (provisioner.apply() if apply else provisioner.plan())
        except ConfigurationError as error:
            faults += error.faults
            continue
        count += len(changes)
        for change in changes:
            click.echo(_line(change))
    if faults:
        raise ConfigurationError(faults)
    return count


def _line(change: Change) -> str:
    if change.missing:
        return f"+ {change.kind} {change.name}"
    return f"~ {change.kind} {change.name}: {'; '.join(change.details)}"
