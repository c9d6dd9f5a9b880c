"""Adapters chosen by a setting, loaded only then."""

import importlib
from collections.abc import Mapping
from types import ModuleType


def load_adapter(modules: Mapping[str, str], name: str) -> ModuleType | None:
    """Import the adapter of a name; None if this installation lacks it or a library it needs.

    Args:
        modules: name -> dotted module.

    Raises:
        ImportError: the adapter is here and a room of Turnline it imports is not, which is a fault
            of the package.
    """
    module = modules.get(name)
    if module is None:
        return None
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing == module or not missing.startswith("turnline."):
            return None
        raise
