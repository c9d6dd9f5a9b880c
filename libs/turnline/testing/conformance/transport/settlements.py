"""The ways to settle a delivery, by name, for cases that hold for each of them."""

from turnline.transport import Delivery

SETTLEMENTS = ("ack", "retry", "release", "dead_letter")


async def settle(delivery: Delivery, settlement: str) -> None:
    """Settle in the way of that name, without a pause."""
    match settlement:
        case "ack":
            await delivery.ack()
        case "retry":
            await delivery.retry(0.0)
        case "release":
            await delivery.release()
        case "dead_letter":
            await delivery.dead_letter("given up")
        case _:
            raise ValueError(settlement)
