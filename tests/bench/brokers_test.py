"""The broker bench measures what it says; its figures are for people, not for a threshold."""

from bench.brokers import latency, turnline


async def test_a_turn_over_the_brokers_is_measured_beside_a_bare_round_trip() -> None:
    async with turnline() as installed:
        figures = await latency(installed)

    assert figures["p50_ms"] > figures["raw_nats_p50_ms"] > 0
