"""The request handler: REST in all its modes, from an HTTP request to the queue and back."""

from turnline.request_handler.body import BodyLimits
from turnline.request_handler.event_stream import EventStreamOptions
from turnline.request_handler.handler import ChatCall, ChatHandler, ChatOptions, NoReply, TurnStream
from turnline.request_handler.preferences import ReplyMode
from turnline.request_handler.routes import RestOptions, RestParts, build_routes
from turnline.request_handler.waiting import WaitingRoom

__all__ = [
    "BodyLimits",
    "ChatCall",
    "ChatHandler",
    "ChatOptions",
    "EventStreamOptions",
    "NoReply",
    "ReplyMode",
    "RestOptions",
    "RestParts",
    "TurnStream",
    "WaitingRoom",
    "build_routes",
]
