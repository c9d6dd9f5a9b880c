"""A front before an emulator of AWS (or before nothing) that can give AWS's documented answers.

For what only AWS says: throttling, a denied action, an expired receipt, too many in flight.  What
is not scripted goes through to the emulator.  It speaks the JSON protocol of SQS and DynamoDB.
"""

import asyncio
import json
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of AWS.

    Attributes:
        status: of HTTP.
        body: as JSON.
        headers: besides those of the body.
        delay: seconds before it is given.
        after: whether the call goes to the emulator first: its effect is there, its answer lost.
    """

    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    after: bool = False


def error(
    status: int, code: str, message: str = "", *, query: str = "", after: bool = False
) -> Answer:
    """Make an error as the JSON protocol has it; `query` is the code of the older protocol."""
    headers = (("x-amzn-query-error", f"{query};Sender"),) if query else ()
    body = {"__type": f"com.amazonaws#{code}", "message": message}
    return Answer(status=status, body=body, headers=headers, after=after)


class AwsFront:
    """Use as an async context manager.

    Args:
        target_port: of the emulator on this machine; None: what is not scripted is a 500.

    Attributes:
        calls: (operation, body) of every call, in order.
    """

    def __init__(self, target_port: int | None = None) -> None:
        self._target = target_port
        self._script: dict[str, deque[Answer]] = defaultdict(deque)
        self._always: dict[str, Answer] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        """Where clients connect."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def next(self, operation: str, *answers: Answer) -> None:
        """Give these to the next calls of an operation, one each."""
        self._script[operation].extend(answers)

    def always(self, operation: str, answer: Answer | None) -> None:
        """Give this to every call of an operation; None: none any more."""
        if answer is None:
            self._always.pop(operation, None)
        else:
            self._always[operation] = answer

    def made(self, operation: str) -> list[dict[str, Any]]:
        """Give the bodies of the calls of an operation, in order."""
        return [body for name, body in self.calls if name == operation]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Nobody cancels it but `__aexit__`, and the loop would log that at length.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                await self._answer(reader, writer)
            finally:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        headers = _headers(head)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        operation = headers.get("x-amz-target", "").rpartition(".")[2]
        self.calls.append((operation, json.loads(body or b"{}")))
        waiting = self._script[operation]
        answer = waiting.popleft() if waiting else self._always.get(operation)
        if answer is None and self._target is None:
            answer = Answer(status=500)
        through = b""
        if answer is None or answer.after:
            through = await self._pass_on(head, body)
        if answer is not None:
            await asyncio.sleep(answer.delay)
            through = _encoded(answer)
        writer.write(through)
        await writer.drain()

    async def _pass_on(self, head: bytes, body: bytes) -> bytes:
        """Give the whole answer of the emulator, which closes the connection behind it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            writer.write(head[:-2] + b"Connection: close\r\n\r\n" + body)
            return await reader.read()
        finally:
            writer.close()


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _encoded(answer: Answer) -> bytes:
    body = json.dumps(answer.body).encode()
    lines = [
        f"HTTP/1.1 {answer.status} Scripted",
        "Content-Type: application/x-amz-json-1.0",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in answer.headers),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
