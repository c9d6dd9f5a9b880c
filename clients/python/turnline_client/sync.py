"""The client for programs without a loop: the same calls, each run to its end on a loop of its own.

Not for code that runs on a loop already, and not for several threads at once.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import closing
from typing import Any, Self, TypeVar

from turnline_client.channel import Tls, Token
from turnline_client.client import TIMEOUT, AsyncClient
from turnline_client.errors import closed
from turnline_client.retry import RetryPolicy
from turnline_client.stream import ChatStream
from turnline_client.values import (
    Admitted,
    ChatRequest,
    Position,
    Reply,
    StreamItem,
    TurnState,
)

Result = TypeVar("Result")


class Client:
    """As `AsyncClient`, whose arguments and errors it has; use as a context manager."""

    def __init__(
        self,
        target: str,
        *,
        token: Token | None = None,
        tls: Tls | None = None,
        timeout: float | None = TIMEOUT,
        retry: RetryPolicy | None = None,
        allow_plaintext_token: bool = False,
    ) -> None:
        self._runner = asyncio.Runner()
        self._closed = False

        async def made() -> AsyncClient:
            return AsyncClient(
                target,
                token=token,
                tls=tls,
                timeout=timeout,
                retry=retry,
                allow_plaintext_token=allow_plaintext_token,
            )

        try:
            self._client = self._runner.run(made())
        except BaseException:
            self._runner.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what is asked later ends with the code `cancelled`."""
        if not self._closed:
            self._closed = True
            with closing(self._runner):
                self._runner.run(self._client.close())

    def chat(
        self,
        request: ChatRequest | str,
        *,
        session_id: str,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """See `AsyncClient.chat`."""
        return self._run(
            self._client.chat(
                request, session_id=session_id, request_id=request_id, timeout=timeout
            )
        )

    def stream(
        self,
        request: ChatRequest | str,
        *,
        session_id: str,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Generator[StreamItem, None, None]:
        """See `AsyncClient.stream`."""

        async def begun() -> ChatStream:
            return self._client.stream(
                request, session_id=session_id, request_id=request_id, timeout=timeout
            )

        return self._items(self._run(begun()))

    def resume(
        self, request_id: str, *, after: Position | None = None, timeout: float | None = None
    ) -> Generator[StreamItem, None, None]:
        """See `AsyncClient.resume`."""

        async def begun() -> ChatStream:
            return self._client.resume(request_id, after=after, timeout=timeout)

        return self._items(self._run(begun()))

    def submit(
        self,
        request: ChatRequest | str,
        *,
        session_id: str,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Admitted:
        """See `AsyncClient.submit`."""
        return self._run(
            self._client.submit(
                request, session_id=session_id, request_id=request_id, timeout=timeout
            )
        )

    def reply(
        self, request_id: str, *, wait: float = 0.0, timeout: float | None = None
    ) -> Reply | None:
        """See `AsyncClient.reply`."""
        return self._run(self._client.reply(request_id, wait=wait, timeout=timeout))

    def cancel(self, request_id: str, *, timeout: float | None = None) -> TurnState:
        """See `AsyncClient.cancel`."""
        return self._run(self._client.cancel(request_id, timeout=timeout))

    def _items(self, stream: ChatStream) -> Generator[StreamItem, None, None]:
        async def following() -> StreamItem | None:
            return await anext(stream, None)

        try:
            while (item := self._run(following())) is not None:
                yield item
        finally:
            if not self._closed:
                self._run(stream.aclose())

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self._closed:
            work.close()
            raise closed("")
        return self._runner.run(work)
