"""Settings: the guide's keys and ours, read from environment, `.env` and YAML, checked once."""

from turnline.config.load import Loaded, load_settings
from turnline.config.settings import Settings

__all__ = ["Loaded", "Settings", "load_settings"]
