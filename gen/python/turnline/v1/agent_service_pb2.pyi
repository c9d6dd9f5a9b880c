from turnline.v1 import agent_pb2 as _agent_pb2
from turnline.v1 import chunk_pb2 as _chunk_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunRequest(_message.Message):
    __slots__ = ("agent", "turn")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    agent: str
    turn: _agent_pb2.Turn
    def __init__(self, agent: _Optional[str] = ..., turn: _Optional[_Union[_agent_pb2.Turn, _Mapping]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunResponse(_message.Message):
    __slots__ = ("heartbeat", "event", "reply", "failure")
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    heartbeat: Heartbeat
    event: _chunk_pb2.ChatEvent
    reply: _agent_pb2.AgentReply
    failure: _agent_pb2.AgentFailure
    def __init__(self, heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., event: _Optional[_Union[_chunk_pb2.ChatEvent, _Mapping]] = ..., reply: _Optional[_Union[_agent_pb2.AgentReply, _Mapping]] = ..., failure: _Optional[_Union[_agent_pb2.AgentFailure, _Mapping]] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[_agent_pb2.AgentInfo]
    def __init__(self, agents: _Optional[_Iterable[_Union[_agent_pb2.AgentInfo, _Mapping]]] = ...) -> None: ...
