"""`turnline config`: the settings in force, each with where it came from; secrets stay hidden."""

import json

import click

from turnline.config import describe, effective_yaml, json_schema
from turnline.errors import ConfigurationError
from turnline.hosting import EXIT_CONFIGURATION, read_settings


@click.command()
@click.option("--schema", is_flag=True, help="Print the JSON Schema of config.yaml instead.")
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the settings as YAML.")
def config(*, schema: bool, as_yaml: bool) -> None:
    """Print the effective settings and where each value came from."""
    if schema:
        click.echo(json.dumps(json_schema(), indent=2))
        return
    try:
        loaded = read_settings()
    except ConfigurationError as error:
        click.echo(error, err=True)
        raise SystemExit(EXIT_CONFIGURATION) from error
    if as_yaml:
        click.echo(effective_yaml(loaded), nl=False)
        return
    rows = describe(loaded)
    key_width = max(len(row.key) for row in rows)
    value_width = min(40, max(len(str(row.value)) for row in rows))
    for row in rows:
        click.echo(f"{row.key:{key_width}}  {row.value!s:{value_width}}  {row.origin}")
