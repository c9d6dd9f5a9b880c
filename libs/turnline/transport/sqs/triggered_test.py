"""A batch that an event source mapping took, over a real queue."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from turnline.awssdk import open_client
from turnline.errors import FencedError
from turnline.protocol import ChatRequest, Envelope, SessionKey
from turnline.protocol.clock import SystemClock
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.event_source import record_of
from turnline.transport.sqs import SqsOptions, SqsTransport, TriggeredQueue
from turnline.transport.sqs.harness import api_of, fresh_queues
from turnline.transport.sqs.triggered import received_in
from turnline.transport.sqs.wire import Outgoing, group_of

LEASE_SECONDS = 2


class Rig:
    """A transport, and the mapping that polls its input queue."""

    def __init__(self, transport: SqsTransport, options: SqsOptions) -> None:
        self.transport = transport
        self.options = options

    async def send(self, *names: str) -> None:
        """Send requests, each named `session/request`."""
        for name in names:
            session, request = name.split("/")
            await self.transport.input.send(
                Envelope(
                    request_id=request, session_id=session, payload=ChatRequest(prompt=request)
                )
            )

    async def poll(self, *, within: float = 5.0) -> list[dict[str, Any]]:
        """Take a batch as AWS does: under the queue's own timeout, which is half a minute."""
        url = self.options.input.url
        async with open_client("sqs", self.options.aws) as sqs, asyncio.timeout(within):
            while True:
                answer = await sqs.receive_message(
                    QueueUrl=url,
                    MaxNumberOfMessages=10,
                    WaitTimeSeconds=1,
                    MessageAttributeNames=["All"],
                    AttributeNames=["All"],
                )
                if messages := answer.get("Messages"):
                    return [record_of(message, queue="in") for message in messages]

    async def batch(self) -> TriggeredQueue:
        """Take a batch, as a queue."""
        return self.transport.input.triggered(await self.poll())


@pytest.fixture
async def rig(server: ElasticMqServer) -> AsyncIterator[Rig]:
    async with fresh_queues(server.url) as fresh:
        options = replace(fresh, visibility_timeout=LEASE_SECONDS)
        async with SqsTransport(options, SystemClock()) as transport:
            yield Rig(transport, options)


async def names(batch: TriggeredQueue, count: int) -> dict[str, Any]:
    """Receive deliveries; give them by request id."""
    async with batch.consumer() as consumer, asyncio.timeout(5):
        found = [await consumer.receive() for _ in range(count)]
    return {delivery.envelope.request_id: delivery for delivery in found}


async def test_one_of_each_session_is_out_and_the_next_follows_it(rig: Rig) -> None:
    await rig.send("s/a", "s/b", "t/c")
    batch = await rig.batch()
    first = await names(batch, 2)
    await first["a"].ack()
    second = await names(batch, 1)

    assert (set(first), set(second)) == ({"a", "c"}, {"b"})
    assert not batch.over.is_set()


async def test_what_failed_stays_with_all_that_stands_behind_it(rig: Rig) -> None:
    await rig.send("s/a", "s/b", "t/c", "s/d")
    records = await rig.poll()
    batch = rig.transport.input.triggered(records)
    first = await names(batch, 2)
    await first["a"].retry(0.0)
    await first["c"].ack()

    ids = {record["body"]: record["messageId"] for record in records}
    failed = [body for body, name in ids.items() if name in batch.failures]
    assert batch.over.is_set()
    assert len(failed) == 3
    assert not any('"c"' in body for body in failed)


async def test_what_was_handed_back_comes_again_in_order(rig: Rig) -> None:
    await rig.send("s/a", "s/b")
    batch = await rig.batch()
    await (await names(batch, 1))["a"].retry(0.0)
    again = await rig.batch()
    first = await names(again, 1)

    assert first["a"].attempt == 2


async def test_what_is_done_is_gone_before_the_invocation_ends(rig: Rig) -> None:
    await rig.send("s/a")
    batch = await rig.batch()
    await (await names(batch, 1))["a"].ack()

    async with api_of(rig.options) as api:
        assert await api.counts(rig.options.input.url) == (0, 0)
    assert (batch.failures, batch.over.is_set()) == ([], True)


async def test_a_batch_whose_holder_dies_is_back_after_a_lease(rig: Rig) -> None:
    await rig.send("s/a", "s/b")
    batch = await rig.batch()
    await names(batch, 1)
    again = await rig.poll(within=LEASE_SECONDS * 4)

    assert len(again) >= 1


async def test_followers_are_kept_while_the_first_one_runs(rig: Rig) -> None:
    await rig.send("s/a", "s/b")
    batch = await rig.batch()
    tending = asyncio.create_task(batch.tend())
    held = (await names(batch, 1))["a"]
    for _ in range(4):
        await asyncio.sleep(LEASE_SECONDS / 2)  # in real leases
        await held.renew()
    await held.ack()
    follower = (await names(batch, 1))["b"]
    await follower.ack()
    tending.cancel()

    assert batch.failures == []


async def test_a_lease_that_was_lost_ends_its_group(rig: Rig) -> None:
    await rig.send("s/a", "s/b")
    batch = await rig.batch()
    held = (await names(batch, 1))["a"]
    tending = asyncio.create_task(batch.tend())
    async with asyncio.timeout(LEASE_SECONDS * 4):
        await batch.over.wait()
    tending.cancel()

    with pytest.raises(FencedError):
        await held.ack()
    assert len(batch.failures) == 2


@pytest.mark.parametrize(("time_is_up", "attempt"), [(False, 1), (True, 2)])
async def test_a_release_spends_an_attempt_only_when_time_was_up(
    rig: Rig, *, time_is_up: bool, attempt: int
) -> None:
    await rig.send("s/a")
    batch = await rig.batch()
    batch.time_is_up = time_is_up
    await (await names(batch, 1))["a"].release()
    again = await names(await rig.batch(), 1)

    assert again["a"].attempt == attempt


async def test_what_is_no_envelope_is_buried_and_holds_nobody_up(rig: Rig) -> None:
    group = group_of(SessionKey("", "s"))
    async with api_of(rig.options) as api:
        await api.send(
            rig.options.input.url,
            Outgoing(body="no json", attributes={}, group=group, dedup_id="x"),
        )
    await rig.send("s/b")
    batch = await rig.batch()
    found = await names(batch, 1)
    await found["b"].ack()

    assert batch.failures == []
    [letter] = await rig.transport.input.dead_letters.list()
    assert letter.raw == b"no json"


async def test_an_empty_batch_is_over_at_once(rig: Rig) -> None:
    assert rig.transport.input.triggered([]).over.is_set()


def test_a_record_is_read_as_the_message_it_is() -> None:
    received = received_in(
        {
            "messageId": "m",
            "receiptHandle": "r",
            "body": "{}",
            "attributes": {
                "ApproximateReceiveCount": "3",
                "MessageGroupId": "g",
                "SentTimestamp": "1500",
                "SequenceNumber": "7",
            },
            "messageAttributes": {
                "request_id": {"stringValue": "x", "dataType": "String"},
                "blob": {"binaryValue": "eA==", "dataType": "Binary"},
            },
        }
    )

    assert (received.group, received.received, received.sent_at) == ("g", 3, 1.5)
    assert received.attributes == {"request_id": "x"}


def test_a_record_of_another_service_is_refused() -> None:
    with pytest.raises(KeyError):
        received_in({"kinesis": {}})
