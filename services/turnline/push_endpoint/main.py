"""The push endpoint as a process of its own; needs a connection store all pods share."""

from typing import NoReturn

from turnline.config import Topology
from turnline.hosting import Lifecycle, check_topology, serve_process, start
from turnline.protocol.clock import SystemClock
from turnline.push_endpoint.process import serve_push_endpoint
from turnline.store.registry import open_stores


def main() -> NoReturn:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`."""

    async def serve(lifecycle: Lifecycle) -> None:
        settings = start()
        check_topology(settings, Topology.PUSH_ENDPOINT)
        clock = SystemClock()
        async with open_stores(settings, clock) as stores:
            await serve_push_endpoint(
                settings,
                lifecycle,
                connections=stores.connections,
                clock=clock,
                checks=stores.checks,
            )

    serve_process(serve)


if __name__ == "__main__":
    main()
