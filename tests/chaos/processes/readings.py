"""What clients read, as the values the oracle judges."""

from typing import Any

from chaos.processes.callers import Answer
from turnline.protocol import ChatEvent, ChatReply, Chunk, Failure
from turnline.protocol.chunk import EventType
from turnline.store import Gap, StoredReply, StreamItem


def reply_of(request: str, answer: Answer) -> StoredReply:
    """Give a REST answer as the end of its turn."""
    if "result" in answer.body:
        payload: ChatReply | Failure = ChatReply(result=answer.body["result"])
    else:
        payload = Failure(
            code=answer.code,
            message=str(answer.detail.get("error", answer.body)),
            status_code=answer.status,
        )
    session = answer.body.get("session_id") or answer.detail.get("session_id", "")
    return StoredReply(
        request_id=request, session_id=session, status_code=answer.status, payload=payload
    )


def stream_of(events: list[dict[str, Any]], reply: StoredReply) -> list[StreamItem]:
    """Give the events of a stream as items, the last one with the answer that is kept."""
    items: list[StreamItem] = []
    for event in events:
        if event["done"]:
            items.append(
                StoredReply(
                    request_id=reply.request_id,
                    session_id=reply.session_id,
                    status_code=event["status_code"],
                    payload=reply.payload,
                    attempt=event["attempt"],
                    chunk_count=event["index"],
                )
            )
        elif event["event"]["type"] == "gap":
            said = event["event"]
            items.append(Gap(attempt=event["attempt"], first=said["first"], last=said["last"]))
        elif event["event"]["type"] != "restart":
            items.append(_chunk(event))
    return items


def _chunk(event: dict[str, Any]) -> Chunk:
    return Chunk(
        attempt=event["attempt"],
        index=event["index"],
        event=ChatEvent(type=EventType(event["event"]["type"]), content=event.get("delta", "")),
    )
