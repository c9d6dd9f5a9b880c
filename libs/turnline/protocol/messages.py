"""The protocol's values as Protobuf messages and back, one pair of functions each.

For the codec and gRPC services; Protobuf objects go no further than them.  `write_*` fills an empty
message in place (a submessage is written without a copy), `read_*` gives a value.
All raise InvalidRequestError, naming the field, for what one side holds and the other cannot.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from turnline.errors import InvalidRequestError, RetryHint
from turnline.protocol.chat import Attachment, ChatReply, ChatRequest, JsonObject
from turnline.protocol.chunk import ChatEvent, Chunk, EventType
from turnline.protocol.failure import Failure
from turnline.protocol.json_struct import read_struct, read_value, write_struct, write_value
from turnline.v1 import chat_pb2, chunk_pb2, failure_pb2

_EVENT_NUMBERS = {kind: getattr(chunk_pb2, f"EVENT_TYPE_{kind.name}") for kind in EventType}
_EVENT_TYPES = {number: kind for kind, number in _EVENT_NUMBERS.items()}
_RETRY_NUMBERS = {hint: getattr(failure_pb2, f"RETRY_HINT_{hint.name}") for hint in RetryHint}
_RETRY_HINTS = {number: hint for hint, number in _RETRY_NUMBERS.items()}
_DECISIONS = ("", "approved", "denied", "cancelled")
_SESSION_MODES = ("", "reuse", "new")

# 10000-01-01, where google.protobuf.Timestamp ends.
END_OF_TIME = 253_402_300_800
_NANOS = 1_000_000_000


def check_time(seconds: float) -> float:
    """Return `seconds` if it is a number of seconds since the epoch that can be written.

    Raises:
        ValueError: not between the epoch and the year 9999.
    """
    if not 0 <= seconds < END_OF_TIME:
        raise ValueError(f"no time between the epoch and the year 9999: {seconds}")
    return seconds


def write_time(seconds: float, message: Timestamp) -> None:
    """Write seconds since the epoch, to the nanosecond.

    Raises:
        ValueError: see `check_time`.
    """
    message.seconds, message.nanos = _split(check_time(seconds))


def read_time(message: Timestamp, *, field: str) -> float:
    """Give seconds since the epoch."""
    return _join(message.seconds, message.nanos, field)


def write_duration(seconds: float, message: Duration) -> None:
    """Write a time span of 0 or more seconds, to the nanosecond."""
    if not 0 <= seconds < END_OF_TIME:
        raise ValueError(f"no time span: {seconds}")
    message.SetInParent()
    message.seconds, message.nanos = _split(seconds)


def read_duration(message: Duration, *, field: str) -> float:
    """Give a time span in seconds, 0 or more."""
    return _join(message.seconds, message.nanos, field)


def write_request(request: ChatRequest, message: chat_pb2.ChatRequest) -> None:
    """Write a chat request."""
    message.prompt = request.prompt
    if request.agent:
        message.agent = request.agent
    if request.user_id:
        message.user_id = request.user_id
    if request.group_id:
        message.group_id = request.group_id
    if request.thread_name:
        message.thread_name = request.thread_name
    for file in request.files:
        _write_attachment(file, message.files.add())
    for image in request.images:
        _write_attachment(image, message.images.add())
    if request.resume is not None:
        _write_resume(request.resume, message.resume)
    for item in request.requests:
        write_struct(item, message.requests.add(), field="requests")
    if request.schedule is not None:
        _write_schedule(request.schedule, message.schedule)
    if request.scheduled_task_id:
        message.scheduled_task_id = request.scheduled_task_id
    if request.scheduled_time:
        message.scheduled_time = request.scheduled_time
    if request.extra:
        write_struct(request.extra, message.extra, field="extra")


def read_request(message: chat_pb2.ChatRequest) -> ChatRequest:
    """Give a chat request."""
    return ChatRequest(
        prompt=message.prompt,
        agent=message.agent,
        user_id=message.user_id,
        group_id=message.group_id,
        thread_name=message.thread_name,
        files=tuple(map(_read_attachment, message.files)) if message.files else (),
        images=tuple(map(_read_attachment, message.images)) if message.images else (),
        resume=_read_resume(message.resume) if message.HasField("resume") else None,
        requests=_read_objects(message.requests, "requests") if message.requests else (),
        schedule=_read_schedule(message.schedule) if message.HasField("schedule") else None,
        scheduled_task_id=message.scheduled_task_id,
        scheduled_time=message.scheduled_time,
        extra=read_struct(message.extra, field="extra") if message.HasField("extra") else {},
    )


def write_reply(reply: ChatReply, message: chat_pb2.ChatReply) -> None:
    """Write a chat reply."""
    message.result = reply.result
    if reply.extra:
        write_struct(reply.extra, message.extra, field="extra")


def read_reply(message: chat_pb2.ChatReply) -> ChatReply:
    """Give a chat reply."""
    extra = read_struct(message.extra, field="extra") if message.HasField("extra") else {}
    return ChatReply(result=message.result, extra=extra)


def write_failure(failure: Failure, message: failure_pb2.Failure) -> None:
    """Write a failure."""
    message.code = failure.code
    message.message = failure.message
    message.status_code = failure.status_code
    message.retry = _RETRY_NUMBERS[failure.retry]
    if failure.retry_after is not None:
        write_duration(failure.retry_after, message.retry_after)
    if failure.field:
        message.field = failure.field


def read_failure(message: failure_pb2.Failure) -> Failure:
    """Give a failure; an unknown retry hint is read as never, a status that is none as 500."""
    after = None
    if message.HasField("retry_after"):
        after = read_duration(message.retry_after, field="retry_after")
    return Failure(
        code=message.code,
        message=message.message,
        status_code=message.status_code if 400 <= message.status_code <= 599 else 500,
        retry=_RETRY_HINTS.get(message.retry, RetryHint.NEVER),
        retry_after=after,
        field=message.field,
    )


def write_event(event: ChatEvent, message: chunk_pb2.ChatEvent) -> None:
    """Write a streamed event."""
    message.type = _EVENT_NUMBERS[event.type]
    if event.message_id:
        message.message_id = event.message_id
    if event.role:
        message.role = event.role
    if event.content:
        message.content = event.content
    if event.tool_call_id:
        message.tool_call_id = event.tool_call_id
    if event.name:
        message.name = event.name
    if event.data:
        write_struct(event.data, message.data, field="data")


def read_event(message: chunk_pb2.ChatEvent) -> ChatEvent:
    """Give a streamed event.

    A type this version does not know becomes CUSTOM with its name as `data["type"]`, which is
    what clients then see as the event's type.
    """
    kind = _EVENT_TYPES.get(message.type)
    data = read_struct(message.data, field="data") if message.HasField("data") else {}
    if kind is None:
        if not message.type:
            raise InvalidRequestError("event has no type", field="event.type")
        kind = EventType.CUSTOM
        data.setdefault("type", message.type_name or f"event_type_{message.type}")
    return ChatEvent(
        type=kind,
        message_id=message.message_id,
        role=message.role,
        content=message.content,
        tool_call_id=message.tool_call_id,
        name=message.name,
        data=data,
    )


def write_chunk(chunk: Chunk, message: chunk_pb2.Chunk) -> None:
    """Write a chunk."""
    message.attempt = chunk.attempt
    message.index = chunk.index
    write_event(chunk.event, message.event)


def read_chunk(message: chunk_pb2.Chunk) -> Chunk:
    """Give a chunk."""
    if not message.attempt:
        raise InvalidRequestError("chunk has no attempt", field="chunks.attempt")
    return Chunk(attempt=message.attempt, index=message.index, event=read_event(message.event))


def _split(seconds: float) -> tuple[int, int]:
    whole = math.floor(seconds)
    nanos = round((seconds - whole) * _NANOS)
    return (whole + 1, 0) if nanos == _NANOS else (whole, nanos)


def _join(seconds: int, nanos: int, field: str) -> float:
    if not (0 <= seconds < END_OF_TIME and 0 <= nanos < _NANOS):
        raise InvalidRequestError(f"{field} is out of range", field=field)
    return seconds + nanos / _NANOS


def _write_attachment(attachment: Attachment, message: chat_pb2.Attachment) -> None:
    message.data = attachment.data
    message.name = attachment.name
    message.mime_type = attachment.mime_type


def _read_attachment(message: chat_pb2.Attachment) -> Attachment:
    return Attachment(data=message.data, name=message.name, mime_type=message.mime_type)


def _read_objects(messages: Iterable[Struct], field: str) -> tuple[dict[str, Any], ...]:
    return tuple(read_struct(item, field=field) for item in messages)


# The three blocks below are typed on the wire and plain objects in the product.  A key that has no
# field, or a value its field cannot hold, goes to `extra`, so that nothing is lost on the way.


def _take_texts(rest: dict[str, Any], message: Message, names: Iterable[str]) -> None:
    for name in names:
        if isinstance(rest.get(name), str) and rest[name]:
            setattr(message, name, rest.pop(name))


def _take_choice(rest: dict[str, Any], name: str, choices: tuple[str, ...]) -> int:
    chosen = rest.get(name)
    if chosen and chosen in choices:
        del rest[name]
        return choices.index(chosen)
    return 0


def _choice(number: int, name: str, choices: tuple[str, ...]) -> str:
    # A newer version's choice is shown by number, not as if none had been made.
    return choices[number] if number < len(choices) else f"{name}_{number}"


def _write_resume(resume: JsonObject, message: chat_pb2.Resume) -> None:
    message.SetInParent()
    rest = dict(resume)
    _take_texts(rest, message, ("run_id",))
    decisions = rest.get("decisions")
    if isinstance(decisions, list | tuple) and all(isinstance(d, Mapping) for d in decisions):
        del rest["decisions"]
        for decision in decisions:
            _write_decision(decision, message.decisions.add())
    if rest:
        write_struct(rest, message.extra, field="resume")


def _read_resume(message: chat_pb2.Resume) -> dict[str, Any]:
    resume: dict[str, Any] = {}
    if message.run_id:
        resume["run_id"] = message.run_id
    resume["decisions"] = [_read_decision(decision) for decision in message.decisions]
    if message.HasField("extra"):
        resume.update(read_struct(message.extra, field="resume"))
    return resume


def _write_decision(decision: JsonObject, message: chat_pb2.Decision) -> None:
    rest = dict(decision)
    _take_texts(rest, message, ("id", "message"))
    message.status = _take_choice(  # type: ignore[assignment]  # the number of an enum
        rest, "status", _DECISIONS
    )
    if "payload" in rest:
        write_value(rest.pop("payload"), message.payload, field="resume")
    if rest:
        write_struct(rest, message.extra, field="resume")


def _read_decision(message: chat_pb2.Decision) -> dict[str, Any]:
    decision: dict[str, Any] = {}
    if message.id:
        decision["id"] = message.id
    if message.status:
        decision["status"] = _choice(message.status, "status", _DECISIONS)
    if message.message:
        decision["message"] = message.message
    if message.HasField("payload"):
        decision["payload"] = read_value(message.payload, field="resume")
    if message.HasField("extra"):
        decision.update(read_struct(message.extra, field="resume"))
    return decision


def _write_schedule(schedule: JsonObject, message: chat_pb2.Schedule) -> None:
    message.SetInParent()
    rest = dict(schedule)
    _take_texts(rest, message, ("at", "cron", "timezone"))
    message.session_mode = _take_choice(  # type: ignore[assignment]  # likewise
        rest, "session_mode", _SESSION_MODES
    )
    if rest:
        write_struct(rest, message.extra, field="schedule")


def _read_schedule(message: chat_pb2.Schedule) -> dict[str, Any]:
    schedule: dict[str, Any] = {}
    for name in ("at", "cron", "timezone"):
        if text := getattr(message, name):
            schedule[name] = text
    if message.session_mode:
        schedule["session_mode"] = _choice(message.session_mode, "session_mode", _SESSION_MODES)
    if message.HasField("extra"):
        schedule.update(read_struct(message.extra, field="schedule"))
    return schedule
