"""SQS, as an emulator has it, which forgets everything when it ends: so it is never ended here."""

import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from chaos.processes.brokers.one_server import OneServer
from chaos.processes.brokers.port import Block, Broker, Ill
from turnline.config import Settings
from turnline.protocol.clock import SystemClock
from turnline.testing.servers.aws_account import CREDENTIALS, no_account
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.tcp_proxy import TcpProxy
from turnline.transport.sqs import open_provisioner

ACCOUNT = "000000000000"


def _queues(block: Block) -> Block:
    return {"execution": {"queues": {"type": "sqs", **block}}}


def _settings(url: str) -> Block:
    name = f"t{uuid.uuid4().hex[:8]}"
    return _queues(
        {
            "input": {"url": f"{url}/{ACCOUNT}/{name}-in.fifo"},
            "output": {"url": f"{url}/{ACCOUNT}/{name}-out.fifo"},
            "sqs": {"endpoint_url": url, "region": "eu-west-1"},
        }
    )


SHORT_LEASES = _queues({"sqs": {"visibility_timeout": 3, "retry_backoff": 0.2}})


@dataclass(slots=True)
class SqsBroker(OneServer):
    """One server; see `Broker`."""

    name: str = "sqs"
    ills: tuple[Ill, ...] = (Ill.FREEZE, Ill.CUT, Ill.STALL, Ill.DEAF)
    short_leases: Block = field(default_factory=lambda: SHORT_LEASES)

    def through(self, proxy: TcpProxy) -> Block:
        """See `Broker`."""
        return _queues({"sqs": {"endpoint_url": f"http://127.0.0.1:{proxy.port}"}})


@asynccontextmanager
async def one_sqs(proxied: Iterable[str], *, partitions: int) -> AsyncIterator[Broker]:
    """Run one server with the queues made; SQS has groups in place of `partitions`."""
    del partitions
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ElasticMqServer())
        proxies = {kind: await stack.enter_async_context(TcpProxy(server.port)) for kind in proxied}
        settings = _settings(server.url)
        await _provision(settings)
        yield SqsBroker(server, server.url, settings, proxies, CREDENTIALS)


async def _provision(settings: Block) -> None:
    checked = Settings.model_validate(settings)
    with no_account():
        async with open_provisioner(checked, SystemClock()) as provisioner:
            await provisioner.apply()
