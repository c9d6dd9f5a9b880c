"""What lies on the streams, read without disturbing them.

    ./pants run examples/transport/nats:streams -- nats://127.0.0.1:4222

A work-queue stream can't be browsed with a second consumer, and whatever a consumer is sent is
leased; so messages are fetched by their sequence numbers.  Prompts and answers are not shown.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Mapping

import nats
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

STREAMS = ("AGENT_REQUESTS", "AGENT_REPLIES", "AGENT_REQUESTS_DEAD", "AGENT_REPLIES_DEAD")
SHOWN_HEADERS = ("request_id", "user_id", "status_code", "Turnline-Attempt", "Turnline-Reason")
WAIT_SECONDS = 5.0


async def main(url: str, limit: int) -> None:
    """Print the depth of each stream and its oldest messages."""
    client = await nats.connect(url, connect_timeout=int(WAIT_SECONDS), allow_reconnect=False)
    try:
        js = client.jetstream(timeout=WAIT_SECONDS)
        for stream in STREAMS:
            await show(js, stream, limit)
    finally:
        await client.close()


async def show(js: JetStreamContext, stream: str, limit: int) -> None:
    """Print one stream; says so when it is not there."""
    try:
        state = (await js.stream_info(stream)).state
    except NotFoundError:
        print(f"{stream}: missing; run `turnline provision`")
        return
    print(f"{stream}: {state.messages} messages, {state.bytes} bytes")
    async for line in lines_of(js, stream, state.first_seq, state.last_seq, limit):
        print(f"  {line}")


async def lines_of(
    js: JetStreamContext, stream: str, first: int, last: int, limit: int
) -> AsyncIterator[str]:
    """Describe up to `limit` messages, oldest first."""
    for sequence in range(max(1, first), last + 1):  # an empty stream says 0
        if limit == 0:
            return
        try:
            message = await js.get_msg(stream, sequence)
        except NotFoundError:
            continue  # settled since, or before
        limit -= 1
        age = time.time() - message.time.timestamp() if message.time else 0.0
        size = len(message.data or b"")
        yield f"#{sequence} {message.subject} {size} bytes {age:.1f} s {_shown(message.headers)}"


def _shown(headers: Mapping[str, str] | None) -> str:
    found = headers or {}
    return " ".join(f"{name}={found[name]}" for name in SHOWN_HEADERS if name in found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", default="nats://127.0.0.1:4222")
    parser.add_argument("--limit", type=int, default=20, help="messages to show of each stream")
    given = parser.parse_args()
    asyncio.run(main(given.url, given.limit))
