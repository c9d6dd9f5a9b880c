"""A client of Turnline over gRPC: chat, streams that resume, submit and come back, cancel."""

from turnline_client.channel import Tls
from turnline_client.client import AsyncClient
from turnline_client.errors import STREAM_GAP, TurnlineError
from turnline_client.retry import RetryPolicy
from turnline_client.stream import ChatStream
from turnline_client.sync import Client
from turnline_client.values import (
    Admitted,
    Attachment,
    ChatRequest,
    Chunk,
    Decision,
    Event,
    JsonObject,
    Position,
    Reply,
    Restart,
    Resume,
    StreamItem,
    TurnState,
    Verdict,
)

__all__ = [
    "STREAM_GAP",
    "Admitted",
    "AsyncClient",
    "Attachment",
    "ChatRequest",
    "ChatStream",
    "Chunk",
    "Client",
    "Decision",
    "Event",
    "JsonObject",
    "Position",
    "Reply",
    "Restart",
    "Resume",
    "RetryPolicy",
    "StreamItem",
    "Tls",
    "TurnState",
    "TurnlineError",
    "Verdict",
]
