"""The account that tests show to emulators of AWS: none, whatever this machine has."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest

# An emulator takes any; a client without any asks its machine for some.
CREDENTIALS: Mapping[str, str] = MappingProxyType(
    {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests"}
)

_FORGOTTEN = ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN")
_FILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")


@contextmanager
def no_account() -> Iterator[None]:
    """Have clients of this process show `CREDENTIALS`, and know no region, for the block."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _FORGOTTEN:
            patch.delenv(name, raising=False)
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        for name in _FILES:
            patch.setenv(name, "/nonexistent")
        yield
