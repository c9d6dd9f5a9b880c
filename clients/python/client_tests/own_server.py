"""A server of a test's own: it says what the test tells it to, and counts how often it is asked."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import grpc.aio

from client_tests.conftest import LONG
from turnline_client import AsyncClient, RetryPolicy

THREE_TRIES = RetryPolicy(max_tries=3, backoff=0.01)

Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Ended:
    """A call that ends with a status."""

    status: grpc.StatusCode
    message: str
    trailer: bytes = b""


Answer = Callable[[int], Sequence[bytes | Ended]]
"""Gives what is said to the call of this number, from 1: one message, or all those of a stream."""


class OwnServer:
    """Answers every method by `answer`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked = 0

    async def unary(self, request: bytes, context: Context) -> bytes:
        """Answer with the first thing."""
        async for message in self.stream(request, context):
            return message
        raise AssertionError("nothing to say")

    async def stream(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        """Say all."""
        self.asked += 1
        for said in self._answer(self.asked):
            if isinstance(said, Ended):
                trailing = (("grpc-status-details-bin", said.trailer),) if said.trailer else ()
                await context.abort(said.status, said.message, trailing)
            else:
                yield said


@asynccontextmanager
async def client_of(
    server: OwnServer, retry: RetryPolicy = THREE_TRIES
) -> AsyncIterator[AsyncClient]:
    """Serve, and give a client, for the length of the block."""
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "StreamChat": grpc.unary_stream_rpc_method_handler(server.stream),
        **{
            name: grpc.unary_unary_rpc_method_handler(server.unary)
            for name in ("Chat", "Submit", "GetReply", "Cancel")
        },
    }
    serving = grpc.aio.server()
    serving.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("turnline.v1.ChatService", methods)]
    )
    port = serving.add_insecure_port("127.0.0.1:0")
    await serving.start()
    try:
        async with AsyncClient(f"127.0.0.1:{port}", timeout=LONG, retry=retry) as client:
            yield client
    finally:
        await serving.stop(None)
