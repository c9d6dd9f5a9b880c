"""An event source mapping for tests: polls a FIFO queue and hands its messages to a function.

Does what Lambda documents of `ReportBatchItemFailures`: what the function does not name is removed,
what it names stays until its visibility is over, an answer that names what was not in the batch or
an error of the function leaves everything.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from botocore.exceptions import ClientError  # pants: no-infer-dep

from turnline.awssdk import AwsOptions, open_client

_POLL_SECONDS = 1
_KEPT = 1000
_REGION = "eu-west-1"

Invoke = Callable[[Mapping[str, Any]], Awaitable[Any]]


class EventSource:
    """One mapping; run it as a task.

    Args:
        endpoint: of SQS.
        invoke: calls the function.
        batch_size: messages of one invocation at most.
        concurrency: invocations at once.

    Attributes:
        events: what was handed over, in order; here as below, the last thousand.
        failed: `messageId`s that stayed, by invocation that answered.
        broken: what invocations raised.
    """

    def __init__(
        self,
        queue_url: str,
        *,
        endpoint: str,
        invoke: Invoke,
        batch_size: int = 1,
        concurrency: int = 2,
    ) -> None:
        self._url = queue_url
        self._options = AwsOptions(region=_REGION, endpoint_url=endpoint, request_seconds=30.0)
        self._invoke = invoke
        self._batch_size = batch_size
        self._concurrency = concurrency
        self.events: deque[Mapping[str, Any]] = deque(maxlen=_KEPT)
        self.failed: deque[list[str]] = deque(maxlen=_KEPT)
        self.broken: deque[Exception] = deque(maxlen=_KEPT)

    @asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Poll for the length of the block, which ends with it when SQS fails."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.run())
            yield
            task.cancel()

    async def run(self) -> None:
        """Poll until cancelled."""
        async with open_client("sqs", self._options) as sqs, asyncio.TaskGroup() as tasks:
            for _ in range(self._concurrency):
                tasks.create_task(self._poll(sqs))

    async def _poll(self, sqs: Any) -> None:  # noqa: ANN401 - a client of the SDK
        while True:
            answer = await sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=self._batch_size,
                WaitTimeSeconds=_POLL_SECONDS,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            )
            if messages := answer.get("Messages"):
                await self._hand_over(sqs, messages)

    async def _hand_over(self, sqs: Any, messages: list[Any]) -> None:  # noqa: ANN401 - see above
        name = self._url.rpartition("/")[2]
        event = {"Records": [record_of(message, queue=name) for message in messages]}
        self.events.append(event)
        try:
            answer = await self._invoke(event)
        except Exception as error:  # noqa: BLE001 - whatever ends a function
            self.broken.append(error)
            return
        ids = {message["MessageId"] for message in messages}
        failed = failures_in(answer, ids)
        self.failed.append(sorted(failed))
        for message in messages:
            if message["MessageId"] not in failed:
                # The function may have removed it.
                with suppress(ClientError):
                    await sqs.delete_message(
                        QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"]
                    )


def failures_in(answer: object, ids: set[str]) -> set[str]:
    """Read which messages failed; all of them where the answer makes no sense."""
    if answer is None or answer == {}:
        return set()
    try:
        named = {entry["itemIdentifier"] for entry in answer["batchItemFailures"]}  # type: ignore[index] # any JSON
    except (KeyError, TypeError):
        return ids
    return named if named <= ids else ids


def record_of(message: Mapping[str, Any], *, queue: str) -> dict[str, Any]:
    """Give a message as it stands in an event."""
    attributes = {
        name: {
            "stringValue": value.get("StringValue"),
            "stringListValues": [],
            "binaryListValues": [],
            "dataType": value["DataType"],
        }
        for name, value in (message.get("MessageAttributes") or {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes") or {}),
        "messageAttributes": attributes,
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{_REGION}:000000000000:{queue}",
        "awsRegion": _REGION,
    }
