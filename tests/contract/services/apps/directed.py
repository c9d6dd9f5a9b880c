"""A runner of the agent that does as its prompt says, which tests of whole histories share."""

from chaos.processes.apps.directed import directed
from turnline.runner.main import main

__all__ = ["directed"]

if __name__ == "__main__":
    main()
