"""`ChatService`: chat over gRPC, by the same handler as over REST.

A call that is refused, and a `Chat` whose turn failed, end with a status and details; see
`turnline.hosting.grpc_errors`.  Metadata is read for the token and for the trace, as headers are.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import grpc.aio
from typing_extensions import override

from turnline.errors import DrainingError, NotFoundError, TurnlineError
from turnline.hosting.grpc_errors import end_call
from turnline.hosting.grpc_server import GrpcService
from turnline.protocol import Failure, ReplyKey
from turnline.protocol.json_body import ChatBody
from turnline.request_handler.callers import user_of
from turnline.request_handler.grpc_messages import (
    CANCEL_STATES,
    StreamMessages,
    read_after,
    read_body,
    read_request_id,
    read_wait,
    write_end,
)
from turnline.request_handler.handler import ChatCall, NoReply, TurnStream
from turnline.request_handler.preferences import answered_over_sockets
from turnline.request_handler.routes import RestParts
from turnline.request_handler.turn_reading import TurnReading
from turnline.request_handler.visit import RequestMetrics, Visit
from turnline.store import StoredReply
from turnline.telemetry import extract, names
from turnline.telemetry.traces import Span
from turnline.v1 import chat_service_pb2 as pb
from turnline.v1.chat_service_pb2_grpc import (
    ChatServiceServicer,
    add_ChatServiceServicer_to_server,
)

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["ChatService"].full_name

SURFACE = "grpc"

# Reading a larger request would hold up the loop for milliseconds.
_READ_HERE_BYTES = 16_384

# The caller left; nobody reads it, but it is counted.
_LEFT_STATUS = 499
_DRAINING_STATUS = DrainingError().meaning.http_status

_MODES = MappingProxyType(
    {
        "Chat": "rest_sync",
        "Submit": "rest_async",
        "GetReply": "read",
        "StreamChat": "stream",
        "Cancel": "cancel",
    }
)

Context = grpc.aio.ServicerContext[Any, Any]
TurnRequest = pb.ChatServiceChatRequest | pb.SubmitRequest | pb.StreamChatRequest


@dataclass(slots=True, kw_only=True)
class GrpcVisit(Visit):
    """One call.

    Attributes:
        user: the authenticated user; empty where nobody checks.
        request_id / session_id: of its turn, as far as they are known.
    """

    user: str = ""
    request_id: str = ""
    session_id: str = ""


_VISIT: ContextVar[GrpcVisit] = ContextVar("turnline_grpc_visit")


def make_service(parts: RestParts) -> GrpcService:
    """Make what a gRPC server serves; `open_grpc` calls it by this name."""
    chat = GrpcChat(parts)
    return GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_ChatServiceServicer_to_server(chat, server),
        authenticate=chat.authenticate,
    )


class GrpcChat(ChatServiceServicer):
    """Answers `ChatService`."""

    def __init__(self, parts: RestParts) -> None:
        self._parts = parts
        self._counted = RequestMetrics(parts.metrics, parts.clock)

    async def authenticate(self, method: str, metadata: Mapping[str, str | bytes]) -> None:
        """Find out who calls, and begin the visit that the method goes on with.

        Raises:
            UnauthenticatedError: no token, or one that is not accepted.
        """
        parts = self._parts
        visit = GrpcVisit(
            began=parts.clock.monotonic(), surface=SURFACE, mode=_MODES.get(method, "read")
        )
        token = metadata.get("authorization", "")
        try:
            visit.user = await user_of(
                token if isinstance(token, str) else "",
                parts.validator,
                parts.clock,
                surface=SURFACE,
            )
        except TurnlineError as error:
            visit.status = error.meaning.http_status
            self._counted.answered(visit)
            raise
        _VISIT.set(visit)

    @override
    async def Chat(
        self, request: pb.ChatServiceChatRequest, context: Context
    ) -> pb.ChatServiceChatResponse:
        """Run a turn and wait for its end; cancelled, the turn goes on."""
        response = pb.ChatServiceChatResponse()
        async with self._visit(context) as visit:
            with self._span(context, visit) as span:
                call = await self._call(request, visit, span)
                outcome = await self._parts.handler.chat(call)
                _named(visit, outcome)
                if isinstance(outcome, NoReply):
                    raise outcome.error
                visit.status = outcome.status_code
                span.set(status_code=visit.status)
                if isinstance(outcome.payload, Failure):
                    span.fail(outcome.payload.code)
            if isinstance(outcome.payload, Failure):
                await _end(context, visit, _as_stored(outcome, outcome.payload))
            write_end(outcome, response.end)
        return response

    @override
    async def Submit(self, request: pb.SubmitRequest, context: Context) -> pb.SubmitResponse:
        """Admit a turn."""
        async with self._visit(context) as visit:
            with self._span(context, visit) as span:
                call = await self._call(request, visit, span)
                turn = await self._parts.handler.submit(call)
                visit.status = 202
                span.set(status_code=visit.status)
        known = turn.known if not isinstance(turn, StoredReply) else True
        return pb.SubmitResponse(
            request_id=turn.request_id, session_id=turn.session_id, known=known
        )

    @override
    async def GetReply(self, request: pb.GetReplyRequest, context: Context) -> pb.GetReplyResponse:
        """Give the end of a turn if it has one."""
        response = pb.GetReplyResponse()
        async with self._visit(context) as visit:
            key = ReplyKey(visit.user, read_request_id(request.request_id))
            found = await self._parts.handler.poll(key, wait=read_wait(request))
            if found is None:
                raise NotFoundError("No turn of this request_id", field="request_id")
            if isinstance(found, StoredReply):
                write_end(found, response.end)
            else:
                response.pending.request_id = found.request_id
                response.pending.session_id = found.session_id
            visit.status = 200
        return response

    @override
    async def StreamChat(
        self, request: pb.StreamChatRequest, context: Context
    ) -> AsyncIterator[pb.StreamChatResponse]:
        """Give a turn's events; one is read when the one before it is on its way."""
        parts = self._parts
        async with self._visit(context) as visit:
            stream = await self._stream(request, context, visit)
            _named(visit, stream)
            visit.status = 200
            messages = StreamMessages(stream)
            reading = TurnReading(
                stream,
                waiting=parts.waiting,
                idle=parts.options.stream.idle,
                gaps=parts.metrics.counter(names.STREAM_GAPS_TOTAL),
            )
            async with aclosing(reading.items()) as items:
                yield messages.admitted()
                async for item in items:
                    if isinstance(item, Failure):
                        await _end(context, visit, item)
                        return
                    for message in messages.of(item):
                        yield message

    @override
    async def Cancel(self, request: pb.CancelRequest, context: Context) -> pb.CancelResponse:
        """Stop a turn."""
        async with self._visit(context) as visit:
            key = ReplyKey(visit.user, read_request_id(request.request_id))
            state = CANCEL_STATES[await self._parts.handler.cancel(key)]
            visit.status = 202 if state == pb.TURN_STATE_RUNNING else 200
        return pb.CancelResponse(state=state)

    @asynccontextmanager
    async def _visit(self, context: Context) -> AsyncIterator[GrpcVisit]:
        """Count a call, and end it with what is known of its turn if its block raises."""
        visit = _VISIT.get()
        try:
            yield visit
        except TurnlineError as error:
            await _end(context, visit, Failure.from_error(error))
        except (asyncio.CancelledError, GeneratorExit):
            # The server cuts off what outlasts the drain.
            visit.status = _DRAINING_STATUS if self._parts.waiting.closed else _LEFT_STATUS
            raise
        finally:
            self._counted.answered(visit)

    def _span(self, context: Context, visit: GrpcVisit) -> Span:
        headers = {
            name: value
            for name, value in context.invocation_metadata() or ()
            if isinstance(value, str)
        }
        return self._parts.tracing.start_span(
            names.REQUEST, extract(headers), surface=visit.surface, mode=visit.mode
        )

    async def _call(self, request: TurnRequest, visit: GrpcVisit, span: Span) -> ChatCall:
        options = self._parts.options
        if not options.keeps_answers:
            raise answered_over_sockets(options.mode)
        body = await _body(request)
        visit.request_id, visit.session_id = body.request_id, body.session_id
        span.set(session_id=body.session_id, request_id=body.request_id)
        return ChatCall(body=body, user=visit.user, trace=span.context, surface=visit.surface)

    async def _stream(
        self, request: pb.StreamChatRequest, context: Context, visit: GrpcVisit
    ) -> TurnStream:
        handler, after = self._parts.handler, read_after(request)
        if request.HasField("request"):
            with self._span(context, visit) as span:
                call = await self._call(request, visit, span)
                return await handler.submit_stream(call, after=after)
        visit.mode = "resume"
        key = ReplyKey(visit.user, read_request_id(request.request_id))
        return await handler.join_stream(key, after=after)


async def _body(request: TurnRequest) -> ChatBody:
    if request.ByteSize() <= _READ_HERE_BYTES:
        return read_body(request)
    return await asyncio.to_thread(read_body, request)


def _named(visit: GrpcVisit, turn: StoredReply | NoReply | TurnStream) -> None:
    visit.request_id, visit.session_id = turn.request_id, turn.session_id


def _as_stored(reply: StoredReply, failure: Failure) -> Failure:
    """The failure with the status its turn ended with, if that is one of a failure."""
    if 400 <= reply.status_code <= 599:
        return replace(failure, status_code=reply.status_code)
    return failure


async def _end(context: Context, visit: GrpcVisit, failure: Failure) -> None:
    visit.status = failure.status_code
    await end_call(context, failure, request_id=visit.request_id, session_id=visit.session_id)
