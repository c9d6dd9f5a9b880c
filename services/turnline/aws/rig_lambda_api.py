"""For this room's tests: Lambda's `Invoke` for functions that are called asynchronously.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html: 202 at once for `Event`, and the
function runs later.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.testing.servers.lambda_runtime import LambdaFunction
from turnline.testing.servers.loopback_web import LoopbackWeb


class LambdaApi(LoopbackWeb):
    """Use as an async context manager, around the function.

    Attributes:
        asked: names and events of the calls, in order.
        function: what runs them; None: they are refused.
        meanwhile: is done before a call is answered.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.function: LambdaFunction | None = None
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        # Events run one after the other, and none before this is set.
        self.may_run = asyncio.Event()
        path = "/2015-03-31/functions/{name}/invocations"
        super().__init__(Starlette(routes=[Route(path, self._invoke, methods=["POST"])]))

    async def _invoke(self, request: Request) -> Response:
        event = await request.json()
        self.asked.append((request.path_params["name"], event))
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.function is None:
            headers = {"x-amzn-ErrorType": "AccessDeniedException"}
            return Response(b"{}", status_code=403, headers=headers)
        kind = request.headers["x-amz-invocation-type"]
        if kind != "Event":
            return Response(status_code=400)
        return Response(status_code=202, background=BackgroundTask(self._run, self.function, event))

    async def _run(self, function: LambdaFunction, event: object) -> None:
        await self.may_run.wait()
        await function.invoke(event)
