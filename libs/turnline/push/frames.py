"""What tells one frame from another: the turn it belongs to, or the push that brought it.

By this whoever sends frames on knows one that was sent before: a piece or the end of a turn by its
turn, every other by its `push_id`, which it is given where an application's frames come in.
"""

from collections.abc import Callable, Sequence

from turnline.protocol import check_id
from turnline.push.port import Frame

STREAM_CHUNK = "STREAM_CHUNK"
CHAT_RESPONSE = "CHAT_RESPONSE"
PUSH_ID = "push_id"


def turn_of(frame: Frame) -> str:
    """Give the request id of a frame that is a piece or the end of a turn; empty for others."""
    request_id = frame.get("request_id")
    if frame.get("type") not in (STREAM_CHUNK, CHAT_RESPONSE) or not isinstance(request_id, str):
        return ""
    return request_id


def push_id_of(frame: Frame) -> str:
    """Give the id of a frame that belongs to no turn; empty where it was given none."""
    push_id = frame.get(PUSH_ID)
    return push_id if isinstance(push_id, str) else ""


def identified(frames: Sequence[Frame], new_id: Callable[[], str]) -> list[Frame]:
    """Give the frames, each of no turn with the `push_id` it came with, or else a new one.

    Raises:
        InvalidRequestError: a `push_id` is no id (`turnline.protocol.check_id`).
    """
    return [frame if turn_of(frame) else _identified(frame, new_id) for frame in frames]


def _identified(frame: Frame, new_id: Callable[[], str]) -> Frame:
    if PUSH_ID not in frame:
        return {**frame, PUSH_ID: new_id()}
    check_id(frame[PUSH_ID], field=PUSH_ID)
    return frame
