"""The calls on AWS, over its own protocols: SQS, ECS and CloudWatch of an emulator."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import botocore.session  # pants: no-infer-dep
import pytest
from botocore.exceptions import ClientError  # pants: no-infer-dep

from turnline.backlog_metric import handler
from turnline.backlog_metric.handler import Client, NotCountedError
from turnline.testing.servers.aws_front import Answer, AwsFront, error
from turnline.testing.servers.process import end, free_ports

CLUSTER, SERVICE, NAMESPACE = "chat", "chat-agent-runner", "Custom/ECS"
AWS = {
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start moto as a process of its own; give its port."""
    [port] = free_ports(1)
    log = tmp_path_factory.mktemp("moto") / "log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **AWS})
    try:
        asyncio.run(until_up(port, process, log))
        yield port
    finally:
        end(process, signal.SIGTERM, within=5)


async def until_up(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Look until the server answers: it says so to nobody."""
    async with asyncio.timeout(30):
        while process.poll() is None:
            try:
                await asyncio.to_thread(urlopen, f"http://127.0.0.1:{port}/moto-api/")
            except URLError:
                await asyncio.sleep(0.05)
            else:
                return
    raise AssertionError(f"moto ended: {log}")


@pytest.fixture
def clients_of(
    emulator: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[AwsFront], None]]:
    """Point the function's own clients to a front, and CloudWatch's to the emulator."""

    def point(front: AwsFront) -> None:
        for name, value in AWS.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", front.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", f"http://127.0.0.1:{emulator}")
        monkeypatch.setenv("ECS_CLUSTER", CLUSTER)
        monkeypatch.setenv("ECS_SERVICE", SERVICE)
        monkeypatch.setenv("METRIC_NAMESPACE", NAMESPACE)
        handler.open_clients.cache_clear()

    yield point
    handler.open_clients.cache_clear()


@pytest.fixture
def aws(emulator: int) -> Iterator[Callable[[str], Client]]:
    """Clients of the emulator itself, which is empty at first."""
    url = f"http://127.0.0.1:{emulator}"
    with closing(urlopen(f"{url}/moto-api/reset", data=b"")):
        pass
    session = botocore.session.get_session()
    session.set_credentials("x", "x")
    yield lambda service: session.create_client(service, "eu-west-1", endpoint_url=url)


def queue_of(sqs: Client, monkeypatch: pytest.MonkeyPatch) -> str:
    url: str = sqs.create_queue(
        QueueName="chat-input.fifo",
        Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"},
    )["QueueUrl"]
    monkeypatch.setenv("AK_EXECUTION__QUEUES__INPUT__URL", url)
    return url


def runners(*, running: int, desired: int, status: str = "ACTIVE") -> Answer:
    service = {"status": status, "runningCount": running, "desiredCount": desired}
    return Answer(body={"services": [service], "failures": []})


def published(cloudwatch: Client) -> dict[str, dict[str, str]]:
    """What metrics there are, with their dimensions."""
    return {
        metric["MetricName"]: {d["Name"]: d["Value"] for d in metric["Dimensions"]}
        for metric in cloudwatch.list_metrics(Namespace=NAMESPACE)["Metrics"]
    }


async def invoke() -> dict[str, float]:
    """Call as Lambda does, beside the loop that serves the front."""
    return await asyncio.to_thread(handler.handle, {"source": "aws.events"}, None)


async def test_the_counts_of_the_queue_and_the_service_become_metrics(
    emulator: int,
    aws: Callable[[str], Client],
    clients_of: Callable[[AwsFront], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sqs = aws("sqs")
    url = queue_of(sqs, monkeypatch)
    for session in ("a", "b", "c", "d"):
        sqs.send_message(QueueUrl=url, MessageBody=f"hello {session}", MessageGroupId=session)
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1)

    async with AwsFront(emulator) as front:
        clients_of(front)
        front.always("DescribeServices", runners(running=2, desired=2))
        values = await invoke()

    assert values == {"BacklogPerTask": 2, "BusyShare": 0.5, "BacklogWithoutTasks": 0}
    dimensions = {"ClusterName": CLUSTER, "ServiceName": SERVICE}
    assert published(aws("cloudwatch")) == dict.fromkeys(values, dimensions)
    assert front.made("DescribeServices") == [{"cluster": CLUSTER, "services": [SERVICE]}]


async def test_the_emulator_of_ecs_is_understood_too(
    emulator: int,
    aws: Callable[[str], Client],
    clients_of: Callable[[AwsFront], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = queue_of(aws("sqs"), monkeypatch)
    aws("sqs").send_message(QueueUrl=url, MessageBody="hello", MessageGroupId="a")
    ecs = aws("ecs")
    ecs.create_cluster(clusterName=CLUSTER)
    container = {"name": "agent-runner", "image": "agent", "memory": 512}
    ecs.register_task_definition(family="agent-runner", containerDefinitions=[container])
    ecs.create_service(
        cluster=CLUSTER, serviceName=SERVICE, taskDefinition="agent-runner", desiredCount=0
    )

    async with AwsFront(emulator) as front:
        clients_of(front)
        values = await invoke()

    assert values == {"BacklogPerTask": 1, "BusyShare": 0, "BacklogWithoutTasks": 1}


@pytest.mark.parametrize(
    ("operation", "answer", "fault"),
    [
        pytest.param(
            "DescribeServices",
            error(400, "ClusterNotFoundException", "Cluster not found."),
            ClientError,
            id="no cluster",
        ),
        pytest.param(
            "DescribeServices",
            Answer(body={"services": [], "failures": [{"reason": "MISSING"}]}),
            NotCountedError,
            id="no service",
        ),
        pytest.param(
            "DescribeServices",
            runners(running=3, desired=0, status="DRAINING"),
            NotCountedError,
            id="a service that is being deleted",
        ),
        pytest.param(
            "GetQueueAttributes",
            error(400, "QueueDoesNotExist", "The specified queue does not exist."),
            ClientError,
            id="no queue",
        ),
        pytest.param(
            "GetQueueAttributes",
            Answer(body={"Attributes": {"ApproximateNumberOfMessages": "7"}}),
            NotCountedError,
            id="half of the counts",
        ),
    ],
)
async def test_what_cannot_be_counted_is_not_published(
    operation: str,
    answer: Answer,
    fault: type[Exception],
    emulator: int,
    aws: Callable[[str], Client],
    clients_of: Callable[[AwsFront], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue_of(aws("sqs"), monkeypatch)

    async with AwsFront(emulator) as front:
        clients_of(front)
        front.always("DescribeServices", runners(running=1, desired=1))
        front.always(operation, answer)
        with pytest.raises(fault):
            await invoke()

    assert published(aws("cloudwatch")) == {}


async def test_a_call_that_fails_once_is_made_again(
    emulator: int,
    aws: Callable[[str], Client],
    clients_of: Callable[[AwsFront], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue_of(aws("sqs"), monkeypatch)

    async with AwsFront(emulator) as front:
        clients_of(front)
        front.always("DescribeServices", runners(running=1, desired=1))
        front.next("DescribeServices", error(500, "ServerException"))
        await invoke()

    assert "BacklogPerTask" in published(aws("cloudwatch"))


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(KeyError, match="ECS_CLUSTER"):
        handler.Target.from_environment({"AK_EXECUTION__QUEUES__INPUT__URL": "https://sqs/q.fifo"})


def test_the_sources_that_are_deployed_need_botocore_alone(tmp_path: Path) -> None:
    here = Path(handler.__file__).parent
    package = tmp_path / "turnline" / "backlog_metric"
    package.mkdir(parents=True)
    for source in here.glob("*.py"):
        if not source.name.endswith("_test.py"):
            (package / source.name).write_bytes(source.read_bytes())
    probe = (
        "import sys; from turnline.backlog_metric.handler import handle; "
        "print(sorted(name for name in sys.modules if name.startswith('turnline')))"
    )

    answer = subprocess.run(
        [sys.executable, "-c", probe],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        text=True,
        # As at Lambda, the folder of the code comes first; botocore lies further on.
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), *botocore_path()])},
    )

    assert "turnline.backlog_metric.measures" in answer.stdout
    assert set(answer.stdout.strip()[2:-2].split("', '")) == {
        "turnline",
        "turnline.backlog_metric",
        "turnline.backlog_metric.handler",
        "turnline.backlog_metric.measures",
    }


def botocore_path() -> list[str]:
    """Give where botocore and what it needs are installed."""
    return [path for path in sys.path if "site-packages" in path]
