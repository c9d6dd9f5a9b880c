from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_TYPE_UNSPECIFIED: _ClassVar[EventType]
    EVENT_TYPE_MESSAGE_START: _ClassVar[EventType]
    EVENT_TYPE_TEXT_DELTA: _ClassVar[EventType]
    EVENT_TYPE_MESSAGE_END: _ClassVar[EventType]
    EVENT_TYPE_TOOL_CALL_START: _ClassVar[EventType]
    EVENT_TYPE_TOOL_CALL_ARGS: _ClassVar[EventType]
    EVENT_TYPE_TOOL_CALL_END: _ClassVar[EventType]
    EVENT_TYPE_TOOL_CALL_RESULT: _ClassVar[EventType]
    EVENT_TYPE_STEP_START: _ClassVar[EventType]
    EVENT_TYPE_STEP_END: _ClassVar[EventType]
    EVENT_TYPE_REASONING_START: _ClassVar[EventType]
    EVENT_TYPE_REASONING_DELTA: _ClassVar[EventType]
    EVENT_TYPE_REASONING_END: _ClassVar[EventType]
    EVENT_TYPE_AUDIO_DELTA: _ClassVar[EventType]
    EVENT_TYPE_INTERRUPT: _ClassVar[EventType]
    EVENT_TYPE_RUN_PAUSED: _ClassVar[EventType]
    EVENT_TYPE_CUSTOM: _ClassVar[EventType]
EVENT_TYPE_UNSPECIFIED: EventType
EVENT_TYPE_MESSAGE_START: EventType
EVENT_TYPE_TEXT_DELTA: EventType
EVENT_TYPE_MESSAGE_END: EventType
EVENT_TYPE_TOOL_CALL_START: EventType
EVENT_TYPE_TOOL_CALL_ARGS: EventType
EVENT_TYPE_TOOL_CALL_END: EventType
EVENT_TYPE_TOOL_CALL_RESULT: EventType
EVENT_TYPE_STEP_START: EventType
EVENT_TYPE_STEP_END: EventType
EVENT_TYPE_REASONING_START: EventType
EVENT_TYPE_REASONING_DELTA: EventType
EVENT_TYPE_REASONING_END: EventType
EVENT_TYPE_AUDIO_DELTA: EventType
EVENT_TYPE_INTERRUPT: EventType
EVENT_TYPE_RUN_PAUSED: EventType
EVENT_TYPE_CUSTOM: EventType

class ChatEvent(_message.Message):
    __slots__ = ("type", "message_id", "role", "content", "tool_call_id", "name", "data", "type_name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    type: EventType
    message_id: str
    role: str
    content: str
    tool_call_id: str
    name: str
    data: _struct_pb2.Struct
    type_name: str
    def __init__(self, type: _Optional[_Union[EventType, str]] = ..., message_id: _Optional[str] = ..., role: _Optional[str] = ..., content: _Optional[str] = ..., tool_call_id: _Optional[str] = ..., name: _Optional[str] = ..., data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., type_name: _Optional[str] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("attempt", "index", "event")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    index: int
    event: ChatEvent
    def __init__(self, attempt: _Optional[int] = ..., index: _Optional[int] = ..., event: _Optional[_Union[ChatEvent, _Mapping]] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("attempt", "index")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    index: int
    def __init__(self, attempt: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("attempt", "first", "last")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    first: int
    last: int
    def __init__(self, attempt: _Optional[int] = ..., first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...
