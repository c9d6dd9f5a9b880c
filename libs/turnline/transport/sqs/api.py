"""The calls on SQS that this room makes, and what their errors mean to the port.

Everything is bounded; nothing is sent twice.
"""

import re
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from turnline.awssdk import AwsError, AwsFault, AwsOptions, call, open_client
from turnline.errors import (
    FencedError,
    PayloadTooLargeError,
    TransportUnavailableError,
    TurnlineError,
)
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.sqs.options import MOST_BYTES
from turnline.transport.sqs.wire import Outgoing

if TYPE_CHECKING:
    from types_aiobotocore_sqs import literals  # pants: no-infer-dep
    from types_aiobotocore_sqs.client import SQSClient  # pants: no-infer-dep

_log = get_logger("transport")
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

# A delivery that is somebody else's by now, in the words of AWS and of ElasticMQ.
_LATE = frozenset({"ReceiptHandleIsInvalid", "MessageNotInflight"})
_LATE_TEXT = re.compile(r"receipt handle|beyond the limit|visibility timeout", re.IGNORECASE)
_TOO_LARGE = re.compile(r"must be shorter than (\d+) bytes|MessageTooLong()")
_BLOCKED_SECONDS = 5.0
_AWAY = frozenset({AwsFault.UNAVAILABLE, AwsFault.DENIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message as SQS gave it; see `held.Held` for the fields.

    Attributes:
        sequence: grows with each message sent.
    """

    id: str
    receipt: str
    group: str
    body: str
    attributes: Mapping[str, str]
    received: int
    sent_at: float
    sequence: int


class SqsApi:
    """Calls over one client; `open` it first.

    Args:
        seconds: to wait for the answer to one call.
    """

    def __init__(self, options: AwsOptions, clock: Clock, *, seconds: float) -> None:
        self._options = options
        self._clock = clock
        self._away_since: float | None = None
        self._seconds = seconds
        self._parts = AsyncExitStack()
        self._client: SQSClient | None = None

    async def open(self) -> None:
        """Make the client; nothing is sent.

        Raises:
            AwsError: no region, or a broken AWS configuration.
        """
        self._client = await self._parts.enter_async_context(open_client("sqs", self._options))

    async def close(self) -> None:
        """Send nothing any more; calls under way fail."""
        self._client = None
        await self._parts.aclose()

    async def send(self, url: str, message: Outgoing) -> str:
        """Send one message; give SQS's name of it, or of the copy that came first."""
        answer = await self._call(
            lambda sqs: sqs.send_message(
                QueueUrl=url,
                MessageBody=message.body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value}
                    for name, value in message.attributes.items()
                },
                MessageGroupId=message.group,
                MessageDeduplicationId=message.dedup_id,
            )
        )
        return str(answer["MessageId"])

    async def receive(
        self, url: str, *, most: int, wait: int, visible_after: int, attempt_id: str
    ) -> list[Received]:
        """Wait up to `wait` seconds for up to `most` messages.

        Args:
            visible_after: seconds until they come back.
            attempt_id: a call of the same id gives what an earlier one took and nobody got.
        """
        answer = await self._call(
            lambda sqs: sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=wait,
                VisibilityTimeout=visible_after,
                ReceiveRequestAttemptId=attempt_id,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=[
                    "ApproximateReceiveCount",
                    "MessageGroupId",
                    "SentTimestamp",
                    "SequenceNumber",
                ],
            ),
            seconds=wait + self._seconds,
        )
        return [_received(message) for message in answer.get("Messages", [])]

    async def delete(self, url: str, receipts: Sequence[str]) -> list[TurnlineError | None]:
        """Remove up to ten deliveries' messages; give what went wrong with each, or None."""
        if len(receipts) == 1:
            return await self._one(
                lambda sqs: sqs.delete_message(QueueUrl=url, ReceiptHandle=receipts[0])
            )
        answer = await self._call(
            lambda sqs: sqs.delete_message_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": receipt}
                    for number, receipt in enumerate(receipts)
                ],
            )
        )
        return _each(len(receipts), answer)

    async def hide(
        self, url: str, entries: Sequence[tuple[str, int]]
    ) -> list[TurnlineError | None]:
        """Have up to ten deliveries (by receipt) come back after so many seconds from now."""
        if len(entries) == 1:
            receipt, seconds = entries[0]
            return await self._one(
                lambda sqs: sqs.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=seconds
                )
            )
        answer = await self._call(
            lambda sqs: sqs.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
                    for number, (receipt, seconds) in enumerate(entries)
                ],
            )
        )
        return _each(len(entries), answer)

    async def attributes(self, url: str) -> dict[str, str]:
        """Give all attributes of a queue.

        Raises:
            AwsError: as it comes, for start-up.
        """
        answer = await self._raw(
            lambda sqs: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        )
        return {str(name): value for name, value in answer.get("Attributes", {}).items()}

    async def counts(self, url: str) -> tuple[int, int]:
        """Give (waiting, out or pausing) as SQS estimates them."""
        names: list[literals.QueueAttributeNameType] = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesDelayed",
            "ApproximateNumberOfMessagesNotVisible",
        ]
        answer = await self._call(
            lambda sqs: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)
        )
        found = answer.get("Attributes", {})
        waiting, delayed, hidden = (int(found.get(name, "0")) for name in names)
        return waiting + delayed, hidden

    async def create(self, name: str, attributes: Mapping[str, str]) -> str:
        """Create a queue; give its URL.

        Raises:
            AwsError: as it comes.
        """
        wanted = cast("dict[literals.QueueAttributeNameType, str]", dict(attributes))
        answer = await self._raw(lambda sqs: sqs.create_queue(QueueName=name, Attributes=wanted))
        return str(answer["QueueUrl"])

    async def configure(self, url: str, attributes: Mapping[str, str]) -> None:
        """Set attributes of a queue.

        Raises:
            AwsError: as it comes.
        """
        wanted = cast("dict[literals.QueueAttributeNameType, str]", dict(attributes))
        await self._raw(lambda sqs: sqs.set_queue_attributes(QueueUrl=url, Attributes=wanted))

    async def delete_queue(self, url: str) -> None:
        """Delete a queue.

        Raises:
            AwsError: as it comes.
        """
        await self._raw(lambda sqs: sqs.delete_queue(QueueUrl=url))

    async def _one(self, make: "_Make[Any]") -> list[TurnlineError | None]:
        try:
            await self._raw(make)
        except AwsError as error:
            return [port_error(error)]
        return [None]

    async def _call(self, make: "_Make[_T]", *, seconds: float | None = None) -> _T:
        try:
            return await self._raw(make, seconds=seconds)
        except AwsError as error:
            raise port_error(error) from error

    async def _raw(self, make: "_Make[_T]", *, seconds: float | None = None) -> _T:
        if self._client is None:
            raise TransportUnavailableError("The SQS transport is not open")
        try:
            answer = await call(make(self._client), seconds=seconds or self._seconds)
        except AwsError as error:
            self._note(error)
            raise
        self._note(None)
        return answer

    def _note(self, error: AwsError | None) -> None:
        """Say when SQS stops doing its part, and when it does it again."""
        now = self._clock.monotonic()
        if error is None:
            if self._away_since is not None:
                seconds = round(now - self._away_since, 3)
                self._away_since = None
                _log.info("dependency.recovered", dependency="sqs", seconds=seconds)
        elif self._away_since is None and error.fault in _AWAY:
            self._away_since = now
            reason = f"{error.code}: {error.remedy}" if error.remedy else error.code
            _log.warning("dependency.unavailable", dependency="sqs", reason=reason)


class _Make(Protocol[_T_co]):
    def __call__(self, sqs: "SQSClient") -> Coroutine[Any, Any, _T_co]: ...


def port_error(error: AwsError) -> TurnlineError:
    """Give what a failure means to whoever called: unavailable, or no longer the holder."""
    if error.fault is AwsFault.OTHER and _is_late(error.code, error.detail):
        return FencedError("SQS takes no settlement of this delivery any more")
    if error.fault is AwsFault.OTHER and (size := _TOO_LARGE.search(error.detail)):
        limit = int(size[1] or MOST_BYTES)
        return PayloadTooLargeError(f"The message is larger than {limit} bytes", limit_bytes=limit)
    if error.fault in (AwsFault.DENIED, AwsFault.MISSING):
        pause = _BLOCKED_SECONDS
    else:
        pause = error.pause or 1.0
    return TransportUnavailableError(f"SQS does not do its part ({error.code})", retry_after=pause)


def _is_late(code: str, text: str) -> bool:
    short = code.rpartition(".")[2]
    return short in _LATE or (short == "InvalidParameterValue" and bool(_LATE_TEXT.search(text)))


def _each(count: int, answer: Mapping[str, Any]) -> list[TurnlineError | None]:
    """Read the answer to a batch: what it names neither way counts as failed."""
    ends: list[TurnlineError | None] = [
        TransportUnavailableError("SQS left it out of its answer", retry_after=1.0)
    ] * count
    for entry in answer.get("Successful", []):
        ends[int(entry["Id"])] = None
    for entry in answer.get("Failed", []):
        code, text = str(entry.get("Code", "")), str(entry.get("Message", ""))
        ends[int(entry["Id"])] = port_error(AwsError(AwsFault.OTHER, code, detail=text))
    return ends


def _received(message: Mapping[str, Any]) -> Received:
    system: Mapping[str, str] = message.get("Attributes", {})
    attributes: Mapping[str, Mapping[str, str]] = message.get("MessageAttributes", {})
    return Received(
        id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        group=system.get("MessageGroupId", ""),
        body=message.get("Body", ""),
        attributes={
            name: value["StringValue"]
            for name, value in attributes.items()
            if "StringValue" in value
        },
        received=int(system.get("ApproximateReceiveCount", "1")),
        sent_at=int(system.get("SentTimestamp", "0")) / 1000.0,
        sequence=int(system.get("SequenceNumber", "0")),
    )
