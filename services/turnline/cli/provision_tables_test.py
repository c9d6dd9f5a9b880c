"""`turnline provision` for stores on DynamoDB."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from turnline.cli.main import main
from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.dynamodb import DynamoDbServer, running_dynamodb
from turnline.testing.servers.elasticmq import ElasticMqServer

NOBODY = "http://127.0.0.1:1"
REPLIES, SESSION = "AK_EXECUTION__RESPONSE_STORE__", "AK_SESSION__"
TABLES = ("answers", "talks", "sockets")


@pytest.fixture(scope="module")
def server() -> Iterator[DynamoDbServer]:
    with running_dynamodb() as server:
        yield server


@pytest.fixture(autouse=True)
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with no_account():
        yield


@pytest.fixture
def tables(
    server: DynamoDbServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Settings with names of tables of this test alone; gives the names."""
    names = tuple(f"{str(request.node.name)[-40:]}-{suffix}" for suffix in TABLES)
    for prefix, name in ((REPLIES, names[0]), (SESSION, names[1])):
        monkeypatch.setenv(f"{prefix}TYPE", "dynamodb")
        monkeypatch.setenv(f"{prefix}DYNAMODB__TABLE_NAME", name)
        monkeypatch.setenv(f"{prefix}DYNAMODB__REGION", "eu-west-1")
        monkeypatch.setenv(f"{prefix}DYNAMODB__ENDPOINT_URL", server.url)
    monkeypatch.setenv(f"{SESSION}CONNECTION_STORE__TABLE_NAME", names[2])
    return names


def _provision(*options: str) -> Result:
    return CliRunner().invoke(main, ["provision", *options])


def test_tables_are_told_then_made_once(tables: tuple[str, ...]) -> None:
    told, made, again, diff = (
        _provision("--diff"),
        _provision(),
        _provision(),
        _provision("--diff"),
    )

    assert told.exit_code == 2
    assert told.output == made.output == "".join(f"+ table {name}\n" for name in tables)
    assert (again.exit_code, again.output) == (0, "nothing to do\n")
    assert (diff.exit_code, diff.output) == (0, "nothing to do\n")


def test_queues_and_tables_are_made_together(
    tables: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs = ElasticMqServer()
    asyncio.run(sqs.start())
    try:
        monkeypatch.setenv("AK_EXECUTION__QUEUES__TYPE", "sqs")
        monkeypatch.setenv("AK_EXECUTION__QUEUES__SQS__REGION", "eu-west-1")
        monkeypatch.setenv("AK_EXECUTION__QUEUES__SQS__ENDPOINT_URL", sqs.url)
        for queue in ("INPUT", "OUTPUT"):
            url = f"{sqs.url}/000000000000/{queue.lower()}.fifo"
            monkeypatch.setenv(f"AK_EXECUTION__QUEUES__{queue}__URL", url)
        made, diff, templates = _provision(), _provision("--diff"), _provision("--manifests")
    finally:
        sqs.remove()

    assert "+ queue input.fifo\n" in made.output
    assert f"+ table {tables[0]}\n" in made.output
    assert diff.output == "nothing to do\n"
    kinds = [
        {of["Type"] for of in template["Resources"].values()}
        for template in yaml.safe_load_all(templates.output)
    ]
    assert kinds == [{"AWS::SQS::Queue"}, {"AWS::DynamoDB::Table"}]


def test_a_store_that_is_away_is_no_traceback(
    tables: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{REPLIES}DYNAMODB__ENDPOINT_URL", NOBODY)

    result = _provision("--diff")

    assert tables
    assert result.exit_code == 1
    assert "is the store up?" in result.output
    assert "Traceback" not in result.output
