"""The request handler as a process of its own; needs a broker and shared stores."""

from typing import NoReturn

from turnline.auth import AuthValidator, configured_validator
from turnline.config import Settings, Topology
from turnline.hosting import ServeStandalone, serve_prepared
from turnline.request_handler.process import serve_request_handler


def main(auth_validator: AuthValidator | None = None) -> NoReturn:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`.

    Args:
        auth_validator: checks bearer tokens; None takes the one the settings name, and without
            one the routes are open.
    """

    def prepare(settings: Settings) -> ServeStandalone:
        validator = configured_validator(settings.auth, given=auth_validator)
        return lambda process: serve_request_handler(process, validator=validator)

    serve_prepared(Topology.REQUEST_HANDLER, prepare)


if __name__ == "__main__":
    main()
