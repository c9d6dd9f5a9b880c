"""An HTTP API of API Gateway for tests and examples: real HTTP before a function.

Requests become events of format 2.0, and what the function returns becomes the answer, as
documented; so do a function that fails (500) or takes too long (503).  It has no authorizer and no
CORS.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import asyncio
import base64
import binascii
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from turnline.testing.servers.event_source import Invoke
from turnline.testing.servers.loopback_web import LoopbackWeb

# As deploy/terraform/serverless has them.
ROUTES = (
    "DELETE /api/v1/chat",
    "GET /api/v1/agents",
    "GET /api/v1/chat",
    "POST /api/v1/chat",
    "POST /api/v1/chat-multipart",
)
MAX_BYTES = 10 * 1024 * 1024
INTEGRATION_SECONDS = 30.0

_TEXT_TYPES = ("text/", "application/json", "application/javascript", "application/xml")


class HttpApi(LoopbackWeb):
    """Use as an async context manager.

    Args:
        invoke: calls the function behind all routes.
        routes: `METHOD /path` each; what is none of them is 404.
        port: 0: any free one.
        seconds: that an answer may take.
    """

    def __init__(
        self,
        invoke: Invoke,
        *,
        routes: Sequence[str] = ROUTES,
        port: int = 0,
        seconds: float = INTEGRATION_SECONDS,
    ) -> None:
        self._invoke = invoke
        self._seconds = seconds
        self._running: set[asyncio.Task[Any]] = set()
        self._routes = frozenset(routes)
        super().__init__(self._serve, port=port)

    @override
    async def __aexit__(self, *exc_info: Any) -> None:
        for task in self._running:
            task.cancel()
        await super().__aexit__(*exc_info)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = await self._answer(request)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if f"{request.method} {request.url.path}" not in self._routes:
            return _message(404, "Not Found")
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BYTES:
                return _message(413, "Request Entity Too Large")
        # The function goes on when its caller is told that it took too long.
        invocation = self._tasks.create_task(self._outcome(event_of(request, bytes(body))))
        self._running.add(invocation)
        invocation.add_done_callback(self._running.discard)
        done, _ = await asyncio.wait([invocation], timeout=self._seconds)
        if not done or invocation.cancelled():
            return _message(503, "Service Unavailable")
        outcome = invocation.result()
        if isinstance(outcome, _Broken):
            return _message(500, "Internal Server Error")
        return answer_of(outcome)

    async def _outcome(self, event: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        try:
            return await self._invoke(event)
        except Exception:  # noqa: BLE001 - whatever ends a function
            return _Broken()


@dataclass(frozen=True, slots=True)
class _Broken:
    """The function gave no answer."""


def event_of(request: Request, body: bytes) -> dict[str, Any]:
    """Give a request as the function is told of it."""
    headers = _joined(request.headers.items())
    cookies = headers.pop("cookie", "")
    route = f"{request.method} {request.url.path}"
    text = not body or headers.get("content-type", "").startswith(_TEXT_TYPES)
    now = time.time()
    host = headers.get("host", "")
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": request.url.path,
        "rawQueryString": request.url.query,
        "headers": headers,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": host,
            "domainPrefix": host.partition(".")[0],
            "http": {
                "method": request.method,
                "path": request.url.path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.client.host if request.client else "",
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": route,
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": not text,
    }
    if cookies:
        event["cookies"] = [each.strip() for each in cookies.split(";")]
    if query := _joined(request.query_params.multi_items()):
        event["queryStringParameters"] = query
    if body:
        event["body"] = body.decode(errors="replace") if text else base64.b64encode(body).decode()
    return event


def answer_of(returned: object) -> Response:
    """Give what a function returned as its caller gets it."""
    if not isinstance(returned, dict) or "statusCode" not in returned:
        return Response(json.dumps(returned), media_type="application/json")
    try:
        status = int(returned["statusCode"])
        body = returned.get("body") or ""
        raw = base64.b64decode(body) if returned.get("isBase64Encoded") else body.encode()
    except (AttributeError, TypeError, ValueError, binascii.Error):
        return _message(500, "Internal Server Error")
    # A type that the function does not say is text.
    headers = {"content-type": "text/plain;charset=UTF-8"}
    headers |= {name.lower(): str(each) for name, each in (returned.get("headers") or {}).items()}
    # Ours says how long it is.
    headers.pop("content-length", None)
    response = Response(raw, status_code=status, headers=headers)
    for cookie in returned.get("cookies") or []:
        response.headers.append("set-cookie", cookie)
    return response


def _joined(pairs: Any) -> dict[str, str]:  # noqa: ANN401 - pairs of names and values
    """Give each name once, several values with commas between them."""
    many: dict[str, list[str]] = defaultdict(list)
    for name, value in pairs:
        many[name].append(value)
    return {name: ",".join(values) for name, values in many.items()}


def _message(status: int, text: str) -> Response:
    return Response(
        json.dumps({"message": text}), status_code=status, media_type="application/json"
    )
