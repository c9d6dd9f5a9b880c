import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RetryHint(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRY_HINT_UNSPECIFIED: _ClassVar[RetryHint]
    RETRY_HINT_NEVER: _ClassVar[RetryHint]
    RETRY_HINT_NOW: _ClassVar[RetryHint]
    RETRY_HINT_AFTER: _ClassVar[RetryHint]
RETRY_HINT_UNSPECIFIED: RetryHint
RETRY_HINT_NEVER: RetryHint
RETRY_HINT_NOW: RetryHint
RETRY_HINT_AFTER: RetryHint

class Failure(_message.Message):
    __slots__ = ("code", "message", "status_code", "retry", "retry_after", "field")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    status_code: int
    retry: RetryHint
    retry_after: _duration_pb2.Duration
    field: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., status_code: _Optional[int] = ..., retry: _Optional[_Union[RetryHint, str]] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., field: _Optional[str] = ...) -> None: ...
