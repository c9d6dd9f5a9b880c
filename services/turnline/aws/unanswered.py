"""Turns of this process that have no end yet, so that their callers can be told when it stops.

In direct mode what a stopping process hands back is gone with its memory, and API Gateway keeps the
sockets open: without a word their clients would wait for ever.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress

from typing_extensions import override

from turnline.aws.forwarding import QueueOver, TransportOver
from turnline.errors import DrainingError, StoreUnavailableError, TransportUnavailableError
from turnline.gateway.frames import failed
from turnline.protocol import ChatReply, ChatRequest, Envelope, Failure, ReplyKey
from turnline.push import Frame, UserPush
from turnline.transport import Queue, Transport

_AT_ONCE = 32


class Unanswered:
    """What was admitted here and has not ended; wrap the transport with `over`."""

    def __init__(self) -> None:
        self._users: dict[ReplyKey, str] = {}

    def note(self, envelope: Envelope) -> None:
        """Look at what is put on a queue: a request, or an answer."""
        if isinstance(envelope.payload, ChatRequest):
            self._users[envelope.reply_key] = envelope.user_id
        elif isinstance(envelope.payload, ChatReply | Failure):
            self._users.pop(envelope.reply_key, None)

    def over(self, transport: Transport) -> Transport:
        """Give a transport that notes what is sent on it."""
        return TransportOver(
            input=NotedQueue(transport.input, self),
            output=NotedQueue(transport.output, self),
            whole=transport,
        )

    async def say_farewell(self, push: UserPush) -> None:
        """Tell all who still wait to send their frames again; the turns stay open in the stores."""
        frames: dict[str, list[Frame]] = defaultdict(list)
        for key, user_id in self._users.items():
            frames[user_id].append(failed(DrainingError(), request_id=key.request_id))
        slots = asyncio.Semaphore(_AT_ONCE)

        async def tell(user_id: str) -> None:
            async with slots:
                # Whoever cannot be reached has nobody left here to try again.
                with suppress(StoreUnavailableError, TransportUnavailableError):
                    await push.push(user_id, frames[user_id])

        async with asyncio.TaskGroup() as tasks:
            for user_id in frames:
                tasks.create_task(tell(user_id))


class NotedQueue(QueueOver):
    """A queue that tells what it takes; see `turnline.transport.Queue`."""

    def __init__(self, queue: Queue, turns: Unanswered) -> None:
        super().__init__(queue)
        self._turns = turns

    @override
    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope."""
        taken = await self._queue.send(envelope)
        if taken:
            self._turns.note(envelope)
        return taken
