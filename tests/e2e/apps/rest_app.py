"""An application of the guide's bare RESTAPI."""

from e2e.apps import e2e_agents
from turnline.pipeline import RESTAPI

if __name__ == "__main__":
    assert e2e_agents.echo is not None
    RESTAPI.run()
