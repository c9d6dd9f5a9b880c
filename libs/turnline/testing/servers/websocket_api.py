"""A WebSocket API of API Gateway for tests and examples: real sockets before an integration.

Handshakes and frames become the events that API Gateway documents, with its authorizer at
`$connect` and its route selection by the frames' `route`; `@connections` writes to the sockets.
What it has not: throttling, and the ends of idle (10 minutes) and of old (2 hours) sockets.
https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api.html
"""

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from turnline.hosting import WebOptions, WebServer
from turnline.testing.servers.api_gateway import MAX_BYTES, STAGE, error_answer
from turnline.testing.servers.event_source import Invoke
from turnline.testing.servers.lambda_runtime import FunctionError
from turnline.testing.servers.websocket_api_events import (
    Told,
    authorizer_event,
    event_of,
    handshake_in,
)

TOKEN_PARAMETER = "token"
INTEGRATION_SECONDS = 29.0
_SEND_SECONDS = 10.0
# Frames of one client that are worked on at a time.
_AT_ONCE = 16
_PROTOCOL_HEADER = "sec-websocket-protocol"
_BINARY_REFUSED = 1003
_GOING_AWAY = 1001


class _Refused(Exception):
    """A handshake that ends with a status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class _Connection:
    """One open socket."""

    def __init__(self, websocket: WebSocket, told: Told) -> None:
        self._websocket = websocket
        self._writing = asyncio.Lock()
        self.told = told
        self.room = asyncio.Semaphore(_AT_ONCE)

    async def send(self, text: str) -> bool:
        """Send a frame behind those before it; False: the client does not take it."""
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(_SEND_SECONDS), self._writing:
                await self._websocket.send_text(text)
                return True
        return False

    async def close(self) -> None:
        """End it from this side."""
        if self._websocket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError):
                await self._websocket.close(_GOING_AWAY)


class WebSocketApi:
    """One API with one stage; its addresses are known before it serves.

    Args:
        routes: the names of routes besides `$connect`, `$disconnect` and `$default`; all but the
            first two have a route response.
        port: 0: any free one.
        seconds: that an integration may take.
    """

    def __init__(
        self,
        *,
        routes: Collection[str] = ("chat",),
        port: int = 0,
        seconds: float = INTEGRATION_SECONDS,
    ) -> None:
        self._routes = frozenset(routes)
        self._seconds = seconds
        self._sockets: dict[str, _Connection] = {}
        self._invoke: Invoke | None = None
        self._authorizer: Invoke | None = None
        self._tasks = asyncio.TaskGroup()
        app = Starlette(
            routes=[
                WebSocketRoute(f"/{STAGE}", self._serve_socket),
                Route(
                    f"/{STAGE}/@connections/{{name}}",
                    self._manage,
                    methods=["POST", "GET", "DELETE"],
                ),
            ]
        )
        self._web = WebServer(
            app, WebOptions(host="127.0.0.1", port=port, max_frame_bytes=MAX_BYTES)
        )

    @property
    def url(self) -> str:
        """Where clients connect; their token is the query's `token`."""
        return f"ws://127.0.0.1:{self._web.port}/{STAGE}"

    @property
    def endpoint_url(self) -> str:
        """The management endpoint, below which `@connections` lies."""
        return f"http://127.0.0.1:{self._web.port}/{STAGE}"

    @asynccontextmanager
    async def serving(
        self, invoke: Invoke, *, authorizer: Invoke | None = None
    ) -> AsyncIterator["WebSocketApi"]:
        """Serve for the length of the block, once.

        Args:
            invoke: calls the integration of all routes.
            authorizer: calls the Lambda authorizer of `$connect`; None: there is none.
        """
        self._invoke, self._authorizer = invoke, authorizer
        stop = asyncio.Event()
        async with self._tasks:
            self._tasks.create_task(self._web.run(stop))
            await self._web.started.wait()
            try:
                yield self
            finally:
                for connection in list(self._sockets.values()):
                    await connection.close()
                stop.set()

    # --- sockets -----------------------------------------------------------------------------

    async def _serve_socket(self, websocket: WebSocket) -> None:
        name = base64.urlsafe_b64encode(secrets.token_bytes(11)).decode()
        told = handshake_in(websocket, name)
        try:
            told = await self._authorized(told)
            subprotocol = await self._connect(told)
        except _Refused as refused:
            await websocket.send_denial_response(
                Response(
                    json.dumps({"message": refused.text, "connectionId": name}),
                    status_code=refused.status,
                    media_type="application/json",
                )
            )
            return
        connection = self._sockets[name] = _Connection(websocket, told)
        code = 1006
        try:
            await websocket.accept(subprotocol)
            code = await self._read(websocket, connection)
        finally:
            del self._sockets[name]
            await self._answer(event_of(told, "DISCONNECT", close_code=code))

    async def _authorized(self, told: Told) -> Told:
        """Ask the authorizer; give what is known of the socket from now on."""
        brought = TOKEN_PARAMETER in told.query
        if self._authorizer is None:
            # The parameter is required of the route.
            if not brought:
                raise _Refused(400, "Missing required request parameters: [token]")
            return told
        if not brought:
            raise _Refused(401, "Unauthorized")
        try:
            verdict = await self._authorizer(authorizer_event(told))
            statements = verdict["policyDocument"]["Statement"]
            allowed = all(each["Effect"] == "Allow" for each in statements)
            found = {**(verdict.get("context") or {}), "principalId": verdict["principalId"]}
        except FunctionError as error:
            if error.message == "Unauthorized":
                raise _Refused(401, "Unauthorized") from error
            raise _Refused(500, "Internal server error") from error
        except Exception as error:
            raise _Refused(500, "Internal server error") from error
        if not allowed:
            raise _Refused(403, "User is not authorized to access this resource")
        return told.with_authorizer(found)

    async def _connect(self, told: Told) -> str | None:
        """Ask the integration; give the subprotocol it takes."""
        answer = await self._answer(event_of(told, "CONNECT"))
        status = int(answer.get("statusCode", 200)) if answer is not None else 500
        if not 200 <= status < 300:
            raise _Refused(status, str((answer or {}).get("body") or "Internal server error"))
        headers = (answer or {}).get("headers") or {}
        return next((v for n, v in headers.items() if n.lower() == _PROTOCOL_HEADER), None)

    async def _read(self, websocket: WebSocket, connection: _Connection) -> int:
        """Take frames until the socket ends; give its close code."""
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return int(message.get("code") or 1005)
            text = message.get("text")
            if text is None:
                await websocket.close(_BINARY_REFUSED)
                return _BINARY_REFUSED
            await connection.room.acquire()
            self._tasks.create_task(self._frame(connection, text))

    async def _frame(self, connection: _Connection, text: str) -> None:
        try:
            event = event_of(
                connection.told, "MESSAGE", route=route_of(text, self._routes), body=text
            )
            answer = await self._answer(event)
            if answer is None:
                context = event["requestContext"]
                told = {name: context[name] for name in ("connectionId", "requestId")}
                await connection.send(json.dumps({"message": "Internal server error", **told}))
            elif body := answer.get("body"):
                await connection.send(body)
        finally:
            connection.room.release()

    async def _answer(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Call the integration; None: it failed, or took too long."""
        assert self._invoke is not None
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._invoke(event)
        except Exception:  # noqa: BLE001 - whatever ends a function
            return None
        return answer if isinstance(answer, dict) else {}

    # --- @connections ------------------------------------------------------------------------

    async def _manage(self, request: Request) -> Response:
        connection = self._sockets.get(request.path_params["name"])
        body = await request.body()
        if len(body) > MAX_BYTES:
            return error_answer(413)
        if connection is None:
            return error_answer(410)
        if request.method == "DELETE":
            await connection.close()
            return Response(status_code=204)
        if request.method == "GET":
            return Response(json.dumps(connection.told.described()), media_type="application/json")
        sent = await connection.send(body.decode(errors="replace"))
        return Response(status_code=200) if sent else error_answer(410)


def route_of(text: str, routes: Collection[str]) -> str:
    """Select the route of a frame, by `$request.body.route`."""
    try:
        named = json.loads(text).get("route")
    except (ValueError, AttributeError):
        return "$default"
    return named if isinstance(named, str) and named in routes else "$default"
