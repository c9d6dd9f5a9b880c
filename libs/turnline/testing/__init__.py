"""For tests: a clock moved by hand and, in `conformance`, the suites that define each port."""

from turnline.testing.clock import FakeClock

__all__ = ["FakeClock"]
