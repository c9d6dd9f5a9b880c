"""The server binds, serves and stops on the process's terms."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from turnline.errors import ConfigurationError
from turnline.frontdoor import web_app
from turnline.hosting import WebOptions, WebServer

DEADLINE = 10.0
LOCAL = WebOptions(host="127.0.0.1", port=0)
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def stuck(request: Request) -> Response:
    """Stop the server, and never answer."""
    request.app.state.stop.set()
    await asyncio.Event().wait()
    raise AssertionError


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": "bare"})
    await receive()


ROUTES: list[BaseRoute] = [
    Route("/hello", hello),
    Route("/stuck", stuck),
    WebSocketRoute("/ws", echo),
]


@asynccontextmanager
async def served(options: WebOptions = LOCAL) -> AsyncIterator[tuple[WebServer, asyncio.Event]]:
    """Serve on any free port; gives the server and the event that stops it."""
    app = web_app(ROUTES)
    app.state.stop = stop = asyncio.Event()
    server = WebServer(app, options)
    server.serve_sockets("/bare", bare)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run(stop))
        await server.started.wait()
        yield server, stop
        stop.set()


def socket_to(server: WebServer, path: str = "/ws") -> connect:
    return connect(f"ws://127.0.0.1:{server.port}{path}")


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


async def test_who_is_still_not_answered_when_it_stops_is_told_to_come_back() -> None:
    async with (
        served(replace(LOCAL, close_seconds=1.0)) as (server, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.get(f"http://127.0.0.1:{server.port}/stuck")

    assert (answer.status_code, answer.json()["detail"]["code"]) == (503, "draining")


async def test_it_stops_although_a_socket_is_idle_and_closes_it_with_1012() -> None:
    async with served() as (server, stop), socket_to(server) as client:
        stop.set()
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


async def test_a_frame_above_the_limit_closes_the_socket_with_1009() -> None:
    async with (
        served(replace(LOCAL, max_frame_bytes=1024)) as (server, _),
        socket_to(server) as client,
    ):
        await client.send("x" * 1024)
        whole = await client.recv()
        await client.send("x" * 1025)
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()

    assert len(whole) == 1024
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_sockets_of_a_path_of_their_own_go_to_its_app_and_others_to_the_server_s() -> None:
    async with served() as (server, _), socket_to(server, "/bare") as bare_client:
        assert await bare_client.recv() == "bare"
        async with socket_to(server) as client:
            await client.send("hello")
            assert await client.recv() == "hello"
        with pytest.raises(InvalidStatus):
            await socket_to(server, "/nowhere")


async def test_a_client_that_answers_no_ping_is_let_go_of() -> None:
    async with served(replace(LOCAL, ping_interval=0.05, ping_timeout=0.05)) as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        rest = await reader.read()
        writer.close()

    assert rest.startswith(b"\x89\x04")
    assert b"keepalive ping timeout" in rest
