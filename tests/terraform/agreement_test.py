"""What the modules make and what the code expects are the same."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from terraform.workspace import (
    BACKLOG_METRIC,
    DIRECT,
    DIRECT_RUNS,
    DIRECT_SERVICES,
    Workspace,
    resources,
)
from turnline.awssdk import AwsOptions
from turnline.backlog_metric import Fleet, Queue, measures
from turnline.backlog_metric.handler import Target
from turnline.config import load_settings
from turnline.store.dynamodb import startup as startup_module
from turnline.store.dynamodb import table as table_module
from turnline.store.dynamodb.items import EXPIRY
from turnline.store.dynamodb.manifests import manifests_of
from turnline.store.dynamodb.provision import Wanted
from turnline.store.dynamodb.schema import (
    BACKUPS,
    CONNECTIONS,
    GUARDED,
    LIFETIME,
    RESPONSES,
    SESSIONS,
    TableSchema,
    table_request,
)
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.options import QueueOptions
from turnline.transport.sqs.topology import REDRIVE, dead_wanted, work_wanted

STACKS = ("containerized", "serverless")
QUEUE, FLEET = Queue(waiting=1, in_flight=1), Fleet(running=1, desired=1)


def with_queues(workspace: Workspace, stack: str) -> dict[str, dict[str, Any]]:
    """Give the states of the runs whose stack has queues."""
    states = {
        name: of for name, of in workspace.test(stack).states.items() if name not in DIRECT_RUNS
    }
    assert states
    return states


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
    states = with_queues(workspace, stack)
    for name, variables in environments(workspace, stack).items():
        if (run := name.partition("/")[0]) in DIRECT_RUNS:
            continue
        loaded: Any = load_settings(environ=variables, cwd=tmp_path)
        queues = loaded.settings.execution.queues
        ceilings = states[run]["outputs"]["queues"]["value"]

        assert queues.input.max_receive_count < ceilings["input"]["max_receive_count"]
        assert queues.output.max_receive_count < ceilings["output"]["max_receive_count"]


def test_the_backlog_is_measured_of_the_queue_that_runners_read(
    workspace: Workspace, tmp_path: Path
) -> None:
    for state in with_queues(workspace, "containerized").values():
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
        for state in with_queues(workspace, "containerized").values()
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
    for run, state in workspace.test("containerized").states.items():
        tasks = resources(state, "aws_ecs_task_definition")
        assert len(tasks) == (1 if run in DIRECT_RUNS else 2)
        for task in tasks:
            [container] = json.loads(task["container_definitions"])
            variables = {entry["name"]: entry["value"] for entry in container["environment"]}
            grace = load_settings(environ=variables, cwd=tmp_path).settings.execution.drain_grace

            assert grace < container["stopTimeout"] <= 120
            assert container["readonlyRootFilesystem"]
            assert container["linuxParameters"]["capabilities"] == {"drop": ["ALL"]}


TABLES = {"responses": RESPONSES, "sessions": SESSIONS, "connections": CONNECTIONS}


@pytest.mark.parametrize(("table", "schema"), TABLES.items())
@pytest.mark.parametrize("stack", STACKS)
def test_a_table_has_the_keys_that_the_store_expects(
    stack: str, table: str, schema: TableSchema, workspace: Workspace
) -> None:
    made = made_table(workspace, stack, table)

    keys = {schema.partition_key, schema.sort_key, *schema.indexes.values()}
    assert (made["hash_key"], made["range_key"]) == (schema.partition_key, schema.sort_key)
    assert {of["name"]: of["type"] for of in made["attribute"]} == dict.fromkeys(keys, "S")
    assert {
        index["name"]: index["hash_key"] for index in made["global_secondary_index"]
    } == schema.indexes
    assert all(index["projection_type"] == "ALL" for index in made["global_secondary_index"])
    assert made["ttl"] == [{"attribute_name": EXPIRY, "enabled": True}]


@pytest.mark.parametrize(("table", "schema"), TABLES.items())
@pytest.mark.parametrize("stack", STACKS)
def test_a_table_is_as_provision_would_make_it_and_write_it_down(
    stack: str, table: str, schema: TableSchema, workspace: Workspace
) -> None:
    made = made_table(workspace, stack, table)
    request = {**table_request(made["name"], schema), **GUARDED}
    wanted = Wanted(setting="t", name=made["name"], schema=schema, aws=AwsOptions())
    [written] = yaml.safe_load(manifests_of([wanted]))["Resources"].values()

    sse = request.pop("SSESpecification")
    assert made["billing_mode"] == request["BillingMode"]
    assert made["deletion_protection_enabled"] == request["DeletionProtectionEnabled"]
    assert [of["enabled"] for of in made["server_side_encryption"]] == [sse["Enabled"]]
    assert [of["enabled"] for of in made["point_in_time_recovery"]] == list(BACKUPS.values())
    assert written["Properties"] == {
        **request,
        "SSESpecification": {"SSEEnabled": sse["Enabled"]},
        "PointInTimeRecoverySpecification": BACKUPS,
        "TimeToLiveSpecification": LIFETIME,
    }


def made_table(workspace: Workspace, stack: str, table: str) -> dict[str, Any]:
    """Give a table as a stack makes it."""
    state = workspace.test(stack).states["websocket"]
    [made] = [
        found
        for found in resources(state, "aws_dynamodb_table")
        if f"aws_dynamodb_table.{table}" in found["address"]
    ]
    return made


def test_the_queues_of_containers_are_as_the_transport_would_make_them(
    workspace: Workspace,
) -> None:
    state = workspace.test("containerized").states["rest"]
    queues = {queue["name"]: queue for queue in resources(state, "aws_sqs_queue")}
    for name in ("input", "output"):
        options = QueueOptions(name=name, url=f"https://sqs/1/chat-{name}.fifo")
        dead = queues[options.dead_name]
        made = queues[options.queue_name]

        work = work_wanted(options, dead["arn"])
        policy = {name: str(value) for name, value in json.loads(made["redrive_policy"]).items()}
        assert json.loads(work.pop(REDRIVE)) == policy
        assert as_made(made).items() >= work.items()
        assert as_made(dead).items() >= dead_wanted().items()


def as_made(queue: dict[str, Any]) -> dict[str, str]:
    """Give a queue's attributes as SQS has them, but for its redrive policy."""
    return {
        "FifoQueue": str(queue["fifo_queue"]).lower(),
        "MaximumMessageSize": str(queue["max_message_size"]),
        "MessageRetentionPeriod": str(queue["message_retention_seconds"]),
        "DeduplicationScope": queue["deduplication_scope"],
        "FifoThroughputLimit": queue["fifo_throughput_limit"],
    }


@pytest.mark.parametrize(
    ("stack", "run", "role", "table"),
    [
        ("containerized", "websocket", "io_handler", "responses"),
        ("containerized", "websocket", "agent_runner", "sessions"),
        *(
            (stack, run, role, table)
            for stack, run, role in DIRECT_SERVICES
            for table in TABLES
            if run == DIRECT or table != "connections"
        ),
    ],
)
def test_a_role_may_do_what_its_store_does(
    stack: str, run: str, role: str, table: str, workspace: Workspace
) -> None:
    state = workspace.test(stack).states[run]
    arn = state["outputs"]["tables"]["value"][table]["arn"]
    done = {
        "dynamodb:" + "".join(word.title() for word in call.split("_"))
        for module in (table_module, startup_module)
        for call in re.findall(r"client\.(\w+)\(", inspect.getsource(module))
    }

    # A transaction is allowed by what it consists of.
    assert done - {"dynamodb:TransactWriteItems"} <= allowed(state, role, arn)
    assert "dynamodb:Query" in done


@pytest.mark.parametrize(
    ("role", "queue", "calls"),
    [
        ("io_handler", "input", {"send", "counts"}),
        ("io_handler", "output", {"receive", "delete", "hide", "attributes", "counts"}),
        ("agent_runner", "input", {"receive", "delete", "hide", "attributes", "counts"}),
        ("agent_runner", "output", {"send", "counts"}),
    ],
)
def test_a_role_may_do_what_its_transport_does(
    role: str, queue: str, calls: set[str], workspace: Workspace
) -> None:
    state = workspace.test("containerized").states["websocket"]
    arn = state["outputs"]["queues"]["value"][queue]["arn"]
    done = {
        # A batch needs the right to its single calls.
        "sqs:" + "".join(word.title() for word in name.removesuffix("_batch").split("_"))
        for call in calls
        for name in re.findall(r"sqs\.(\w+)\(", inspect.getsource(getattr(SqsApi, call)))
    }

    assert done
    assert done <= allowed(state, role, arn)


def allowed(state: dict[str, Any], role: str, arn: str) -> set[str]:
    """Give what a role may do on one thing."""
    policy = json.loads(state["outputs"]["policies"]["value"][role])
    return {
        action
        for statement in policy["Statement"]
        if arn in statement["Resource"]
        for action in statement["Action"]
    }


def test_a_queue_limits_its_functions_and_takes_back_what_failed_alone(
    workspace: Workspace,
) -> None:
    for state in with_queues(workspace, "serverless").values():
        mappings = resources(state, "aws_lambda_event_source_mapping")
        assert len(mappings) == 2
        for mapping in mappings:
            assert mapping["scaling_config"][0]["maximum_concurrency"] >= 2
            assert mapping["function_response_types"] == ["ReportBatchItemFailures"]
        for function in resources(state, "aws_lambda_function"):
            assert function["reserved_concurrent_executions"] is None


def test_a_token_is_checked_where_a_socket_begins(workspace: Workspace) -> None:
    state = workspace.test("serverless").states["websocket"]
    [authorizer] = resources(state, "aws_apigatewayv2_authorizer")
    routes = {route["route_key"]: route for route in resources(state, "aws_apigatewayv2_route")}

    assert authorizer["identity_sources"] == ["route.request.querystring.token"]
    assert routes["$connect"]["authorization_type"] == "CUSTOM"
    assert routes["$connect"]["authorizer_id"] == authorizer["id"]
    assert set(routes) == {"$connect", "$default", "$disconnect", "chat", "status"}


@pytest.mark.parametrize("stack", STACKS)
def test_no_log_of_requests_holds_a_query_string(stack: str, workspace: Workspace) -> None:
    for state in workspace.test(stack).states.values():
        stages = resources(state, "aws_apigatewayv2_stage")
        assert stages
        for stage in stages:
            [settings] = stage["access_log_settings"]
            assert not re.search(r"querystring|\.path\b", settings["format"], re.IGNORECASE)
