from turnline.v1 import push_pb2 as _push_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PushRequest(_message.Message):
    __slots__ = ("frames", "hold")
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    frames: _push_pb2.UserFrames
    hold: bool
    def __init__(self, frames: _Optional[_Union[_push_pb2.UserFrames, _Mapping]] = ..., hold: _Optional[bool] = ...) -> None: ...

class PushResponse(_message.Message):
    __slots__ = ("connections", "held")
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    connections: int
    held: bool
    def __init__(self, connections: _Optional[int] = ..., held: _Optional[bool] = ...) -> None: ...
