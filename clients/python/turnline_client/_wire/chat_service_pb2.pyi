import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from turnline_client._wire import chat_pb2 as _chat_pb2
from turnline_client._wire import chunk_pb2 as _chunk_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TurnState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_STATE_UNSPECIFIED: _ClassVar[TurnState]
    TURN_STATE_QUEUED: _ClassVar[TurnState]
    TURN_STATE_RUNNING: _ClassVar[TurnState]
    TURN_STATE_DONE: _ClassVar[TurnState]
TURN_STATE_UNSPECIFIED: TurnState
TURN_STATE_QUEUED: TurnState
TURN_STATE_RUNNING: TurnState
TURN_STATE_DONE: TurnState

class ChatServiceChatRequest(_message.Message):
    __slots__ = ("session_id", "request_id", "request")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    request_id: str
    request: _chat_pb2.ChatRequest
    def __init__(self, session_id: _Optional[str] = ..., request_id: _Optional[str] = ..., request: _Optional[_Union[_chat_pb2.ChatRequest, _Mapping]] = ...) -> None: ...

class ChatServiceChatResponse(_message.Message):
    __slots__ = ("end",)
    END_FIELD_NUMBER: _ClassVar[int]
    end: _chat_pb2.TurnEnd
    def __init__(self, end: _Optional[_Union[_chat_pb2.TurnEnd, _Mapping]] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("session_id", "request_id", "request")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    request_id: str
    request: _chat_pb2.ChatRequest
    def __init__(self, session_id: _Optional[str] = ..., request_id: _Optional[str] = ..., request: _Optional[_Union[_chat_pb2.ChatRequest, _Mapping]] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("request_id", "session_id", "known")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    known: bool
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., known: _Optional[bool] = ...) -> None: ...

class GetReplyRequest(_message.Message):
    __slots__ = ("request_id", "wait")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    wait: _duration_pb2.Duration
    def __init__(self, request_id: _Optional[str] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PendingTurn(_message.Message):
    __slots__ = ("request_id", "session_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class GetReplyResponse(_message.Message):
    __slots__ = ("pending", "end")
    PENDING_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    pending: PendingTurn
    end: _chat_pb2.TurnEnd
    def __init__(self, pending: _Optional[_Union[PendingTurn, _Mapping]] = ..., end: _Optional[_Union[_chat_pb2.TurnEnd, _Mapping]] = ...) -> None: ...

class StreamChatRequest(_message.Message):
    __slots__ = ("session_id", "request_id", "request", "after")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    request_id: str
    request: _chat_pb2.ChatRequest
    after: _chunk_pb2.Position
    def __init__(self, session_id: _Optional[str] = ..., request_id: _Optional[str] = ..., request: _Optional[_Union[_chat_pb2.ChatRequest, _Mapping]] = ..., after: _Optional[_Union[_chunk_pb2.Position, _Mapping]] = ...) -> None: ...

class Restart(_message.Message):
    __slots__ = ("attempt",)
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    def __init__(self, attempt: _Optional[int] = ...) -> None: ...

class StreamChatResponse(_message.Message):
    __slots__ = ("admitted", "chunk", "gap", "restart", "end")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    admitted: SubmitResponse
    chunk: _chunk_pb2.Chunk
    gap: _chunk_pb2.Gap
    restart: Restart
    end: _chat_pb2.TurnEnd
    def __init__(self, admitted: _Optional[_Union[SubmitResponse, _Mapping]] = ..., chunk: _Optional[_Union[_chunk_pb2.Chunk, _Mapping]] = ..., gap: _Optional[_Union[_chunk_pb2.Gap, _Mapping]] = ..., restart: _Optional[_Union[Restart, _Mapping]] = ..., end: _Optional[_Union[_chat_pb2.TurnEnd, _Mapping]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    def __init__(self, request_id: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: TurnState
    def __init__(self, state: _Optional[_Union[TurnState, str]] = ...) -> None: ...
