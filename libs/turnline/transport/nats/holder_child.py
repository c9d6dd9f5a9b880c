"""Started by `crash_test`: holds one running delivery and parks the rest, until it is killed."""

import asyncio
import sys

from turnline.protocol.clock import SystemClock
from turnline.transport.nats import NatsOptions, NatsTransport, QueueOptions, ServerOptions


async def hold(url: str, name: str, ack_wait: float) -> None:
    """Take what there is; say `parked` after each renewal, while the rest waits behind it."""
    options = NatsOptions(
        server=ServerOptions(urls=(url,)),
        input=QueueOptions(name="input", stream=f"{name}_IN", prefix=f"{name}.in"),
        output=QueueOptions(name="output", stream=f"{name}_OUT", prefix=f"{name}.out"),
        ack_wait=ack_wait,
    )
    async with (
        NatsTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.TaskGroup() as tasks,
    ):
        running = await reader.receive()
        say(f"running {running.envelope.request_id} {running.attempt}")
        tasks.create_task(reader.receive())
        while True:
            await asyncio.sleep(ack_wait / 4)
            await running.renew()
            say("parked")


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1], sys.argv[2], float(sys.argv[3])))
