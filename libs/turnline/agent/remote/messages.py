"""Turns, replies and errors of agents as messages of `turnline.v1`, and back.

All raise InvalidRequestError, naming the field, for what one side holds and the other cannot.
"""

from turnline.agent.port import FatalAgentError, Reply, RetryableAgentError, Turn
from turnline.protocol import ChatRequest, TurnRecord
from turnline.protocol.json_struct import read_struct, write_struct
from turnline.protocol.messages import (
    read_duration,
    read_request,
    read_time,
    write_duration,
    write_request,
    write_time,
)
from turnline.v1 import agent_pb2 as pb


def write_turn(turn: Turn, agent: str, message: pb.Turn) -> None:
    """Write a turn for the agent of that name."""
    message.request_id = turn.request_id
    message.session_id = turn.session_id
    message.user_id = turn.user_id
    message.attempt = turn.attempt
    write_request(_request_of(turn, agent), message.request)
    if turn.deadline:
        write_time(turn.deadline, message.deadline)
    for record in turn.history:
        _write_record(record, message.history.add())
    if turn.state:
        write_struct(turn.state, message.state, field="state")


def read_turn(message: pb.Turn) -> Turn:
    """Give a turn as its agent sees it."""
    request = read_request(message.request)
    return Turn(
        request_id=message.request_id,
        session_id=message.session_id,
        prompt=request.prompt,
        history=tuple(_read_record(record) for record in message.history),
        state=read_struct(message.state, field="state") if message.HasField("state") else {},
        files=request.files,
        images=request.images,
        user_id=message.user_id,
        group_id=request.group_id,
        thread_name=request.thread_name,
        attempt=max(1, message.attempt),
        deadline=_read_deadline(message),
        resume=request.resume,
        requests=request.requests,
        scheduled_task_id=request.scheduled_task_id,
        scheduled_time=request.scheduled_time,
        extra=request.extra,
    )


def write_reply(reply: Reply, turn: Turn, message: pb.AgentReply) -> None:
    """Write an answer, with the state its agent left."""
    message.SetInParent()
    message.text = reply.text
    message.status_code = reply.status_code
    if reply.extra:
        write_struct(reply.extra, message.extra, field="extra")
    for item in reply.items:
        write_struct(item, message.items.add(), field="items")
    # Present even if it is empty, which clears what was there.
    write_struct(turn.state, message.state, field="state")


def read_reply(message: pb.AgentReply, turn: Turn) -> Reply:
    """Give an answer, and put the state it came with into the turn."""
    if message.HasField("state"):
        state = read_struct(message.state, field="state")
        turn.state.clear()
        turn.state.update(state)
    return Reply(
        text=message.text,
        status_code=message.status_code or 200,
        extra=read_struct(message.extra, field="extra") if message.HasField("extra") else {},
        items=tuple(read_struct(item, field="items") for item in message.items),
    )


def write_error(error: Exception, message: pb.AgentFailure) -> None:
    """Write why there is no answer; of what an agent did not raise on purpose, no detail."""
    message.SetInParent()
    match error:
        case FatalAgentError():
            message.message = error.message
            message.status_code = error.status_code
        case RetryableAgentError():
            message.message = str(error)
            message.retryable = True
            message.spares_attempt = not error.spends_attempt
            if error.retry_after is not None:
                write_duration(max(0.0, error.retry_after), message.retry_after)
        case _:
            message.message = f"the agent ended with {type(error).__name__}"
            message.retryable = True


def read_error(message: pb.AgentFailure) -> FatalAgentError | RetryableAgentError:
    """Give the error that says the same."""
    if not message.retryable:
        status = message.status_code if 400 <= message.status_code <= 599 else 500
        return FatalAgentError(message.message, status_code=status)
    after = None
    if message.HasField("retry_after"):
        after = read_duration(message.retry_after, field="retry_after")
    return RetryableAgentError(
        message.message, retry_after=after, spends_attempt=not message.spares_attempt
    )


def _request_of(turn: Turn, agent: str) -> ChatRequest:
    return ChatRequest(
        prompt=turn.prompt,
        agent=agent,
        user_id=turn.user_id,
        group_id=turn.group_id,
        thread_name=turn.thread_name,
        files=tuple(turn.files),
        images=tuple(turn.images),
        resume=turn.resume,
        requests=tuple(turn.requests),
        scheduled_task_id=turn.scheduled_task_id,
        scheduled_time=turn.scheduled_time,
        extra=turn.extra,
    )


def _write_record(record: TurnRecord, message: pb.TurnRecord) -> None:
    message.request_id = record.request_id
    message.prompt = record.prompt
    message.reply = record.reply
    message.agent = record.agent
    write_time(record.at, message.at)
    for item in record.items:
        write_struct(item, message.items.add(), field="items")


def _read_record(message: pb.TurnRecord) -> TurnRecord:
    return TurnRecord(
        request_id=message.request_id,
        prompt=message.prompt,
        reply=message.reply,
        agent=message.agent,
        at=read_time(message.at, field="at"),
        items=tuple(read_struct(item, field="items") for item in message.items),
    )


def _read_deadline(message: pb.Turn) -> float:
    return read_time(message.deadline, field="deadline") if message.HasField("deadline") else 0.0
