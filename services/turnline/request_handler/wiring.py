"""Puts the surfaces of chat together from settings and open connections."""

import random

from turnline.auth import AuthValidator
from turnline.config import Settings
from turnline.frontdoor import Admission
from turnline.hosting import Backends
from turnline.request_handler.body import BodyLimits
from turnline.request_handler.event_stream import EventStreamOptions
from turnline.request_handler.handler import ChatHandler, ChatOptions
from turnline.request_handler.preferences import ReplyMode
from turnline.request_handler.routes import AgentNames, RestOptions, RestParts
from turnline.request_handler.waiting import WaitingRoom

GRPC_SERVICE = "turnline.request_handler.grpc_service"
"""Module of the service over gRPC, by name, so that a process without gRPC need not load it."""


def open_rest(
    settings: Settings,
    backends: Backends,
    *,
    admission: Admission,
    waiting: WaitingRoom,
    validator: AuthValidator | None,
    agents: AgentNames,
) -> RestParts:
    """Make what the REST routes work on.

    Args:
        validator: checks bearer tokens; None leaves the routes open.
        agents: names for `GET /api/v1/agents`, as far as `api.enabled_routes` allows it.
    """
    store = settings.execution.response_store
    budget = store.retry_count * store.delay
    handler = ChatHandler(
        admission=admission,
        replies=backends.stores.replies,
        waiting=waiting,
        clock=backends.clock,
        options=ChatOptions(reply_budget=budget, turn_timeout=settings.execution.turn_timeout),
    )
    options = RestOptions(
        mode=ReplyMode(settings.execution.mode),
        limits=BodyLimits(
            max_bytes=settings.api.max_body_bytes, max_file_bytes=settings.api.max_file_size
        ),
        stream=EventStreamOptions(
            heartbeat=settings.api.sse_heartbeat,
            idle=budget,
            retry_seconds=lambda: round(random.uniform(0.5, 5.0), 2),
        ),
        # On a broker the responder may be another process, or another pod's.
        keeps_answers=settings.execution.queues.type == "in_memory" or store.type != "in_memory",
    )
    return RestParts(
        handler=handler,
        waiting=waiting,
        clock=backends.clock,
        metrics=backends.metrics,
        tracing=backends.tracing,
        options=options,
        validator=validator,
        agents=agents if settings.api.enabled_routes.agents else None,
    )
