"""Reading the settings of a process and setting up its logs, once, before anything else."""

import os
import sys
from pathlib import Path

from turnline.config import Settings, load_settings
from turnline.errors import ConfigurationError
from turnline.hosting import EXIT_CONFIGURATION
from turnline.telemetry import configure_logging


def start() -> Settings:
    """Load the settings and configure logging; faults are printed and end the process (78)."""
    try:
        loaded = load_settings(environ=os.environ, cwd=Path.cwd())
        settings = loaded.settings
        configure_logging(settings.logging.ak.level or "info", settings.logging.format)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        sys.exit(EXIT_CONFIGURATION)
    return settings
