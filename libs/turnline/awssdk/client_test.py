"""The client of AWS over a server that gives documented answers."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from turnline.awssdk import AwsError, AwsFault, AwsOptions, call, open_client
from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.aws_front import Answer, AwsFront, error


@pytest.fixture(autouse=True)
def credentials() -> Iterator[None]:
    with no_account():
        yield


@pytest.fixture
async def front() -> AsyncIterator[AwsFront]:
    async with AwsFront() as started:
        yield started


def _options(front: AwsFront, seconds: float = 5.0) -> AwsOptions:
    return AwsOptions(region="eu-west-1", endpoint_url=front.url, request_seconds=seconds)


async def test_a_call_gives_the_answer(front: AwsFront) -> None:
    front.next("ListQueues", Answer(body={"QueueUrls": ["http://q/1"]}))

    async with open_client("sqs", _options(front)) as sqs:
        answer = await call(sqs.list_queues(), seconds=5.0)

    assert answer["QueueUrls"] == ["http://q/1"]


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_call_is_made_once(front: AwsFront, status: int) -> None:
    front.always("ListTables", error(status, "ServiceUnavailable"))

    async with open_client("dynamodb", _options(front)) as dynamodb:
        with pytest.raises(AwsError) as raised:
            await call(dynamodb.list_tables(), seconds=5.0)

    assert raised.value.passes
    assert len(front.made("ListTables")) == 1


async def test_the_older_code_of_a_missing_queue_is_understood(front: AwsFront) -> None:
    answer = error(400, "QueueDoesNotExist", query="AWS.SimpleQueueService.NonExistentQueue")
    front.next("GetQueueUrl", answer)

    async with open_client("sqs", _options(front)) as sqs:
        with pytest.raises(AwsError) as raised:
            await call(sqs.get_queue_url(QueueName="q.fifo"), seconds=5.0)

    assert raised.value.fault is AwsFault.MISSING


async def test_a_silent_server_is_given_up_in_time(front: AwsFront) -> None:
    front.always("ListQueues", Answer(delay=60.0))

    async with open_client("sqs", _options(front, 0.3)) as sqs, asyncio.timeout(30):
        with pytest.raises(AwsError) as raised:
            await call(sqs.list_queues(), seconds=5.0)

    assert raised.value.fault is AwsFault.UNAVAILABLE


async def test_a_call_that_waits_for_a_connection_is_given_up_in_time(front: AwsFront) -> None:
    front.always("ListQueues", Answer(delay=60.0))
    options = AwsOptions(region="x-1", endpoint_url=front.url, max_connections=1)

    async with open_client("sqs", options) as sqs, asyncio.timeout(30):
        calls = (call(sqs.list_queues(), seconds=0.3) for _ in range(2))
        ends = await asyncio.gather(*calls, return_exceptions=True)

    assert [isinstance(end, AwsError) and end.passes for end in ends] == [True, True]


async def test_nobody_there_is_unavailable() -> None:
    options = AwsOptions(region="x-1", endpoint_url="http://127.0.0.1:1")

    async with open_client("sqs", options) as sqs:
        with pytest.raises(AwsError) as raised:
            await call(sqs.list_queues(), seconds=5.0)

    assert raised.value.fault is AwsFault.UNAVAILABLE


async def test_no_region_is_said_on_entering() -> None:
    with pytest.raises(AwsError) as raised:
        async with open_client("sqs", AwsOptions()):
            pass

    assert raised.value.fault is AwsFault.DENIED
    assert "AWS_REGION" in raised.value.remedy


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
async def test_the_region_is_what_the_environment_says(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "x-2")

    async with open_client("sqs", AwsOptions()) as sqs:
        assert sqs.meta.region_name == "x-2"


async def test_no_credentials_are_said_by_the_first_call(
    front: AwsFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    async with open_client("sqs", _options(front)) as sqs:
        with pytest.raises(AwsError) as raised:
            await call(sqs.list_queues(), seconds=5.0)

    assert raised.value.fault is AwsFault.DENIED
    assert not front.calls
