"""The guide's entry points: one import, one call, a running pipeline."""

from turnline.pipeline.entry import (
    RESTAPI,
    AgentRunner,
    IOHandler,
    RESTRequestHandler,
    WebSocketGateway,
)
from turnline.pipeline.websocket_routes import PipelineWebSocketHandler

__all__ = [
    "RESTAPI",
    "AgentRunner",
    "IOHandler",
    "PipelineWebSocketHandler",
    "RESTRequestHandler",
    "WebSocketGateway",
]
