"""What a bare message costs on the same broker: sent and confirmed, received, and acked."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping

import nats
from aiobotocore.session import get_session
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from nats.js.api import ConsumerConfig, RetentionPolicy, StreamConfig

from bench.cases import percentile

ROUND_TRIPS = 300
_BODY = b"x" * 200
_WAIT_SECONDS = 10.0


async def nats_round_trip(url: str) -> float:
    """Median seconds of a publish with its confirmation, a pull, and a confirmed ack."""
    client = await nats.connect(url)
    js = client.jetstream()
    name = f"raw{uuid.uuid4().hex[:8]}"
    await js.add_stream(
        StreamConfig(name=name, subjects=[name], retention=RetentionPolicy.WORK_QUEUE)
    )
    try:
        reader = await js.pull_subscribe(name, "raw", config=ConsumerConfig(max_deliver=-1))
        seconds = []
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            await js.publish(name, _BODY)
            (message,) = await reader.fetch(1)
            await message.ack_sync()
            seconds.append(time.perf_counter() - started)
    finally:
        await js.delete_stream(name)
        await client.close()
    return percentile(seconds, 0.5)


async def kafka_round_trip(bootstrap: str) -> float:
    """Median seconds of a record with its confirmation, a poll, and a confirmed commit."""
    return await asyncio.to_thread(_kafka_round_trip, bootstrap)


def _kafka_round_trip(bootstrap: str) -> float:
    name = f"raw{uuid.uuid4().hex[:8]}"
    common: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(_WAIT_SECONDS)
    producer = Producer({**common, "linger.ms": 0, "acks": "all"})
    reader = Consumer(
        {
            **common,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
    )
    reader.subscribe([name])
    seconds = []
    try:
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            producer.produce(name, _BODY)
            producer.flush(_WAIT_SECONDS)
            message = reader.poll(_WAIT_SECONDS)
            if message is None or message.error():
                raise RuntimeError(f"no record came back: {message and message.error()}")
            reader.commit(message=message, asynchronous=False)
            seconds.append(time.perf_counter() - started)
    finally:
        reader.close()
        admin.delete_topics([name])[name].result(_WAIT_SECONDS)
    return percentile(seconds, 0.5)


async def sqs_round_trip(url: str) -> float:
    """Median seconds of a message with its confirmation, a receive, and a confirmed delete."""
    client = get_session().create_client(
        "sqs",
        region_name="eu-west-1",
        endpoint_url=url,
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )
    async with client as sqs:
        made = await sqs.create_queue(
            QueueName=f"raw{uuid.uuid4().hex[:8]}.fifo", Attributes={"FifoQueue": "true"}
        )
        queue = made["QueueUrl"]
        seconds = []
        for number in range(ROUND_TRIPS):
            started = time.perf_counter()
            await sqs.send_message(
                QueueUrl=queue,
                MessageBody=_BODY.decode(),
                MessageGroupId="raw",
                MessageDeduplicationId=str(number),
            )
            (message,) = (await sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=10))["Messages"]
            await sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            seconds.append(time.perf_counter() - started)
        await sqs.delete_queue(QueueUrl=queue)
    return percentile(seconds, 0.5)


ROUND_TRIP: Mapping[str, Callable[[str], Awaitable[float]]] = {
    "kafka": kafka_round_trip,
    "nats": nats_round_trip,
    "sqs": sqs_round_trip,
}
