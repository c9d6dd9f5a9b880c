import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from turnline.v1 import chat_pb2 as _chat_pb2
from turnline.v1 import chunk_pb2 as _chunk_pb2
from turnline.v1 import failure_pb2 as _failure_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeliveryMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_MODE_UNSPECIFIED: _ClassVar[DeliveryMode]
    DELIVERY_MODE_KEEP: _ClassVar[DeliveryMode]
    DELIVERY_MODE_KEEP_STREAM: _ClassVar[DeliveryMode]
    DELIVERY_MODE_PUSH: _ClassVar[DeliveryMode]
    DELIVERY_MODE_PUSH_STREAM: _ClassVar[DeliveryMode]
DELIVERY_MODE_UNSPECIFIED: DeliveryMode
DELIVERY_MODE_KEEP: DeliveryMode
DELIVERY_MODE_KEEP_STREAM: DeliveryMode
DELIVERY_MODE_PUSH: DeliveryMode
DELIVERY_MODE_PUSH_STREAM: DeliveryMode

class TraceContext(_message.Message):
    __slots__ = ("traceparent", "tracestate")
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    traceparent: str
    tracestate: str
    def __init__(self, traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("request_id", "session_id", "scope", "user_id", "delivery_mode", "status_code", "chunks", "request", "reply", "failure", "chunk_count", "attempt", "fence", "deadline", "enqueued_at", "trace", "attributes")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_MODE_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CHUNK_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    scope: str
    user_id: str
    delivery_mode: DeliveryMode
    status_code: int
    chunks: _containers.RepeatedCompositeFieldContainer[_chunk_pb2.Chunk]
    request: _chat_pb2.ChatRequest
    reply: _chat_pb2.ChatReply
    failure: _failure_pb2.Failure
    chunk_count: int
    attempt: int
    fence: int
    deadline: _timestamp_pb2.Timestamp
    enqueued_at: _timestamp_pb2.Timestamp
    trace: TraceContext
    attributes: _containers.ScalarMap[str, str]
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., scope: _Optional[str] = ..., user_id: _Optional[str] = ..., delivery_mode: _Optional[_Union[DeliveryMode, str]] = ..., status_code: _Optional[int] = ..., chunks: _Optional[_Iterable[_Union[_chunk_pb2.Chunk, _Mapping]]] = ..., request: _Optional[_Union[_chat_pb2.ChatRequest, _Mapping]] = ..., reply: _Optional[_Union[_chat_pb2.ChatReply, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., chunk_count: _Optional[int] = ..., attempt: _Optional[int] = ..., fence: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., enqueued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., trace: _Optional[_Union[TraceContext, _Mapping]] = ..., attributes: _Optional[_Mapping[str, str]] = ...) -> None: ...
