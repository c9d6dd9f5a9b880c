"""Settings: the guide's keys and ours, read from environment, `.env` and YAML, checked once."""

from turnline.config.adapters import load_adapter
from turnline.config.describe import Described, describe, effective_yaml, json_schema
from turnline.config.load import Loaded, load_settings
from turnline.config.settings import Settings
from turnline.config.topology import SettingWarning, Topology, topology_faults, topology_warnings

__all__ = [
    "Described",
    "Loaded",
    "SettingWarning",
    "Settings",
    "Topology",
    "describe",
    "effective_yaml",
    "json_schema",
    "load_adapter",
    "load_settings",
    "topology_faults",
    "topology_warnings",
]
