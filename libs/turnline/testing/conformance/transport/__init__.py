"""The suite that defines a transport; see `libs/turnline/transport/README.md` for how to use it."""

from turnline.testing.conformance.transport.harness import (
    DEFAULT_BOUNDS,
    Bounds,
    Time,
    TransportHarness,
)
from turnline.testing.conformance.transport.suite import (
    TransportConformance,
    check_differences,
)
from turnline.testing.conformance.transport.topic import DeclaredDifferenceWarning

__all__ = [
    "DEFAULT_BOUNDS",
    "Bounds",
    "DeclaredDifferenceWarning",
    "Time",
    "TransportConformance",
    "TransportHarness",
    "check_differences",
]
