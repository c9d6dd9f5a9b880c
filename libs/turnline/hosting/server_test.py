"""The server binds, serves and stops on the process's terms."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from turnline.errors import ConfigurationError
from turnline.hosting import WebOptions, WebServer

DEADLINE = 10.0


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


ROUTES: list[BaseRoute] = [Route("/hello", hello), WebSocketRoute("/ws", echo)]


@asynccontextmanager
async def served(**options: int) -> AsyncIterator[tuple[WebServer, asyncio.Event]]:
    """Serve on any free port; gives the server and the event that stops it."""
    server = WebServer(Starlette(routes=ROUTES), WebOptions(host="127.0.0.1", port=0, **options))
    stop = asyncio.Event()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run(stop))
        await server.started.wait()
        yield server, stop
        stop.set()


def socket_to(server: WebServer) -> connect:
    return connect(f"ws://127.0.0.1:{server.port}/ws")


async def test_port_0_takes_a_free_one_and_tells_it() -> None:
    async with served() as (server, _), httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{server.port}/hello")

    assert answer.text == "hello"
    assert "server" not in answer.headers


def test_a_port_in_use_is_a_fault_of_the_configuration() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ConfigurationError) as refused:
            WebServer(Starlette(), WebOptions(host="127.0.0.1", port=port))

    [fault] = refused.value.faults
    assert f"127.0.0.1:{port}" in fault
    assert "AK_API__PORT" in fault


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-host.invalid"])
def test_an_address_of_somebody_else_is_a_fault_of_the_configuration(host: str) -> None:
    with pytest.raises(ConfigurationError):
        WebServer(Starlette(), WebOptions(host=host, port=0))


async def test_it_stops_although_a_client_keeps_its_connection_alive() -> None:
    async with httpx.AsyncClient() as client:
        async with served() as (server, stop):
            url = f"http://127.0.0.1:{server.port}/hello"
            await client.get(url)
            stop.set()
        with pytest.raises(httpx.TransportError):
            await client.get(url)


async def test_it_stops_although_a_socket_is_idle_and_closes_it_with_1012() -> None:
    async with served() as (server, stop), socket_to(server) as client:
        stop.set()
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


async def test_a_frame_above_the_limit_closes_the_socket_with_1009() -> None:
    async with served(max_frame_bytes=1024) as (server, _), socket_to(server) as client:
        await client.send("x" * 1024)
        whole = await client.recv()
        await client.send("x" * 1025)
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()

    assert len(whole) == 1024
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
