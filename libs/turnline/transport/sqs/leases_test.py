"""Leases over a server that gives AWS's documented answers, with a clock moved by hand."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from turnline.errors import FencedError, TransportUnavailableError
from turnline.testing.clock import FakeClock
from turnline.testing.servers.aws_front import Answer, AwsFront, error
from turnline.transport.background import Background
from turnline.transport.sqs.api import Received, SqsApi
from turnline.transport.sqs.books import Books
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.leases import Leases
from turnline.transport.sqs.options import QueueOptions, SqsOptions

HOUR = 3600.0
EXPIRED = error(
    400,
    "InvalidParameterValueException",
    "Value AQEB for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
    query="InvalidParameterValue",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Leases of ten seconds, and what answers them."""

    front: AwsFront
    clock: FakeClock
    leases: Leases

    def hold(self, name: str = "m", received: int = 1) -> Held:
        """Hold a message that just came."""
        return self.leases.hold(
            Received(
                id=name,
                receipt=f"receipt-{name}",
                group="g",
                body="{}",
                attributes={},
                received=received,
                sent_at=self.clock.time(),
                sequence=1,
            )
        )


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with AwsFront() as front, asyncio.TaskGroup() as tasks:
        front.always("ChangeMessageVisibility", Answer())
        front.always("DeleteMessage", Answer())
        clock, background = FakeClock(), Background()
        background.open(tasks)
        url = f"{front.url}/1/q.fifo"
        queue = QueueOptions(name="input", url=url)
        options = SqsOptions(input=queue, output=queue, region="eu-west-1", endpoint_url=front.url)
        api = SqsApi(options.aws, clock, seconds=5.0)
        await api.open()
        books = Books(
            None,
            queue=url,
            max_per_group=0,
            window=1.0,
            patience=1.0,
            lease_seconds=10,
            clock=clock,
        )
        leases = Leases(
            api=api, url=url, seconds=10, books=books, background=background, clock=clock
        )
        yield Rig(front=front, clock=clock, leases=leases)
        await background.close(1.0)
        await api.close()


async def test_one_failed_renewal_costs_no_lease(rig: Rig) -> None:
    held = rig.hold()
    rig.front.next("ChangeMessageVisibility", error(500, "InternalError"))

    await rig.clock.advance(3.0)
    with pytest.raises(TransportUnavailableError):
        await rig.leases.renew(held)
    await rig.clock.advance(3.0)
    await rig.leases.renew(held)

    await rig.clock.advance(8.0)
    assert not rig.leases.is_over(held)


@pytest.mark.parametrize(
    "answer",
    [
        EXPIRED,
        error(400, "ReceiptHandleIsInvalid", query="ReceiptHandleIsInvalid"),
        error(400, "MessageNotInflight", query="AWS.SimpleQueueService.MessageNotInflight"),
    ],
    ids=["expired", "invalid", "not-in-flight"],
)
async def test_a_receipt_that_sqs_refuses_fences_its_holder(rig: Rig, answer: Answer) -> None:
    rig.front.always("ChangeMessageVisibility", answer)
    rig.front.always("DeleteMessage", answer)
    held = rig.hold()

    for settle in (rig.leases.renew(held), rig.leases.end(held), rig.leases.give_back(held, 1.0)):
        with pytest.raises(FencedError):
            await settle


async def test_what_is_over_by_our_clock_is_not_even_tried(rig: Rig) -> None:
    held = rig.hold()
    await rig.clock.advance(9.1)

    with pytest.raises(FencedError):
        await rig.leases.end(held)
    assert not rig.front.calls


async def test_renewals_end_with_the_twelve_hours_of_sqs(rig: Rig) -> None:
    held = rig.hold()
    held.lease_until = 13 * HOUR
    await rig.clock.advance(12 * HOUR - 5.0)

    await rig.leases.renew(held)
    (asked,) = rig.front.made("ChangeMessageVisibility")
    assert asked["VisibilityTimeout"] == 4

    held.lease_until = 13 * HOUR
    await rig.clock.advance(4.0)
    with pytest.raises(FencedError, match="12 hours"):
        await rig.leases.renew(held)


async def test_a_pause_is_whole_seconds_and_no_longer_than_sqs_allows(rig: Rig) -> None:
    await rig.leases.give_back(rig.hold("a"), 0.2)
    await rig.leases.give_back(rig.hold("b"), 24 * HOUR)
    await rig.leases.give_back(rig.hold("c"), 0.0)

    asked = [call["VisibilityTimeout"] for call in rig.front.made("ChangeMessageVisibility")]
    assert asked == [1, 43_199, 0]


async def test_renewals_at_one_time_share_calls(rig: Rig) -> None:
    def ten(first: int) -> Answer:
        return Answer(body={"Successful": [{"Id": str(number)} for number in range(first)]})

    rig.front.next("ChangeMessageVisibilityBatch", ten(10), ten(10), ten(5))
    held = [rig.hold(f"m{number}") for number in range(25)]
    await rig.clock.advance(3.0)

    async with asyncio.TaskGroup() as tasks:
        for each in held:
            tasks.create_task(rig.leases.renew(each))

    assert len(rig.front.calls) == 3


async def test_one_entry_that_fails_in_a_batch_fails_alone(rig: Rig) -> None:
    late = {"Id": "1", "SenderFault": True, "Code": "ReceiptHandleIsInvalid", "Message": "no"}
    answer = Answer(body={"Successful": [{"Id": "0"}, {"Id": "2"}], "Failed": [late]})
    rig.front.next("ChangeMessageVisibilityBatch", answer)
    held = [rig.hold(f"m{number}") for number in range(3)]

    ends = await asyncio.gather(*map(rig.leases.renew, held), return_exceptions=True)

    assert [type(end) for end in ends] == [type(None), FencedError, type(None)]


async def test_an_entry_that_sqs_does_not_answer_is_not_done(rig: Rig) -> None:
    rig.front.next("ChangeMessageVisibilityBatch", Answer(body={"Successful": [{"Id": "0"}]}))

    ends = await asyncio.gather(
        *(rig.leases.renew(rig.hold(name)) for name in "ab"), return_exceptions=True
    )

    assert [type(end) for end in ends] == [type(None), TransportUnavailableError]


async def test_deliveries_that_started_nothing_are_no_attempts(rig: Rig) -> None:
    rig.leases.unspent.note("m", 2)

    assert rig.hold(received=4).attempt == 2
    assert rig.hold(received=1).attempt == 1


async def test_on_the_last_delivery_before_sqs_gives_up_every_one_counts(rig: Rig) -> None:
    rig.leases.ceiling = 4
    rig.leases.unspent.note("m", 2)

    assert rig.hold(received=3).attempt == 1
    assert rig.hold(received=4).attempt == 4
