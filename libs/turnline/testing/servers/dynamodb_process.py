"""moto's emulator of DynamoDB with one lock round every request; run as a child process.

moto checks a condition and then writes, in a thread for each request and without a lock between
them: two conditional writes can both succeed.  DynamoDB's cannot, so here one request runs at a
time.

    python -m turnline.testing.servers.dynamodb_process PORT
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple  # pants: no-infer-dep

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class _Handler(WSGIRequestHandler):
    """Keeps connections open, as AWS does, and writes no line for each request."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        """Say nothing."""


def locked(
    application: Callable[[Environ, StartResponse], Iterable[bytes]],
) -> Callable[[Environ, StartResponse], Iterable[bytes]]:
    """Let one request at a time into an application."""
    lock = threading.Lock()

    def serve(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        with lock:
            return list(application(environ, start_response))

    return serve


def main() -> None:
    """Serve on a loopback port until told to stop."""

    def stop(_: int, __: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    application = DomainDispatcherApplication(create_backend_app)
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        locked(application),
        threaded=True,
        request_handler=_Handler,
    )


if __name__ == "__main__":
    main()
