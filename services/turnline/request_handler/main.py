"""The request handler as a process of its own; needs a broker and shared stores."""

import os
import sys
from pathlib import Path

from turnline.auth import AuthValidator
from turnline.config import load_settings
from turnline.hosting import Lifecycle, run_process
from turnline.request_handler.process import check_settings, serve_request_handler
from turnline.telemetry import configure_logging


def main(auth_validator: AuthValidator | None = None) -> None:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`.

    Args:
        auth_validator: checks bearer tokens; None leaves the routes open.
    """

    async def serve(lifecycle: Lifecycle) -> None:
        environ = os.environ  # noqa: TID251 - the one place of this process that hands it to config
        settings = load_settings(environ=environ, cwd=Path.cwd()).settings
        configure_logging(settings.logging.ak.level or "info", settings.logging.format)
        check_settings(settings)
        await serve_request_handler(settings, lifecycle, validator=auth_validator)

    sys.exit(run_process(serve))


if __name__ == "__main__":
    main()
