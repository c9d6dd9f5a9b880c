"""The responder as a process of its own; needs a broker and shared stores."""

from typing import NoReturn

from turnline.config import Topology
from turnline.hosting import serve_service
from turnline.responder.process import serve_responder


def main() -> NoReturn:
    """Run until told to stop, then exit; codes are those of `turnline.hosting.process`."""
    serve_service(Topology.RESPONDER, serve_responder)


if __name__ == "__main__":
    main()
