"""The scaler as a process of its own; needs the runners' broker."""

from typing import NoReturn

from turnline.config import Topology
from turnline.hosting import Lifecycle, check_topology, serve_process, start
from turnline.hosting.connecting import connected
from turnline.protocol.clock import SystemClock
from turnline.scaler.process import serve_scaler
from turnline.transport.registry import open_transport


def main() -> NoReturn:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`."""

    async def serve(lifecycle: Lifecycle) -> None:
        settings = start()
        check_topology(settings, Topology.SCALER)
        clock = SystemClock()
        async with connected(
            lambda: open_transport(settings, clock), lifecycle.draining
        ) as transport:
            await serve_scaler(settings, lifecycle, transport=transport)

    serve_process(serve)


if __name__ == "__main__":
    main()
