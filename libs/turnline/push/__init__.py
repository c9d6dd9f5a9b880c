"""Push: frames to client sockets, on this pod or (`turnline.push.http`) another."""

from turnline.push.port import ConnectionPush, Frame, PushRoutes
from turnline.push.routes import PUSH_PATH, PUSH_TOKEN_HEADER, Remote, Routes
from turnline.push.signals import PushSignals
from turnline.push.users import UserPush

__all__ = [
    "PUSH_PATH",
    "PUSH_TOKEN_HEADER",
    "ConnectionPush",
    "Frame",
    "PushRoutes",
    "PushSignals",
    "Remote",
    "Routes",
    "UserPush",
]
