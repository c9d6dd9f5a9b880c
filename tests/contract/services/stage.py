"""A real broker and stores, on which one service plays and a test plays all its neighbours.

What neighbours say is said raw: bytes of the protocol's messages on the broker, requests over HTTP
and gRPC.  Only the stores are read and written through their port, which is their contract.
"""

import asyncio
import uuid
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from chaos.processes.brokers.nats import one_nats
from chaos.processes.brokers.port import Block, Broker
from chaos.processes.topology import PUSH_TOKEN, merged, usual_settings
from contract.services.packages import Packed, Service
from e2e.process import Server
from turnline.config import Settings
from turnline.hosting import WebOptions, WebServer
from turnline.protocol.clock import SystemClock
from turnline.push import PUSH_ID, PUSH_PATH, PUSH_TOKEN_HEADER
from turnline.store import Connection
from turnline.store.registry import Stores, open_stores
from turnline.testing.servers.nats import listens
from turnline.testing.servers.valkey import ValkeyServer, running_valkey
from turnline.v1 import envelope_pb2 as pb

PATIENCE = 20.0
PARTITIONS = 4

Frame = dict[str, Any]


def nameless(frame: Frame) -> Frame:
    """Give what an application pushed, without the name that pushes have since release 0.1.0."""
    return {key: value for key, value in frame.items() if key != PUSH_ID}


@dataclass(slots=True)
class Stage:
    """The broker and the stores, and what was said on the broker.

    Attributes:
        settings: what every service is started with.
        broker: a client of the broker.
        servers: the broker's server and Valkey, which may be stopped.
        heard: messages of the input and of the output stream, in order.
    """

    directory: Path
    settings: Block
    stores: Stores
    broker: Client
    servers: tuple[Broker, ValkeyServer]
    heard: dict[str, asyncio.Queue[Msg]] = field(default_factory=dict)

    @asynccontextmanager
    async def playing(
        self, service: Service, **settings: Any  # noqa: ANN401 - blocks
    ) -> AsyncIterator[Server]:
        """Run a service for the length of a block; further settings are blocks of its own."""
        given = merged(self.settings, settings)
        server = await Packed().start(service, self.directory / service, given)
        try:
            await server.is_ready()
            yield server
        finally:
            await server.kill()

    async def put(self, side: str, raw: bytes, session_id: str, **headers: str) -> None:
        """Put bytes on a stream as a service of any version would."""
        partition = zlib.crc32(session_id.encode()) % PARTITIONS
        prefix = self._nats[f"{side}_subject_prefix"]
        given = {"Nats-Msg-Id": uuid.uuid4().hex, **headers}
        stream = self.broker.jetstream()
        await stream.publish(f"{prefix}.{partition}.{session_id}", raw, headers=given)

    async def hear(self, side: str) -> Msg:
        """Give the next message that came on a stream."""
        async with asyncio.timeout(PATIENCE):
            return await self.heard[side].get()

    async def hear_envelope(self, side: str) -> pb.Envelope:
        """Give the next envelope that came on a stream."""
        return pb.Envelope.FromString((await self.hear(side)).data)

    async def is_settled(self, side: str) -> None:
        """Wait until nothing is left on a stream."""
        stream = self._nats[f"{side}_stream"]
        async with asyncio.timeout(PATIENCE):
            told = self.broker.jsm().stream_info
            while (await told(stream)).state.messages:  # noqa: ASYNC110 - told when asked
                await asyncio.sleep(0.02)

    async def listen(self) -> None:
        """Begin to hear what comes on both streams."""
        for side in ("input", "output"):
            queue: asyncio.Queue[Msg] = asyncio.Queue()
            self.heard[side] = queue
            await self.broker.subscribe(f"{self._nats[f'{side}_subject_prefix']}.>", cb=queue.put)
        await listens(self.broker)

    @asynccontextmanager
    async def pod(self, user_id: str) -> AsyncIterator["Pod"]:
        """Play a gateway that holds a socket of a user."""
        pod = Pod()
        web = WebServer(pod.app, WebOptions(host="127.0.0.1", port=0, close_seconds=1.0))
        stop = asyncio.Event()
        endpoint = f"http://127.0.0.1:{web.port}"
        connection = Connection(user_id=user_id, connection_id=pod.connection, endpoint=endpoint)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(web.run(stop))
            await web.started.wait()
            await self.stores.connections.add(connection)
            try:
                yield pod
            finally:
                stop.set()

    @property
    def _nats(self) -> Block:
        block: Block = self.settings["execution"]["queues"]["nats"]
        return block


class Pod:
    """Takes pushes as a gateway does.

    Attributes:
        pushed: bodies of the requests, in order.
    """

    def __init__(self) -> None:
        self.connection = uuid.uuid4().hex
        self.pushed: asyncio.Queue[Frame] = asyncio.Queue()
        self.app = Starlette(routes=[Route(PUSH_PATH, self._take, methods=["POST"])])
        self._frames: list[Frame] = []

    async def _take(self, request: Request) -> Response:
        assert request.headers[PUSH_TOKEN_HEADER] == PUSH_TOKEN
        body = await request.json()
        assert body["connection_id"] == self.connection
        await self.pushed.put(body)
        return JSONResponse({"status": "SUCCESS"})

    async def frame(self) -> Frame:
        """Give the next frame pushed."""
        while not self._frames:
            async with asyncio.timeout(PATIENCE):
                body = await self.pushed.get()
            self._frames = [*body.get("messages", ()), *filter(None, [body.get("message")])]
        return self._frames.pop(0)


@asynccontextmanager
async def stage(directory: Path) -> AsyncIterator[Stage]:
    """Open a broker and stores for the length of a block."""
    with running_valkey() as valkey:
        async with one_nats((), partitions=PARTITIONS) as broker:
            settings = merged(usual_settings(valkey.url), broker.settings)
            client = await nats.connect(broker.address)
            loaded = Settings.model_validate(settings)
            try:
                async with open_stores(loaded, SystemClock()) as stores:
                    opened = Stage(directory, settings, stores, client, (broker, valkey))
                    await opened.listen()
                    yield opened
            finally:
                await client.close()
