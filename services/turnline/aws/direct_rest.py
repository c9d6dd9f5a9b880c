"""Direct mode over REST: routes of callers whose turns this very process runs."""

from starlette.routing import BaseRoute

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.frontdoor import Admission
from turnline.hosting import Standalone
from turnline.request_handler import WaitingRoom, build_routes
from turnline.request_handler.wiring import open_rest


def direct_client_routes(
    process: Standalone,
    waiting: WaitingRoom,
    validator: AuthValidator | None,
    *,
    agents: AgentRegistry,
) -> list[BaseRoute]:
    """Make the REST routes; an agent that is not registered here is refused at once."""
    backends = process.backends
    admission = Admission(
        queue=backends.transport.input,
        replies=backends.stores.replies,
        sessions=backends.stores.sessions,
        clock=backends.clock,
        accepting=lambda: process.lifecycle.accepting,
        knows_agent=agents.knows,
    )
    rest = open_rest(
        process.settings,
        backends,
        admission=admission,
        waiting=waiting,
        validator=validator,
        agents=agents.names,
    )
    return build_routes(rest)
