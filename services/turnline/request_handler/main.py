"""The request handler as a process of its own; needs a broker and shared stores."""

from typing import NoReturn

from turnline.auth import AuthValidator
from turnline.config import Topology
from turnline.hosting import serve_service
from turnline.request_handler.process import serve_request_handler


def main(auth_validator: AuthValidator | None = None) -> NoReturn:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`.

    Args:
        auth_validator: checks bearer tokens; None leaves the routes open.
    """
    serve_service(
        Topology.REQUEST_HANDLER,
        lambda process: serve_request_handler(process, validator=auth_validator),
    )


if __name__ == "__main__":
    main()
