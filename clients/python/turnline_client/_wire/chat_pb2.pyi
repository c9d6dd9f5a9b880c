from google.protobuf import struct_pb2 as _struct_pb2
from turnline_client._wire import failure_pb2 as _failure_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecisionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_STATUS_UNSPECIFIED: _ClassVar[DecisionStatus]
    DECISION_STATUS_APPROVED: _ClassVar[DecisionStatus]
    DECISION_STATUS_DENIED: _ClassVar[DecisionStatus]
    DECISION_STATUS_CANCELLED: _ClassVar[DecisionStatus]

class SessionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_MODE_UNSPECIFIED: _ClassVar[SessionMode]
    SESSION_MODE_REUSE: _ClassVar[SessionMode]
    SESSION_MODE_NEW: _ClassVar[SessionMode]
DECISION_STATUS_UNSPECIFIED: DecisionStatus
DECISION_STATUS_APPROVED: DecisionStatus
DECISION_STATUS_DENIED: DecisionStatus
DECISION_STATUS_CANCELLED: DecisionStatus
SESSION_MODE_UNSPECIFIED: SessionMode
SESSION_MODE_REUSE: SessionMode
SESSION_MODE_NEW: SessionMode

class Attachment(_message.Message):
    __slots__ = ("data", "name", "mime_type")
    DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    data: str
    name: str
    mime_type: str
    def __init__(self, data: _Optional[str] = ..., name: _Optional[str] = ..., mime_type: _Optional[str] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("id", "status", "message", "payload", "extra")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    id: str
    status: DecisionStatus
    message: str
    payload: _struct_pb2.Value
    extra: _struct_pb2.Struct
    def __init__(self, id: _Optional[str] = ..., status: _Optional[_Union[DecisionStatus, str]] = ..., message: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("run_id", "decisions", "extra")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    extra: _struct_pb2.Struct
    def __init__(self, run_id: _Optional[str] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("at", "cron", "timezone", "session_mode", "extra")
    AT_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    SESSION_MODE_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    at: str
    cron: str
    timezone: str
    session_mode: SessionMode
    extra: _struct_pb2.Struct
    def __init__(self, at: _Optional[str] = ..., cron: _Optional[str] = ..., timezone: _Optional[str] = ..., session_mode: _Optional[_Union[SessionMode, str]] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ChatRequest(_message.Message):
    __slots__ = ("prompt", "agent", "user_id", "group_id", "thread_name", "files", "images", "resume", "requests", "schedule", "scheduled_task_id", "scheduled_time", "extra")
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_NAME_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    prompt: str
    agent: str
    user_id: str
    group_id: str
    thread_name: str
    files: _containers.RepeatedCompositeFieldContainer[Attachment]
    images: _containers.RepeatedCompositeFieldContainer[Attachment]
    resume: Resume
    requests: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    schedule: Schedule
    scheduled_task_id: str
    scheduled_time: str
    extra: _struct_pb2.Struct
    def __init__(self, prompt: _Optional[str] = ..., agent: _Optional[str] = ..., user_id: _Optional[str] = ..., group_id: _Optional[str] = ..., thread_name: _Optional[str] = ..., files: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., resume: _Optional[_Union[Resume, _Mapping]] = ..., requests: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ..., schedule: _Optional[_Union[Schedule, _Mapping]] = ..., scheduled_task_id: _Optional[str] = ..., scheduled_time: _Optional[str] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ChatReply(_message.Message):
    __slots__ = ("result", "extra")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    result: str
    extra: _struct_pb2.Struct
    def __init__(self, result: _Optional[str] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class TurnEnd(_message.Message):
    __slots__ = ("request_id", "session_id", "status_code", "attempt", "chunk_count", "reply", "failure")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    status_code: int
    attempt: int
    chunk_count: int
    reply: ChatReply
    failure: _failure_pb2.Failure
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., status_code: _Optional[int] = ..., attempt: _Optional[int] = ..., chunk_count: _Optional[int] = ..., reply: _Optional[_Union[ChatReply, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...
