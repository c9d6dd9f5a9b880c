"""Runs an ASGI application for one request and collects its answer, within a time."""

import asyncio
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp

from turnline.aws.http_events import HttpAnswer, HttpRequest
from turnline.errors import Code
from turnline.telemetry import get_logger

_log = get_logger("aws")


async def answer_with(app: ASGIApp, request: HttpRequest, seconds: float) -> HttpAnswer | None:
    """Give the application's answer; None if it began none within `seconds`.

    An answer that has begun and not ended by then (an event stream) is given as far as it came.
    """
    exchange = _Exchange(request)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await app(request.scope(), exchange.receive, exchange.send)
    except Exception as error:  # noqa: BLE001 - as a server: its application has answered by now
        _log.error(
            "request.failed",
            surface="rest",
            mode=request.method.lower(),
            code=Code.INTERNAL.value,
            exc_info=error,
        )
    return exchange.answer


class _Exchange:
    """The two ends of one request, as ASGI has them."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._read = False
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()

    @property
    def answer(self) -> HttpAnswer | None:
        """What came of it so far."""
        if not self._status:
            return None
        return HttpAnswer(status=self._status, headers=self._headers, body=bytes(self._body))

    async def receive(self) -> MutableMapping[str, Any]:
        """Give the body at once, and then nothing more for as long as the request lasts."""
        if self._read:
            await asyncio.Event().wait()
        self._read = True
        return {"type": "http.request", "body": self._request.body, "more_body": False}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
