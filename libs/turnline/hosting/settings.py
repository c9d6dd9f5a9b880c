"""The settings of this process: read once, before anything else, and checked against its part.

The only place besides `turnline.config` that touches the environment.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from turnline.config import (
    Loaded,
    Settings,
    Topology,
    load_settings,
    topology_faults,
    topology_warnings,
)
from turnline.errors import ConfigurationError
from turnline.telemetry import configure_logging, get_logger

_log = get_logger("hosting")


def read_settings(
    *, defaults: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
) -> Loaded:
    """Read the settings from the environment and the working directory.

    Args:
        defaults: `AK_` variables for those the environment does not have.
        overrides: `AK_` variables that outrank the environment's.

    Raises:
        ConfigurationError: lists every fault.
    """
    # An empty variable counts as unset, and case does not matter: as everywhere in `config`.
    given = {name: value for name, value in os.environ.items() if value}
    environ = _over(_over(defaults or {}, given), overrides or {})
    return load_settings(environ=environ, cwd=Path.cwd())


def _over(lower: Mapping[str, str], upper: Mapping[str, str]) -> dict[str, str]:
    names = {name.upper() for name in upper}
    kept = {name: value for name, value in lower.items() if name.upper() not in names}
    return {**kept, **upper}


def load(
    *, defaults: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
) -> Loaded:
    """Read the settings as `read_settings` does, and have the logs written as they say.

    Raises:
        ConfigurationError: lists every fault.
    """
    loaded = read_settings(defaults=defaults, overrides=overrides)
    logging = loaded.settings.logging
    configure_logging(
        logging.ak.level or "info",
        logging.format,
        library_level=logging.system.level or "warning",
    )
    return loaded


def start(
    *, defaults: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
) -> Settings:
    """Do what `load` does and give the settings alone."""
    return load(defaults=defaults, overrides=overrides).settings


def check_topology(settings: Settings, topology: Topology) -> None:
    """Refuse settings this part cannot work with; log what is likely not meant.

    Raises:
        ConfigurationError: lists every fault, each with its fix.
    """
    if faults := topology_faults(settings, topology=topology):
        raise ConfigurationError(faults)
    for warning in topology_warnings(settings, topology=topology):
        _log.warning("config.warning", setting=warning.setting, reason=warning.reason)
    _log.info(
        "process.starting",
        topology=topology.value,
        transport=settings.execution.queues.type,
        mode=settings.execution.mode,
    )
