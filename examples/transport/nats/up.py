"""The NATS topology on this machine, without Docker: NATS, Valkey and the five services.

    ./pants run examples/transport/nats:up

Prints where to reach it and a token for the gateway; Ctrl-C drains the services and stops the
servers, whose data goes with them.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from transport.common.services import Example, serve, told_to_stop, valkey_at
from turnline.testing.servers.nats import NatsServer
from turnline.testing.servers.valkey import running_valkey

CONFIG = Path(__file__).parent / "config.yaml"


async def main(first_port: int) -> int:
    """Run everything until Ctrl-C or until a part ends; give the exit code."""
    stop = told_to_stop()
    with running_valkey() as valkey:
        async with NatsServer() as nats:
            example = Example(
                config=CONFIG,
                environ={"AK_EXECUTION__QUEUES__NATS__URL": nats.url, **valkey_at(valkey.url)},
                servers={"nats": nats.url, "valkey": valkey.url},
                first_port=first_port,
            )
            return await serve(example, stop)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the request handler")
    sys.exit(asyncio.run(main(parser.parse_args().port)))
