"""What the modules make and what the code expects are the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from terraform.workspace import BACKLOG_METRIC, Workspace, resources
from turnline.backlog_metric import Fleet, Queue, measures
from turnline.backlog_metric.handler import Target
from turnline.config import load_settings

STACKS = ("containerized", "serverless")
QUEUE, FLEET = Queue(waiting=1, in_flight=1), Fleet(running=1, desired=1)


def environments(workspace: Workspace, stack: str) -> dict[str, dict[str, str]]:
    """Give the variables of every service in every run, by `run/service`."""
    return {
        f"{run}/{service}": variables
        for run, state in workspace.test(stack).states.items()
        for service, variables in state["outputs"]["environments"]["value"].items()
        if variables is not None
    }


@pytest.mark.parametrize("stack", STACKS)
def test_every_variable_is_a_setting_with_a_value_it_takes(
    stack: str, workspace: Workspace, tmp_path: Path
) -> None:
    found = environments(workspace, stack)

    assert found
    for variables in found.values():
        load_settings(environ=variables, cwd=tmp_path)


@pytest.mark.parametrize("stack", STACKS)
def test_the_application_gives_up_one_delivery_before_sqs(
    stack: str, workspace: Workspace, tmp_path: Path
) -> None:
    for name, variables in environments(workspace, stack).items():
        loaded: Any = load_settings(environ=variables, cwd=tmp_path)
        queues = loaded.settings.execution.queues
        ceilings = workspace.test(stack).states[name.partition("/")[0]]["outputs"]["queues"][
            "value"
        ]

        assert queues.input.max_receive_count < ceilings["input"]["max_receive_count"]
        assert queues.output.max_receive_count < ceilings["output"]["max_receive_count"]


def test_the_backlog_is_measured_of_the_queue_that_runners_read(
    workspace: Workspace, tmp_path: Path
) -> None:
    for state in workspace.test("containerized").states.values():
        outputs = state["outputs"]
        variables = outputs["backlog_metric"]["value"]["environment"]
        runner = outputs["environments"]["value"]["agent_runner"]

        target = Target.from_environment(variables)
        loaded = load_settings(environ={**runner, **variables}, cwd=tmp_path)

        assert target.queue_url == loaded.settings.execution.queues.input.url
        assert target.service == outputs["services"]["value"]["agent_runner"]


def test_the_package_of_the_backlog_metric_is_its_sources_without_tests(
    workspace: Workspace,
) -> None:
    [packed] = {
        tuple(state["outputs"]["backlog_metric"]["value"]["packed"])
        for state in workspace.test("containerized").states.values()
    }

    sources = {file.name for file in BACKLOG_METRIC.glob("*.py")}
    assert set(packed) == {name for name in sources if not name.endswith("_test.py")}
    assert {"__init__.py", "handler.py", "measures.py"} <= set(packed)


def test_what_scaling_tracks_is_what_is_published(workspace: Workspace) -> None:
    published = {measure.name for measure in measures(QUEUE, FLEET)}
    state = workspace.test("containerized").states["websocket"]
    [backlog] = [
        specification
        for policy in resources(state, "aws_appautoscaling_policy")
        for tracking in policy["target_tracking_scaling_policy_configuration"]
        for specification in tracking["customized_metric_specification"]
    ]
    tracked = {
        metric["metric_stat"][0]["metric"][0]["metric_name"]
        for metric in backlog["metrics"]
        if metric["metric_stat"]
    }
    alarms = {
        alarm["metric_name"]
        for alarm in resources(state, "aws_cloudwatch_metric_alarm")
        if alarm["namespace"] == "Custom/ECS"
    }

    assert tracked | alarms == published


@pytest.mark.parametrize("stack", STACKS)
def test_every_role_is_held_to_named_resources(stack: str, workspace: Workspace) -> None:
    # What AWS lets nobody narrow to a resource.
    unbounded = {
        "cloudwatch:PutMetricData",
        "ecr:GetAuthorizationToken",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    }

    for state in workspace.test(stack).states.values():
        for policy in resources(state, "aws_iam_role_policy"):
            for statement in json.loads(policy["policy"])["Statement"]:
                actions = set(statement["Action"])
                assert not any("*" in action for action in actions), policy["address"]
                assert "*" not in statement["Resource"] or actions <= unbounded, policy["address"]


def test_containers_drain_before_they_are_killed_and_cannot_write_their_image(
    workspace: Workspace, tmp_path: Path
) -> None:
    for state in workspace.test("containerized").states.values():
        tasks = resources(state, "aws_ecs_task_definition")
        assert len(tasks) == 2
        for task in tasks:
            [container] = json.loads(task["container_definitions"])
            variables = {entry["name"]: entry["value"] for entry in container["environment"]}
            grace = load_settings(environ=variables, cwd=tmp_path).settings.execution.drain_grace

            assert grace < container["stopTimeout"] <= 120
            assert container["readonlyRootFilesystem"]
            assert container["linuxParameters"]["capabilities"] == {"drop": ["ALL"]}
