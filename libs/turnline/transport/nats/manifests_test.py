"""Resources for NATS's controller, in its own notation."""

from dataclasses import replace

import pytest
import yaml

from turnline.config import Settings
from turnline.transport.nats.manifests import manifests_of
from turnline.transport.nats.options import options_from
from turnline.transport.nats.topology import topology_of


@pytest.mark.parametrize(
    ("seconds", "written"), [(31_536_000.0, "31536000s"), (90.0, "90s"), (0.25, "0.25s")]
)
def test_a_time_is_written_without_an_exponent(seconds: float, written: str) -> None:
    options = replace(options_from(Settings()), max_age=seconds, duplicate_window=seconds)
    first = next(yaml.safe_load_all(manifests_of(topology_of(options))))

    assert (first["spec"]["maxAge"], first["spec"]["duplicateWindow"]) == (written, written)
