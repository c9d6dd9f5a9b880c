"""The REST routes: HTTP in, calls on the chat handler, HTTP out.

One resource per path, so that a wrong method is told every right one.  Resources are plain ASGI
apps; what they do not render themselves is rendered by the app of `turnline.frontdoor.web_app`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from turnline.auth import AuthValidator
from turnline.errors import InvalidRequestError, TurnlineError
from turnline.frontdoor import error_response, json_response
from turnline.protocol import ReplyKey, check_id
from turnline.protocol.clock import Clock
from turnline.protocol.json_body import parse_chat_body
from turnline.request_handler.answers import (
    CHAT_PATH,
    accepted_response,
    cancel_response,
    chat_response,
    ended_response,
    not_ready_response,
)
from turnline.request_handler.body import BodyLimits, parse_json, read_body
from turnline.request_handler.callers import user_of
from turnline.request_handler.event_stream import EventStream, EventStreamOptions
from turnline.request_handler.handler import ChatCall, ChatHandler, TurnStream
from turnline.request_handler.multipart import read_form
from turnline.request_handler.openapi import openapi_document
from turnline.request_handler.preferences import (
    Preference,
    ReplyMode,
    answered_over_sockets,
    read_headers,
    read_preference,
    stream_position,
    turn_name,
    wait_seconds,
    wants_event_stream,
)
from turnline.request_handler.visit import HttpVisit, RequestMetrics
from turnline.request_handler.waiting import WaitingRoom
from turnline.store import StoredReply
from turnline.telemetry import Metrics, Tracing, extract, names

MULTIPART_PATH = "/api/v1/chat-multipart"
AGENTS_PATH = "/api/v1/agents"
OPENAPI_PATH = "/openapi.json"

Answer = Response | EventStream
AgentNames = Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestOptions:
    """How the routes behave.

    Attributes:
        mode: how a POST is answered that asks for nothing else (`execution.mode`).
        keeps_answers: whether answers come to a store that this process reads; without one no
            turn can be answered here.
        limits: bounds of request bodies.
        stream: bounds of event streams.
    """

    mode: ReplyMode
    limits: BodyLimits
    stream: EventStreamOptions
    keeps_answers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RestParts:
    """What the routes work on.

    Attributes:
        validator: checks bearer tokens; None leaves the routes open, and every caller shares one
            scope.
        agents: names for `GET /api/v1/agents`; None turns that route off.
    """

    handler: ChatHandler
    waiting: WaitingRoom
    clock: Clock
    metrics: Metrics
    tracing: Tracing
    options: RestOptions
    validator: AuthValidator | None = None
    agents: AgentNames | None = None


def build_routes(parts: RestParts) -> list[BaseRoute]:
    """Make the routes of chat, agents and the OpenAPI document."""
    counted = RequestMetrics(parts.metrics, parts.clock)
    routes: list[BaseRoute] = [
        Route(CHAT_PATH, ChatResource(parts, counted)),
        Route(MULTIPART_PATH, MultipartResource(parts, counted)),
        Route(OPENAPI_PATH, OpenApiResource(parts, counted)),
    ]
    if parts.agents is not None:
        routes.append(Route(AGENTS_PATH, AgentsResource(parts, counted)))
    return routes


class Resource:
    """One path: dispatches methods, knows who calls, counts what was answered."""

    METHODS: tuple[str, ...] = ("GET", "HEAD")

    def __init__(self, parts: RestParts, counted: RequestMetrics) -> None:
        self._parts = parts
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        method = scope["method"]
        visit = HttpVisit(
            method=method,
            mode=self._parts.options.mode.value if method == "POST" else "read",
            headers=read_headers(scope["headers"]),
            query=scope["query_string"],
            receive=receive,
            began=self._parts.clock.monotonic(),
        )
        try:
            answer = await self._answer(visit)
            await answer(scope, receive, send)
            visit.status = answer.status_code
        except HTTPException as error:
            visit.status = error.status_code
            raise
        finally:
            self._counted.answered(visit)

    async def _answer(self, visit: HttpVisit) -> Answer:
        if visit.method not in self.METHODS:
            raise HTTPException(405, headers={"Allow": ", ".join(self.METHODS)})
        try:
            return await self.answer(visit, await self._user(visit))
        except TurnlineError as error:
            return error_response(error)

    async def answer(self, visit: HttpVisit, user: str, /) -> Answer:
        """Answer an allowed method of an authenticated user (empty where nobody checks)."""
        raise NotImplementedError

    async def _user(self, visit: HttpVisit, /) -> str:
        parts = self._parts
        return await user_of(
            visit.header("authorization"), parts.validator, parts.clock, surface="rest"
        )

    def _event_stream(self, stream: TurnStream, *, fails_as_status: bool) -> EventStream:
        parts = self._parts
        return EventStream(
            stream,
            waiting=parts.waiting,
            clock=parts.clock,
            options=parts.options.stream,
            gaps=parts.metrics.counter(names.STREAM_GAPS_TOTAL),
            fails_as_status=fails_as_status,
        )


class PostingResource(Resource):
    """A path that takes chat requests; how the body is written is the subclass's business."""

    async def body(self, visit: HttpVisit) -> object:
        """Read the body into the object `parse_chat_body` takes."""
        raise NotImplementedError

    async def post(self, visit: HttpVisit, user: str) -> Answer:
        """Admit a turn and answer as the caller prefers."""
        preference = read_preference(accept=visit.header("accept"), prefer=visit.header("prefer"))
        mode = preference.mode or self._parts.options.mode
        visit.mode = mode.value
        visit.surface = "sse" if mode is ReplyMode.STREAM else "rest"
        raw = await self.body(visit)
        with self._parts.tracing.start_span(
            names.REQUEST, extract(visit.headers), surface=visit.surface, mode=visit.mode
        ) as span:
            try:
                body = parse_chat_body(raw)
                if key := visit.header("idempotency-key"):
                    body = replace(body, request_id=turn_name(header=key, body=body.request_id))
                span.set(session_id=body.session_id, request_id=body.request_id)
                call = ChatCall(body=body, user=user, trace=span.context, surface=visit.surface)
                answer = await self._chat(call, mode, preference, visit)
            except TurnlineError as error:
                span.fail(error.code.value)
                session_id, request_id = _ids_in(raw, visit)
                answer = error_response(error, session_id=session_id, request_id=request_id)
            span.set(status_code=answer.status_code)
            return answer

    async def _chat(
        self, call: ChatCall, mode: ReplyMode, preference: Preference, visit: HttpVisit
    ) -> Answer:
        handler = self._parts.handler
        if not self._parts.options.keeps_answers:
            raise answered_over_sockets(self._parts.options.mode)
        match mode:
            case ReplyMode.SYNC:
                return chat_response(await handler.chat(call))
            case ReplyMode.ASYNC:
                outcome = await handler.submit(call, wait=preference.wait)
                if isinstance(outcome, StoredReply):
                    return ended_response(outcome, applied=preference.applied)
                return accepted_response(outcome, applied=preference.applied)
            case ReplyMode.STREAM:
                after = stream_position(visit.header("last-event-id"))
                stream = await handler.submit_stream(call, after=after)
                return self._event_stream(stream, fails_as_status=True)
            case ReplyMode.SOCKET:
                raise answered_over_sockets(mode)


class ChatResource(PostingResource):
    """`/api/v1/chat`: POST a turn, GET its answer or stream, DELETE to cancel it."""

    METHODS = ("DELETE", "GET", "HEAD", "POST")

    async def answer(self, visit: HttpVisit, user: str, /) -> Answer:
        """Answer any of the methods."""
        if visit.method == "POST":
            return await self.post(visit, user)
        query = QueryParams(visit.query)
        session_id = query.get("session_id", "")
        try:
            key = ReplyKey(user, _request_id(query))
            if visit.method == "DELETE":
                return await self._cancel(key, visit)
            if visit.method == "GET" and wants_event_stream(visit.header("accept")):
                return await self._join(key, query, visit)
            return await self._poll(key, session_id, query)
        except TurnlineError as error:
            return error_response(error, session_id=session_id)

    async def body(self, visit: HttpVisit) -> object:
        """Read JSON."""
        limits = self._parts.options.limits
        body = await read_body(
            visit.receive,
            length=visit.header("content-length"),
            max_bytes=limits.max_bytes,
            timeout=limits.timeout,
        )
        return parse_json(body, content_type=visit.header("content-type"))

    async def _poll(self, key: ReplyKey, session_id: str, query: QueryParams) -> Response:
        wait = wait_seconds(query.get("wait", ""))
        found = await self._parts.handler.poll(key, wait=wait)
        if isinstance(found, StoredReply):
            return ended_response(found)
        return not_ready_response(
            request_id=key.request_id, session_id=session_id, pending=found is not None
        )

    async def _join(self, key: ReplyKey, query: QueryParams, visit: HttpVisit) -> EventStream:
        visit.surface, visit.mode = "sse", "resume"
        last = visit.header("last-event-id") or query.get("last_event_id", "")
        stream = await self._parts.handler.join_stream(key, after=stream_position(last))
        return self._event_stream(stream, fails_as_status=False)

    async def _cancel(self, key: ReplyKey, visit: HttpVisit) -> Response:
        visit.mode = "cancel"
        state = await self._parts.handler.cancel(key)
        return cancel_response(state, request_id=key.request_id)


class MultipartResource(PostingResource):
    """`/api/v1/chat-multipart`: POST a turn with files as form parts."""

    METHODS = ("POST",)

    async def answer(self, visit: HttpVisit, user: str, /) -> Answer:
        """Answer POST."""
        return await self.post(visit, user)

    async def body(self, visit: HttpVisit) -> object:
        """Read a form."""
        return await read_form(visit.headers, visit.receive, self._parts.options.limits)


class AgentsResource(Resource):
    """`/api/v1/agents`: the names of agents."""

    async def answer(self, _visit: HttpVisit, _name: str, /) -> Answer:
        """Answer GET."""
        agents = self._parts.agents
        return json_response(200, {"agents": list(agents()) if agents is not None else []})


class OpenApiResource(Resource):
    """`/openapi.json`: the document of these routes, open to everybody."""

    async def _user(self, _visit: HttpVisit, /) -> str:
        return ""

    async def answer(self, _visit: HttpVisit, _name: str, /) -> Answer:
        """Answer GET."""
        parts = self._parts
        document = openapi_document(
            authenticated=parts.validator is not None, agents=parts.agents is not None
        )
        return json_response(200, document)


def _request_id(query: QueryParams) -> str:
    request_id = query.get("request_id", "")
    if not request_id:
        raise InvalidRequestError("request_id is required", field="request_id")
    return check_id(request_id, field="request_id")


def _ids_in(raw: object, visit: HttpVisit) -> tuple[str, str]:
    """Find session and request id of a request that was refused; empty where there is no id."""
    fields: Mapping[Any, Any] = raw if isinstance(raw, dict) else {}
    request_id = visit.header("idempotency-key") or fields.get("request_id")
    return _id_or_empty(fields.get("session_id")), _id_or_empty(request_id)


def _id_or_empty(value: object) -> str:
    try:
        return check_id(value, field="id")
    except InvalidRequestError:
        return ""
