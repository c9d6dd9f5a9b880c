"""Loading a Python file of agents by its path, as `dev` and `serve` do."""

import importlib.util
import sys
from pathlib import Path

import click

from turnline.agent import default_registry
from turnline.errors import ConfigurationError


def load_agents(path: Path) -> None:
    """Import a file, as the module of its name; its agents register themselves.

    What lies beside the file can be imported by it.

    Raises:
        ClickException: it is no Python file, or registers no agent, or two of one name.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    if not default_registry.names():
        raise click.ClickException(f"{path.name} registers no agent; decorate one with @agent")
