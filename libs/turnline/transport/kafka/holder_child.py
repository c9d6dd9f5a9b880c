"""Started by `crash_test`: holds what it can get until it is killed; acks when it was stalled."""

import asyncio
import sys
import time

from turnline.errors import FencedError
from turnline.protocol.clock import SystemClock
from turnline.store.valkey import ValkeyBookkeeping, ValkeyBookkeepingOptions
from turnline.store.valkey.server import ServerOptions, open_commands
from turnline.transport.kafka import KafkaOptions, KafkaTransport, QueueOptions

_STALLED_SECONDS = 1.5


async def hold(bootstrap: str, name: str, valkey_url: str) -> None:
    """Take one delivery and keep it."""
    server = ServerOptions(setting="url", url=valkey_url)
    async with open_commands(server, SystemClock()) as commands:
        books = ValkeyBookkeeping(ValkeyBookkeepingOptions(prefix="t:", keep=600.0), commands)
        async with (
            KafkaTransport(_options(bootstrap, name), SystemClock(), books) as transport,
            transport.input.consumer() as reader,
        ):
            running = await reader.receive()
            say(f"holding {running.envelope.request_id} {running.attempt}")
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.2)
                try:
                    if time.monotonic() - before > _STALLED_SECONDS:
                        await running.ack()
                        say("acked")
                    else:
                        await running.renew()
                except FencedError:
                    say("fenced")
                    await asyncio.Event().wait()


def _options(bootstrap: str, name: str) -> KafkaOptions:
    def queue(side: str) -> QueueOptions:
        topic = f"{name}-{side}"
        return QueueOptions(
            name=side, topic=topic, dead_topic=f"{topic}.dlq", group=f"{name}-group-{side}"
        )

    return KafkaOptions(
        bootstrap_servers=bootstrap,
        client_config={"session.timeout.ms": 2000, "heartbeat.interval.ms": 300},
        input=queue("input"),
        output=queue("output"),
    )


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1], sys.argv[2], sys.argv[3]))
