"""What the settings call for on a broker or a store's server, and making it there.

Adapters implement `Provisioner`, `turnline provision` asks them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that is not as the settings want it.

    Attributes:
        kind: of object, in its server's words, such as `stream` or `table`.
        name: which one.
        missing: it is not there; False: it is, and differs.
        details: a sentence per field that differs; empty when missing.
    """

    kind: str
    name: str
    missing: bool
    details: tuple[str, ...]


class Provisioner(Protocol):
    """Makes what an adapter needs; use as an async context manager.

    For `turnline provision`; adapters that need nothing have none.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def plan(self) -> Sequence[Change]:
        """Give what is missing or differs, in the order in which to do it; empty: all is well.

        Raises:
            TransportUnavailableError, StoreUnavailableError: the server can't be reached.
        """
        ...

    async def apply(self) -> Sequence[Change]:
        """Create what is missing, update what differs; give what was done.

        Raises:
            ConfigurationError: the server refuses some of it; the rest was done.
            TransportUnavailableError, StoreUnavailableError: the server can't be reached.
        """
        ...

    def manifests(self) -> str:
        """Give the objects as text for the cluster's own tooling; needs no server."""
        ...
