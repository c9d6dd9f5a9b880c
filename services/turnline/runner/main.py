"""The runner as a process of its own; agents must be registered before, a broker is needed."""

from typing import NoReturn

from turnline.agent import default_registry
from turnline.config import Topology
from turnline.hosting import serve_service
from turnline.runner.process import serve_runner


def main() -> NoReturn:
    """Run until told to stop, then exit; codes are those of `turnline.hosting.process`."""
    serve_service(Topology.RUNNER, lambda process: serve_runner(process, agents=default_registry))


if __name__ == "__main__":
    main()
