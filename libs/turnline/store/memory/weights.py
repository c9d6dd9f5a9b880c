"""About how many bytes of memory a kept value takes.

Close enough to bound a process (within some tens of percent on CPython), cheap enough for every
chunk.  Knows nothing of stores.
"""

from collections.abc import Mapping
from sys import getsizeof

from turnline.protocol import ChatReply, Chunk
from turnline.store.ports import StoredReply

CHUNK_BYTES = 360
REPLY_BYTES = 800
_ITEM_BYTES = 32


def chunk_weight(chunk: Chunk) -> int:
    """Weigh one chunk with its event."""
    event = chunk.event
    texts = len(event.content) + len(event.message_id) + len(event.tool_call_id)
    weight = CHUNK_BYTES + (texts if event.content.isascii() else getsizeof(event.content))
    return weight + json_weight(event.data) if event.data else weight


def reply_weight(reply: StoredReply) -> int:
    """Weigh the end of a turn without its chunks."""
    payload = reply.payload
    if not isinstance(payload, ChatReply):
        return len(payload.message)
    weight = getsizeof(payload.result)
    return weight + json_weight(payload.extra) if payload.extra else weight


def json_weight(value: object) -> int:
    """Weigh a JSON value with all it holds."""
    match value:
        case Mapping():
            return getsizeof(value) + sum(
                getsizeof(key) + json_weight(item) for key, item in value.items()
            )
        case list() | tuple():
            return getsizeof(value) + sum(json_weight(item) for item in value)
        case str():
            return getsizeof(value)
        case _:
            return _ITEM_BYTES
