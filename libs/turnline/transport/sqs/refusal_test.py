"""What calls come to when AWS refuses them, from its documented answers."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from turnline.awssdk import AwsOptions
from turnline.errors import FencedError, PayloadTooLargeError, TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.testing.servers.aws_front import Answer, AwsFront, error
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.wire import Outgoing

URL = "http://127.0.0.1/1/q.fifo"
MESSAGE = Outgoing(body="{}", attributes={}, group="g", dedup_id="d")
GONE = "The specified queue does not exist."

Call = Callable[[SqsApi], Awaitable[object]]
CALLS: dict[str, Call] = {
    "SendMessage": lambda api: api.send(URL, MESSAGE),
    "ReceiveMessage": lambda api: api.receive(
        URL, most=1, wait=0, visible_after=10, attempt_id="a"
    ),
    "GetQueueAttributes": lambda api: api.counts(URL),
}


@pytest.fixture
async def front() -> AsyncIterator[AwsFront]:
    async with AwsFront() as front:
        yield front


@pytest.fixture
async def api(front: AwsFront) -> AsyncIterator[SqsApi]:
    options = AwsOptions(region="eu-west-1", endpoint_url=front.url)
    api = SqsApi(options, SystemClock(), seconds=10.0)
    await api.open()
    yield api
    await api.close()


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(
    "answer",
    [
        error(400, "QueueDoesNotExist", GONE, query="AWS.SimpleQueueService.NonExistentQueue"),
        error(400, "QueueDoesNotExist", GONE),
        error(403, "KmsAccessDenied", "no", query="KMS.AccessDeniedException"),
    ],
    ids=["older-code", "newer-code", "key"],
)
async def test_what_only_an_operator_mends_is_tried_again_after_a_long_pause(
    front: AwsFront, api: SqsApi, operation: str, answer: Answer
) -> None:
    front.next(operation, answer)

    with pytest.raises(TransportUnavailableError) as raised:
        await CALLS[operation](api)

    assert raised.value.retry_after == 5.0


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(
    ("header", "pause"), [(("retry-after", "3"), 3.0), (("x-amz-retry-after", "1500"), 1.5)]
)
async def test_a_throttled_call_may_be_made_again_after_the_pause_that_aws_asks_for(
    front: AwsFront, api: SqsApi, operation: str, header: tuple[str, str], pause: float
) -> None:
    body = {"__type": "com.amazonaws.sqs#RequestThrottled", "message": "Rate exceeded"}
    front.next(operation, Answer(status=403, body=body, headers=(header,)))

    with pytest.raises(TransportUnavailableError) as raised:
        await CALLS[operation](api)

    assert raised.value.retry_after == pause


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "OverLimit", "Too many messages in flight", query="OverLimit"),
        error(400, "KmsThrottled", "Rate exceeded", query="KMS.ThrottlingException"),
        error(503, "ServiceUnavailable"),
    ],
    ids=["in-flight", "key-throttled", "unavailable"],
)
async def test_what_passes_by_itself_may_be_tried_again_after_a_second(
    front: AwsFront, api: SqsApi, answer: Answer
) -> None:
    front.next("ReceiveMessage", answer)

    with pytest.raises(TransportUnavailableError) as raised:
        await CALLS["ReceiveMessage"](api)

    assert raised.value.retry_after == 1.0


async def test_a_message_that_sqs_finds_too_large_is_told_with_the_limit(
    front: AwsFront, api: SqsApi
) -> None:
    text = "One or more parameters are invalid. Reason: Message must be shorter than 262144 bytes."
    front.next("SendMessage", error(400, "InvalidParameterValue", text))

    with pytest.raises(PayloadTooLargeError) as raised:
        await api.send(URL, MESSAGE)

    assert "262144" in raised.value.message


async def test_a_batch_that_fails_in_part_says_of_each_entry_what_became_of_it(
    front: AwsFront, api: SqsApi
) -> None:
    failed = [
        {"Id": "1", "SenderFault": True, "Code": "ReceiptHandleIsInvalid", "Message": "no"},
        {"Id": "2", "SenderFault": False, "Code": "InternalError", "Message": "again"},
    ]
    front.always("DeleteMessageBatch", Answer(body={"Successful": [{"Id": "0"}], "Failed": failed}))
    front.always(
        "ChangeMessageVisibilityBatch", Answer(body={"Successful": [{"Id": "0"}], "Failed": failed})
    )

    deleted = await api.delete(URL, ["a", "b", "c", "d"])
    hidden = await api.hide(URL, [("a", 0), ("b", 0), ("c", 0), ("d", 0)])

    for ends in (deleted, hidden):
        kinds = [type(end) for end in ends]
        # The last one is in neither list.
        assert kinds == [
            type(None),
            FencedError,
            TransportUnavailableError,
            TransportUnavailableError,
        ]
