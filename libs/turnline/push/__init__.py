"""Push: frames to client sockets, on this pod or another.

Modules of their own: `turnline.push.http`, the way to other pods, and `turnline.push.endpoint` with
`turnline.push.endpoint_routes`, what answers there.
"""

from turnline.push.frames import CHAT_RESPONSE, PUSH_ID, STREAM_CHUNK, push_id_of, turn_of
from turnline.push.port import ConnectionPush, Frame, PushRoutes
from turnline.push.routes import PUSH_PATH, PUSH_TOKEN_HEADER, Remote, Routes
from turnline.push.signals import PushSignals
from turnline.push.users import UserPush

__all__ = [
    "CHAT_RESPONSE",
    "PUSH_ID",
    "PUSH_PATH",
    "PUSH_TOKEN_HEADER",
    "STREAM_CHUNK",
    "ConnectionPush",
    "Frame",
    "PushRoutes",
    "PushSignals",
    "Remote",
    "Routes",
    "UserPush",
    "push_id_of",
    "turn_of",
]
