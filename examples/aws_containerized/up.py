"""The pipeline in ECS's containers on this machine: each one a process.

    ./pants run examples/aws_containerized:up

Two installations: one for REST, and one behind a WebSocket API and its VPC link.  Needs Java 17 or
newer, and at its first run Maven, which fetches ElasticMQ.  Prints how to talk to it in each client
mode; Ctrl-C drains the containers and ends it all.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aws_local.command import main
from aws_local.containers import container
from aws_local.emulators import Emulators, installation_on
from aws_local.environments import Variables, environments
from aws_local.provisioning import provision
from turnline.testing.servers.vpc_link import VpcLink
from turnline.testing.servers.websocket_api import WebSocketApi

APP = Path(__file__).parent / "app"


@asynccontextmanager
async def start(
    emulators: Emulators, more: Mapping[str, str], folder: Path
) -> AsyncIterator[Mapping[str, str]]:
    async with (
        rest(emulators, more, folder) as http_url,
        websocket(emulators, more, folder) as websocket_url,
    ):
        yield {"http-api": http_url, "websocket-api": websocket_url}


@asynccontextmanager
async def rest(emulators: Emulators, more: Mapping[str, str], folder: Path) -> AsyncIterator[str]:
    """`execution_mode = "rest_sync"`; gives the URL of the IO container.

    On AWS an HTTP API and a load balancer stand before it, and hand requests on as they are.
    """
    made = installation_on(emulators, "chat-rest", mode="rest_sync")
    env = environments(made, more=more, in_containers=True)
    await provision(env.io_handler, folder)
    async with containers(
        folder / "rest",
        app_rest_service=env.io_handler,
        app_agent_runner=env.agent_runner,
    ) as urls:
        yield urls["app_rest_service"]


@asynccontextmanager
async def websocket(
    emulators: Emulators, more: Mapping[str, str], folder: Path
) -> AsyncIterator[str]:
    """`execution_mode = "stream"`; gives the URL of the WebSocket API.

    The IO container's halves are apart here; `app_rest_service` does the work of both.
    """
    api = WebSocketApi(routes=["chat", "status"])
    made = installation_on(emulators, "chat-ws", mode="stream")
    env = environments(made, more=more, endpoint_url=api.endpoint_url, in_containers=True)
    await provision(env.io_handler, folder)
    async with (
        containers(
            folder / "websocket",
            app_websocket_service=env.io_handler,
            app_output_consumer=env.io_handler,
            app_stream_agent_runner=env.agent_runner,
        ) as urls,
        VpcLink(urls["app_websocket_service"]) as link,
        api.serving(link.invoke),
    ):
        yield api.url


@asynccontextmanager
async def containers(logs: Path, **variables: Variables) -> AsyncIterator[Mapping[str, str]]:
    """Run files of the application, each with its variables; gives their URLs, by their names."""
    async with AsyncExitStack() as running:
        urls = {}
        for name, own in variables.items():
            urls[name] = await running.enter_async_context(
                container(APP / f"{name}.py", environment=own, log=logs / f"{name}.log")
            )
        yield urls


if __name__ == "__main__":
    main(__doc__, start)
