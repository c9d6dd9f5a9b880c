"""What the modules make without queues starts as direct mode, and has nothing of queues."""

from pathlib import Path

import pytest

from terraform.workspace import DIRECT, DIRECT_SERVICES, Workspace, resources
from turnline.agent import AgentRegistry, Turn, agent
from turnline.aws.checks import is_direct, read_settings_for
from turnline.config import Topology, load_settings


@pytest.mark.parametrize(("stack", "run", "service"), DIRECT_SERVICES)
def test_one_service_is_there_and_it_starts_in_direct_mode(
    stack: str,
    run: str,
    service: str,
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = workspace.test(stack).states[run]["outputs"]["environments"]["value"]
    agents = AgentRegistry()

    @agent("echo", registry=agents)
    def echo(turn: Turn) -> str:
        return turn.prompt

    monkeypatch.chdir(tmp_path)
    for name, value in services[service].items():
        monkeypatch.setenv(name, value)
    settings, _ = read_settings_for(Topology.SINGLE_PROCESS, lambda _: None, direct=agents)

    assert [name for name, of in services.items() if of is not None] == [service]
    assert is_direct(settings)
    assert (settings.websocket_api.endpoint_url is not None) == (run == DIRECT)


@pytest.mark.parametrize(("stack", "run", "service"), DIRECT_SERVICES)
def test_no_queue_is_made_and_no_role_may_use_one(
    stack: str, run: str, service: str, workspace: Workspace
) -> None:
    state = workspace.test(stack).states[run]

    assert state["outputs"]["policies"]["value"][service] is not None
    for kind in ("aws_sqs_queue", "aws_lambda_event_source_mapping", "aws_cloudwatch_metric_alarm"):
        assert resources(state, kind) == []
    for policy in resources(state, "aws_iam_role_policy"):
        assert "sqs:" not in policy["policy"], policy["address"]


def test_a_function_that_runs_agents_outlives_its_turns_and_its_authorizer_knows_no_agent(
    workspace: Workspace, tmp_path: Path
) -> None:
    state = workspace.test("serverless").states[DIRECT]
    variables = state["outputs"]["environments"]["value"]["ws_connection_handler"]
    turn = load_settings(environ=variables, cwd=tmp_path).settings.execution.turn_timeout
    functions = {of["function_name"]: of for of in resources(state, "aws_lambda_function")}
    handler = functions.pop("chat-ws-connection-handler")
    [authorizer] = functions.values()

    # The function keeps 8 s of its time to say how a turn ended.
    assert turn + 8 <= handler["timeout"] <= 900
    assert authorizer["timeout"] == 29
    assert "MODEL" in handler["environment"][0]["variables"]
    assert "MODEL" not in authorizer["environment"][0]["variables"]
