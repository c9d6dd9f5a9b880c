"""`turnline provision` against a real server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from turnline.cli.main import main
from turnline.testing.servers.nats import NatsServer

NOBODY = "nats://127.0.0.1:1"


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    server = NatsServer()
    asyncio.run(server.start())
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AK_EXECUTION__QUEUES__TYPE", "nats")


@pytest.fixture
def streams(
    server: NatsServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Names of this test alone."""
    name = str(request.node.name).upper()[-40:]
    monkeypatch.setenv("AK_EXECUTION__QUEUES__NATS__URL", server.url)
    for queue in ("INPUT", "OUTPUT"):
        monkeypatch.setenv(f"AK_EXECUTION__QUEUES__NATS__{queue}_STREAM", f"{name}_{queue}")
        monkeypatch.setenv(f"AK_EXECUTION__QUEUES__NATS__{queue}_SUBJECT_PREFIX", f"{name}.{queue}")
    return name


def _provision(*options: str) -> Result:
    return CliRunner().invoke(main, ["provision", *options])


def test_a_difference_is_told_and_nothing_is_made(streams: str) -> None:
    first, second = _provision("--diff"), _provision("--diff")

    assert first.exit_code == second.exit_code == 2
    assert f"+ stream {streams}_INPUT\n" in first.output
    assert first.output == second.output


def test_what_is_missing_is_made_once(streams: str) -> None:
    made, again, diff = _provision(), _provision(), _provision("--diff")

    assert f"+ stream {streams}_INPUT\n" in made.output
    assert (again.exit_code, again.output) == (0, "nothing to do\n")
    assert (diff.exit_code, diff.output) == (0, "nothing to do\n")


def test_what_differs_is_updated_and_said(streams: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _provision()
    monkeypatch.setenv("AK_EXECUTION__QUEUES__NATS__MAX_MESSAGES", "4321")

    updated = _provision()

    assert updated.exit_code == 0
    assert f"~ stream {streams}_INPUT: max_msgs is 10000, wanted 4321\n" in updated.output
    assert _provision("--diff").output == "nothing to do\n"


def test_manifests_need_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AK_EXECUTION__QUEUES__NATS__URL", NOBODY)

    result = _provision("--manifests")

    kinds = {(document["apiVersion"], document["kind"]) for document in _documents(result)}
    assert kinds == {
        ("jetstream.nats.io/v1beta2", "Stream"),
        ("jetstream.nats.io/v1beta2", "Consumer"),
    }


def test_a_broker_that_is_away_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AK_EXECUTION__QUEUES__NATS__URL", NOBODY)

    result = _provision()

    assert result.exit_code == 1
    assert "is the broker up?" in result.output
    assert "Traceback" not in result.output


def test_a_transport_that_needs_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AK_EXECUTION__QUEUES__TYPE", "in_memory")

    result = _provision()

    assert result.exit_code == 78
    assert "nothing to provision" in result.output


def test_two_questions_at_once_are_refused() -> None:
    assert _provision("--diff", "--manifests").exit_code == 2


def _documents(result: Result) -> list[dict[str, str]]:
    return [document for document in yaml.safe_load_all(result.output) if document]
