"""The broker bench measures what it says; its figures are for people, not for a threshold."""

import pytest

from bench.brokers import latency, turnline
from bench.raw import ROUND_TRIP


@pytest.mark.parametrize("transport", sorted(ROUND_TRIP))
async def test_a_turn_over_a_broker_is_measured_beside_a_bare_message(transport: str) -> None:
    async with turnline(transport, partitions=4) as installed:
        figures = await latency(installed)

    assert figures["p50_ms"] > figures["raw_p50_ms"] > 0
