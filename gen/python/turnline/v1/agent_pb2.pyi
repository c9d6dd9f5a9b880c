import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from turnline.v1 import chat_pb2 as _chat_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentInfo(_message.Message):
    __slots__ = ("name", "description")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class TurnRecord(_message.Message):
    __slots__ = ("request_id", "prompt", "reply", "agent", "at", "items")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    prompt: str
    reply: str
    agent: str
    at: _timestamp_pb2.Timestamp
    items: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    def __init__(self, request_id: _Optional[str] = ..., prompt: _Optional[str] = ..., reply: _Optional[str] = ..., agent: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("request_id", "session_id", "request", "user_id", "attempt", "deadline", "history", "state")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    request: _chat_pb2.ChatRequest
    user_id: str
    attempt: int
    deadline: _timestamp_pb2.Timestamp
    history: _containers.RepeatedCompositeFieldContainer[TurnRecord]
    state: _struct_pb2.Struct
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., request: _Optional[_Union[_chat_pb2.ChatRequest, _Mapping]] = ..., user_id: _Optional[str] = ..., attempt: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., history: _Optional[_Iterable[_Union[TurnRecord, _Mapping]]] = ..., state: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class AgentReply(_message.Message):
    __slots__ = ("text", "status_code", "extra", "items", "state")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    text: str
    status_code: int
    extra: _struct_pb2.Struct
    items: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    state: _struct_pb2.Struct
    def __init__(self, text: _Optional[str] = ..., status_code: _Optional[int] = ..., extra: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ..., state: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class AgentFailure(_message.Message):
    __slots__ = ("message", "retryable", "status_code", "retry_after", "spares_attempt")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    SPARES_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    message: str
    retryable: bool
    status_code: int
    retry_after: _duration_pb2.Duration
    spares_attempt: bool
    def __init__(self, message: _Optional[str] = ..., retryable: _Optional[bool] = ..., status_code: _Optional[int] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., spares_attempt: _Optional[bool] = ...) -> None: ...
