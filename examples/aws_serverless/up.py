"""The pipeline on Lambda on this machine: every function under the real runtime client.

    ./pants run examples/aws_serverless:up

Two installations, as deploy/terraform/serverless/examples/complete has them: one behind an HTTP
API, one behind a WebSocket API.  Needs Java 17 or newer, and at its first run Maven, which fetches
ElasticMQ.  Prints how to talk to it in each client mode; Ctrl-C ends it all.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aws_local.command import main
from aws_local.emulators import Emulators, installation_on
from aws_local.environments import TURN_TIMEOUT, environments
from aws_local.provisioning import provision
from turnline.testing.servers.http_api import HttpApi
from turnline.testing.servers.lambda_runtime import LambdaFunction
from turnline.testing.servers.websocket_api import WebSocketApi

APP = Path(__file__).parent / "app"
# Seconds, as the Terraform modules set them.
REQUEST_TIMEOUT = 30.0
SOCKET_TIMEOUT = 29.0
RUNNER_TIMEOUT = TURN_TIMEOUT + 30.0
RESPONSE_TIMEOUT = 30.0
RUNNER_BATCH = 1
RESPONSE_BATCH = 10


@asynccontextmanager
async def start(
    emulators: Emulators, more: Mapping[str, str], folder: Path
) -> AsyncIterator[Mapping[str, str]]:
    async with (
        rest(emulators, more, folder / "rest") as http_url,
        websocket(emulators, more, folder / "websocket") as websocket_url,
    ):
        yield {"http-api": http_url, "websocket-api": websocket_url}


@asynccontextmanager
async def rest(emulators: Emulators, more: Mapping[str, str], package: Path) -> AsyncIterator[str]:
    """`execution_mode = "rest_sync"`; gives the URL of the HTTP API."""
    unpack(package)
    made = installation_on(emulators, "chat-rest", mode="rest_sync")
    env = environments(made, more=more)
    await provision(env.io_handler, package)
    async with (
        LambdaFunction(
            "app_request_handler.handler",
            package,
            environment=env.request_handler,
            timeout=REQUEST_TIMEOUT,
        ) as handler,
        LambdaFunction(
            "app_agent_runner.handler",
            package,
            environment=env.agent_runner,
            timeout=RUNNER_TIMEOUT,
        ) as runner,
        LambdaFunction(
            "app_response_handler.handler",
            package,
            environment=env.response_handler,
            timeout=RESPONSE_TIMEOUT,
        ) as responder,
        made.mapped(made.input_url, runner.invoke, batch_size=RUNNER_BATCH),
        made.mapped(made.output_url, responder.invoke, batch_size=RESPONSE_BATCH),
        HttpApi(handler.invoke) as api,
    ):
        await warm(handler, runner, responder)
        yield api.url


@asynccontextmanager
async def websocket(
    emulators: Emulators, more: Mapping[str, str], package: Path
) -> AsyncIterator[str]:
    """`execution_mode = "stream"`; gives the URL of the WebSocket API."""
    unpack(package)
    api = WebSocketApi(routes=["chat", "status"])
    made = installation_on(emulators, "chat-ws", mode="stream")
    env = environments(made, more=more, endpoint_url=api.endpoint_url)
    await provision(env.io_handler, package)
    async with (
        LambdaFunction(
            "app_ws_authorizer.handler",
            package,
            environment=env.ws_connection_handler,
            timeout=SOCKET_TIMEOUT,
        ) as authorizer,
        LambdaFunction(
            "app_ws_connection_handler.handler",
            package,
            environment=env.ws_connection_handler,
            timeout=SOCKET_TIMEOUT,
        ) as handler,
        LambdaFunction(
            "app_stream_agent_runner.handler",
            package,
            environment=env.agent_runner,
            timeout=RUNNER_TIMEOUT,
        ) as runner,
        LambdaFunction(
            "app_response_handler.handler",
            package,
            environment=env.response_handler,
            timeout=RESPONSE_TIMEOUT,
        ) as responder,
        made.mapped(made.input_url, runner.invoke, batch_size=RUNNER_BATCH),
        made.mapped(made.output_url, responder.invoke, batch_size=RESPONSE_BATCH),
        api.serving(handler.invoke, authorizer=authorizer.invoke),
    ):
        await warm(authorizer, handler, runner, responder)
        yield api.url


def unpack(package: Path) -> None:
    """Lay the application's files out as in a function's package; their logs go there too."""
    shutil.copytree(APP, package, ignore=shutil.ignore_patterns("BUILD", "__pycache__"))


async def warm(*functions: LambdaFunction) -> None:
    """Start a sandbox of each, so that the first caller meets none that is cold.

    Raises:
        FunctionError: one does not start; says why.
    """
    async with asyncio.TaskGroup() as tasks:
        for function in functions:
            tasks.create_task(function.warm())


if __name__ == "__main__":
    main(__doc__, start)
