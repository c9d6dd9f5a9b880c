"""The variables of functions and containers: those that deploy/terraform/modules/settings sets.

Where the emulators are, and who the tokens are of, comes on top.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_local.emulators import REGION, Emulators, Installation
from turnline.testing.servers.aws_account import CREDENTIALS

# What the Terraform modules have where nothing is said.
TURN_TIMEOUT = 600
BATCH_SIZE = 1
MAX_RECEIVE_COUNT = 3
INPUT_CONSUMERS = 5
OUTPUT_CONSUMERS = 2
RETRY_COUNT = 28
RETRY_DELAY = 1
CHAT_ROUTE = "chat"
# Of containers alone; on Lambda the application's default is the lease.
LEASE = 10
DRAIN_GRACE = 20

_WEBSOCKET_MODES = ("async", "stream")

Variables = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """Variables of each service.

    Attributes:
        io_handler: of a container that does the work of both handlers.
    """

    request_handler: Variables
    ws_connection_handler: Variables
    agent_runner: Variables
    response_handler: Variables
    io_handler: Variables


def environments(
    made: Installation,
    *,
    more: Variables,
    endpoint_url: str | None = None,
    in_containers: bool = False,
) -> Environments:
    """Give the variables of an installation's services.

    Args:
        more: what the application adds, such as `AK_AUTH__...`.
        endpoint_url: the management endpoint of the WebSocket API; None: there is none.
        in_containers: on ECS, not on Lambda.
    """
    uses_websocket = made.mode in _WEBSOCKET_MODES
    common = {
        **on_this_machine(made.emulators),
        **more,
        "AK_EXECUTION__MODE": made.mode,
        "AK_EXECUTION__QUEUES__TYPE": "sqs",
        "AK_EXECUTION__TURN_TIMEOUT": str(TURN_TIMEOUT),
        **(_of_containers() if in_containers else {}),
        **_stores(made),
    }
    input_url = {"AK_EXECUTION__QUEUES__INPUT__URL": made.input_url}
    output_url = {"AK_EXECUTION__QUEUES__OUTPUT__URL": made.output_url}
    takes_input = _takes("INPUT", INPUT_CONSUMERS)
    takes_output = _takes("OUTPUT", OUTPUT_CONSUMERS)
    connections = _connections(made) if uses_websocket else {}
    pushes = {"AK_WEBSOCKET_API__ENDPOINT_URL": endpoint_url} if endpoint_url else {}
    admits = {**common, **input_url, **connections}
    answers = {**common, **output_url, **takes_output, **connections, **pushes}
    return Environments(
        request_handler=admits,
        ws_connection_handler={**admits, **pushes},
        agent_runner={**common, **input_url, **output_url, **takes_input},
        response_handler=answers,
        io_handler={**admits, **answers},
    )


def on_this_machine(emulators: Emulators) -> dict[str, str]:
    """Give what stands for AWS's own variables, and says where its emulators are."""
    return {
        **CREDENTIALS,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AK_EXECUTION__QUEUES__SQS__ENDPOINT_URL": emulators.sqs_url,
        "AK_EXECUTION__RESPONSE_STORE__DYNAMODB__ENDPOINT_URL": emulators.dynamodb_url,
        "AK_SESSION__DYNAMODB__ENDPOINT_URL": emulators.dynamodb_url,
        # No functions API is here: what is held comes with a socket's first frame.
        "AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:1",
    }


def _of_containers() -> dict[str, str]:
    return {
        "AK_EXECUTION__DRAIN_GRACE": str(DRAIN_GRACE),
        "AK_EXECUTION__QUEUES__SQS__VISIBILITY_TIMEOUT": str(LEASE),
    }


def _takes(queue: str, consumers: int) -> dict[str, str]:
    name = f"AK_EXECUTION__QUEUES__{queue}__"
    return {
        "AK_EXECUTION__QUEUES__BATCH_SIZE": str(BATCH_SIZE),
        f"{name}MAX_RECEIVE_COUNT": str(MAX_RECEIVE_COUNT),
        f"{name}NO_OF_CONSUMERS": str(consumers),
    }


def _stores(made: Installation) -> dict[str, str]:
    return {
        "AK_EXECUTION__RESPONSE_STORE__TYPE": "dynamodb",
        "AK_EXECUTION__RESPONSE_STORE__DYNAMODB__TABLE_NAME": made.responses,
        "AK_EXECUTION__RESPONSE_STORE__RETRY_COUNT": str(RETRY_COUNT),
        "AK_EXECUTION__RESPONSE_STORE__DELAY": str(RETRY_DELAY),
        "AK_SESSION__TYPE": "dynamodb",
        "AK_SESSION__DYNAMODB__TABLE_NAME": made.sessions,
    }


def _connections(made: Installation) -> dict[str, str]:
    return {
        "AK_SESSION__CONNECTION_STORE__TABLE_NAME": made.connections,
        "AK_WEBSOCKET_API__CONNECTION_TABLE": made.connections,
        "AK_WEBSOCKET_API__CHAT_ROUTE": CHAT_ROUTE,
    }
