"""The values of this client as messages of `turnline.v1`, and back.  Pure."""

from typing import cast

from google.protobuf import json_format
from google.protobuf.message import Message

from turnline_client import values
from turnline_client._wire import chat_pb2, chat_service_pb2, chunk_pb2
from turnline_client.errors import from_failure

_VERDICTS = {
    None: chat_pb2.DECISION_STATUS_UNSPECIFIED,
    values.Verdict.APPROVED: chat_pb2.DECISION_STATUS_APPROVED,
    values.Verdict.DENIED: chat_pb2.DECISION_STATUS_DENIED,
    values.Verdict.CANCELLED: chat_pb2.DECISION_STATUS_CANCELLED,
}
_STATES = {
    chat_service_pb2.TURN_STATE_QUEUED: values.TurnState.QUEUED,
    chat_service_pb2.TURN_STATE_RUNNING: values.TurnState.RUNNING,
    chat_service_pb2.TURN_STATE_DONE: values.TurnState.DONE,
}
_EVENT_PREFIX = "EVENT_TYPE_"
_UNKNOWN_EVENT = "custom"


def write_request(request: values.ChatRequest) -> chat_pb2.ChatRequest:
    """Write what to run.

    Raises:
        ValueError: `requests`, `extra` or a payload holds what JSON cannot.
    """
    message = chat_pb2.ChatRequest(
        prompt=request.prompt,
        agent=request.agent,
        user_id=request.user_id,
        group_id=request.group_id,
        thread_name=request.thread_name,
        files=[_attachment(file) for file in request.files],
        images=[_attachment(image) for image in request.images],
    )
    if request.resume is not None:
        message.resume.run_id = request.resume.run_id
        message.resume.decisions.extend(_decision(one) for one in request.resume.decisions)
        message.resume.SetInParent()
    for item in request.requests:
        _write_json(item, message.requests.add())
    if request.extra is not None:
        _write_json(request.extra, message.extra)
    return message


def _attachment(file: values.Attachment) -> chat_pb2.Attachment:
    return chat_pb2.Attachment(data=file.data, name=file.name, mime_type=file.mime_type)


def _decision(decision: values.Decision) -> chat_pb2.Decision:
    message = chat_pb2.Decision(
        id=decision.id, status=_VERDICTS[decision.verdict], message=decision.message
    )
    if decision.payload is not None:
        _write_json(decision.payload, message.payload)
    return message


def _write_json(value: object, message: Message) -> None:
    try:
        # Its types know of objects only; a `Value` is any JSON.
        json_format.ParseDict(cast("dict[str, object]", value), message)
    except json_format.ParseError as error:
        raise ValueError(f"is no JSON: {error}") from error


def _read_json(message: Message) -> values.JsonObject:
    found: values.JsonObject = json_format.MessageToDict(message)
    return found


def write_position(position: values.Position) -> chunk_pb2.Position:
    """Write a place in a stream."""
    return chunk_pb2.Position(attempt=position.attempt, index=position.index)


def read_admitted(message: chat_service_pb2.SubmitResponse) -> values.Admitted:
    """Read that a turn is on its way."""
    return values.Admitted(
        request_id=message.request_id, session_id=message.session_id, known=message.known
    )


def read_end(end: chat_pb2.TurnEnd) -> values.Reply:
    """Read the end of a turn.

    Raises:
        TurnlineError: the turn failed.
    """
    if not end.HasField("reply"):
        raise from_failure(
            end.failure,
            status_code=end.status_code,
            request_id=end.request_id,
            session_id=end.session_id,
        )
    return values.Reply(
        request_id=end.request_id,
        session_id=end.session_id,
        text=end.reply.result,
        status_code=end.status_code,
        extra=_read_json(end.reply.extra),
        attempt=end.attempt,
    )


def read_chunk(message: chunk_pb2.Chunk) -> values.Chunk:
    """Read one streamed piece."""
    event = message.event
    return values.Chunk(
        position=values.Position(message.attempt, message.index),
        event=values.Event(
            type=_event_type(event),
            message_id=event.message_id,
            role=event.role,
            content=event.content,
            tool_call_id=event.tool_call_id,
            name=event.name,
            data=_read_json(event.data),
        ),
    )


def _event_type(event: chunk_pb2.ChatEvent) -> str:
    known = chunk_pb2.EventType.DESCRIPTOR.values_by_number.get(event.type)
    if known is not None and event.type:
        return str(known.name).removeprefix(_EVENT_PREFIX).lower()
    return event.type_name or _UNKNOWN_EVENT


def read_state(message: chat_service_pb2.CancelResponse) -> values.TurnState:
    """Read what a cancelled turn was doing; a state newer than this client reads as running."""
    return _STATES.get(message.state, values.TurnState.RUNNING)
