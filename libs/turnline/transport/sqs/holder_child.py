"""Started by `crash_test`: holds deliveries and renews them, until it is killed."""

import asyncio
import sys

from turnline.protocol.clock import SystemClock
from turnline.transport.sqs import QueueOptions, SqsOptions, SqsTransport


async def hold(endpoint: str, url: str, visibility_timeout: int, batch_size: int) -> None:
    """Take what there is; say `renewed` after each renewal."""
    options = SqsOptions(
        input=QueueOptions(name="input", url=url),
        output=QueueOptions(name="output", url=""),
        region="eu-west-1",
        endpoint_url=endpoint,
        visibility_timeout=visibility_timeout,
        batch_size=batch_size,
    )
    async with (
        SqsTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.TaskGroup() as tasks,
    ):
        waits = [tasks.create_task(reader.receive()) for _ in range(batch_size)]
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        running = done.pop().result()
        say(f"running {running.envelope.request_id} {running.attempt}")
        while True:
            await asyncio.sleep(visibility_timeout / 4)
            await running.renew()
            say("renewed")


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
