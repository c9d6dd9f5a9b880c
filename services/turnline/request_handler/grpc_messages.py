"""Chat's values as messages of `turnline.v1.ChatService`, and back.  Pure."""

from collections.abc import Iterator

from turnline.errors import InvalidRequestError
from turnline.protocol import BEGINNING, Chunk, Failure, Position, check_id
from turnline.protocol.chat_body import chat_body_object
from turnline.protocol.json_body import ChatBody, parse_chat_body
from turnline.protocol.messages import (
    read_duration,
    read_request,
    write_chunk,
    write_failure,
    write_reply,
)
from turnline.request_handler.handler import TurnStream
from turnline.store import Cancelled, Gap, StoredReply, StreamItem
from turnline.v1 import chat_pb2, chunk_pb2
from turnline.v1 import chat_service_pb2 as pb

CANCEL_STATES = {
    Cancelled.QUEUED: pb.TURN_STATE_QUEUED,
    Cancelled.RUNNING: pb.TURN_STATE_RUNNING,
    Cancelled.DONE: pb.TURN_STATE_DONE,
}


def read_body(
    message: pb.ChatServiceChatRequest | pb.SubmitRequest | pb.StreamChatRequest,
) -> ChatBody:
    """Read what to run, by way of the chat body, so that the same rules hold as over REST.

    A turn asked for over both has one form, and is known again whichever way it comes.

    Raises:
        InvalidRequestError: names the field, as REST does.
    """
    if not message.HasField("request"):
        raise InvalidRequestError("request must be set", field="request")
    body = chat_body_object(read_request(message.request), session_id=message.session_id)
    return parse_chat_body({**body, "request_id": message.request_id})


def read_request_id(text: str) -> str:
    """Read the id of a turn that was admitted before.

    Raises:
        InvalidRequestError: it is none.
    """
    if not text:
        raise InvalidRequestError("request_id is required", field="request_id")
    return check_id(text, field="request_id")


def read_wait(message: pb.GetReplyRequest) -> float:
    """Read how many seconds to wait for the end; 0 if that was not said.

    Raises:
        InvalidRequestError: less than none.
    """
    return read_duration(message.wait, field="wait") if message.HasField("wait") else 0.0


def read_after(message: pb.StreamChatRequest) -> Position:
    """Read where to resume; the beginning if that was not said.

    Raises:
        InvalidRequestError: it is no place of a stream.
    """
    after = message.after
    if not message.HasField("after") or not after.attempt:
        return BEGINNING
    if after.index < -1:
        raise InvalidRequestError("after must be a place in this stream", field="after")
    return Position(after.attempt, after.index)


def write_end(reply: StoredReply, message: chat_pb2.TurnEnd) -> None:
    """Write the end of a turn."""
    message.request_id = reply.request_id
    message.session_id = reply.session_id
    message.status_code = reply.status_code
    message.attempt = reply.attempt
    message.chunk_count = reply.chunk_count
    if isinstance(reply.payload, Failure):
        write_failure(reply.payload, message.failure)
    else:
        message.reply.SetInParent()
        write_reply(reply.payload, message.reply)


class StreamMessages:
    """Turns the items of one stream into messages for one reader.

    Says what a reader cannot see from chunks alone: that a new attempt voids what was shown.
    """

    def __init__(self, stream: TurnStream) -> None:
        self._stream = stream
        self._attempt = stream.after.attempt

    def admitted(self) -> pb.StreamChatResponse:
        """Give the message that comes first."""
        stream = self._stream
        turn = pb.SubmitResponse(
            request_id=stream.request_id, session_id=stream.session_id, known=stream.known
        )
        return pb.StreamChatResponse(admitted=turn)

    def of(self, item: StreamItem) -> Iterator[pb.StreamChatResponse]:
        """Give the messages an item makes."""
        if item.attempt and item.attempt != self._attempt:
            if self._attempt:
                yield pb.StreamChatResponse(restart=pb.Restart(attempt=item.attempt))
            self._attempt = item.attempt
        message = pb.StreamChatResponse()
        match item:
            case Chunk():
                write_chunk(item, message.chunk)
            case Gap():
                gap = chunk_pb2.Gap(attempt=item.attempt, first=item.first, last=item.last)
                message.gap.CopyFrom(gap)
            case StoredReply():
                write_end(item, message.end)
        yield message
