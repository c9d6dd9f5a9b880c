"""What is recorded of a turn, and what is handed on when nothing is recorded."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turnline.errors import StoreUnavailableError
from turnline.protocol import ChatReply, ChatRequest, Envelope, TraceContext
from turnline.telemetry import (
    Tracing,
    UndeclaredError,
    captured_logs,
    configure_tracing,
    extract,
    get_logger,
    inject,
    names,
)

_CLIENT = TraceContext(traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01", tracestate="v=1")
_log = get_logger("runner")


class _Recorded:
    """One process's tracing, and the spans it exported."""

    def __init__(self, *, strict: bool = True, sample_ratio: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracing: Tracing = configure_tracing(
            None, "test", self._exporter, strict=strict, sample_ratio=sample_ratio
        )

    async def spans(self) -> list[ReadableSpan]:
        """Shut tracing down and give its spans in the order they ended."""
        assert await self.tracing.shutdown(seconds=10)
        return list(self._exporter.get_finished_spans())


def _trace_id(span: ReadableSpan) -> int:
    assert span.context is not None
    found: int = span.context.trace_id
    return found


def _parent_id(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


async def test_one_request_is_one_trace_and_its_attempts_are_siblings() -> None:
    front, runner, responder = _Recorded(), _Recorded(), _Recorded()
    ids = {"request_id": "r", "session_id": "s"}

    with front.tracing.start_span(names.REQUEST, _CLIENT, surface="rest", **ids) as request:
        envelope = Envelope(
            request_id="r",
            session_id="s",
            trace=request.context,
            payload=ChatRequest(prompt="a pony"),
        )
        with front.tracing.start_span(names.ENQUEUE, queue="input", **ids):
            pass
    for attempt in (1, 2):
        with (
            runner.tracing.start_span(names.ATTEMPT, envelope.trace, attempt=attempt, **ids),
            runner.tracing.start_span(names.AGENT_RUN, agent="echo", **ids),
        ):
            pass
    answer = envelope.answer(attempt=2, payload=ChatReply(result="no"))
    with responder.tracing.start_span(names.ANSWER, answer.trace, attempt=2, **ids):
        pass

    enqueue, first = await front.spans()
    agent, attempt_1, _, attempt_2 = await runner.spans()
    (stored,) = await responder.spans()
    everything = [first, enqueue, agent, attempt_1, attempt_2, stored]
    assert {_trace_id(span) for span in everything} == {int("a" * 32, 16)}
    assert _parent_id(first) == int("b" * 16, 16)
    assert first.context is not None
    siblings = [enqueue, attempt_1, attempt_2, stored]
    assert {_parent_id(span) for span in siblings} == {first.context.span_id}
    assert attempt_1.context is not None
    assert _parent_id(agent) == attempt_1.context.span_id


async def test_a_span_has_its_declared_name_kind_and_attributes() -> None:
    recorded = _Recorded()

    with recorded.tracing.start_span(names.ATTEMPT, attempt=1, fence=7) as span:
        span.set(result="ended")

    (found,) = await recorded.spans()
    assert found.name == "turn.attempt"
    assert found.kind is trace.SpanKind.CONSUMER
    assert found.attributes == {
        "turnline.attempt": 1,
        "turnline.fence": 7,
        "turnline.result": "ended",
    }
    assert found.resource.attributes["service.name"] == "test"


def test_strict_tracing_raises_for_undeclared_attributes() -> None:
    with pytest.raises(UndeclaredError):
        _Recorded().tracing.start_span(names.COMMIT, prompt="a pony")


async def test_undeclared_attributes_are_dropped_where_tracing_is_not_strict() -> None:
    recorded = _Recorded(strict=False)

    with recorded.tracing.start_span(names.COMMIT, request_id="r") as span:
        span.set(prompt="a pony")

    (found,) = await recorded.spans()
    assert found.attributes == {"turnline.request_id": "r"}


@pytest.mark.parametrize(
    ("error", "code"),
    [(StoreUnavailableError("a pony"), "store_unavailable"), (ValueError("a pony"), "ValueError")],
)
async def test_a_failed_span_holds_the_code_of_its_error_and_not_its_text(
    error: Exception, code: str
) -> None:
    recorded = _Recorded()

    with pytest.raises(type(error)), recorded.tracing.start_span(names.COMMIT):
        raise error

    (found,) = await recorded.spans()
    assert found.status.status_code is trace.StatusCode.ERROR
    assert found.attributes == {"error.type": code}
    assert "a pony" not in found.to_json()


async def test_a_cancelled_span_is_not_a_failed_one() -> None:
    recorded = _Recorded()

    with pytest.raises(asyncio.CancelledError), recorded.tracing.start_span(names.AGENT_RUN):
        raise asyncio.CancelledError

    (found,) = await recorded.spans()
    assert found.status.status_code is trace.StatusCode.UNSET
    assert found.attributes == {"turnline.cancelled": True}


async def test_spans_of_an_agents_own_instrumentation_become_children() -> None:
    recorded = _Recorded()

    with recorded.tracing.start_span(names.AGENT_RUN) as span:
        current = trace.get_current_span().get_span_context()

    assert trace.format_span_id(current.span_id) in span.context.traceparent
    assert not trace.get_current_span().get_span_context().is_valid


async def test_lines_logged_inside_a_span_name_it() -> None:
    recorded = _Recorded()

    with captured_logs() as records:
        with recorded.tracing.start_span(names.ATTEMPT) as span:
            _log.info("turn.started")
        _log.info("process.stopped")

    trace_id, span_id = span.context.traceparent.split("-")[1:3]
    assert (records[0]["trace_id"], records[0]["span_id"]) == (trace_id, span_id)
    assert "trace_id" not in records[1]


async def test_the_current_context_is_the_innermost_spans() -> None:
    recorded = _Recorded()

    with recorded.tracing.start_span(names.ATTEMPT, _CLIENT) as span:
        inside = recorded.tracing.current()

    assert inside == span.context
    assert inside.tracestate == "v=1"
    assert recorded.tracing.current() == TraceContext()


async def test_traces_that_are_not_sampled_keep_their_id_and_record_nothing() -> None:
    recorded = _Recorded(sample_ratio=0.0)

    with recorded.tracing.start_span(names.REQUEST, TraceContext()) as span:
        pass

    flags = int(span.context.traceparent[-2:], 16)
    assert flags & 1 == 0
    assert await recorded.spans() == []


async def test_a_context_that_is_nonsense_starts_a_trace_of_its_own() -> None:
    recorded = _Recorded()

    with recorded.tracing.start_span(names.ATTEMPT, TraceContext(traceparent="nonsense")):
        pass

    (found,) = await recorded.spans()
    assert found.parent is None


class _HangingExporter(SpanExporter):
    """A collector that does not answer until told to."""

    def __init__(self) -> None:
        self.answer = threading.Event()

    def export(self, _spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.answer.wait()
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


async def test_a_collector_that_hangs_does_not_hold_up_the_end() -> None:
    exporter = _HangingExporter()
    tracing = configure_tracing(None, "test", exporter)
    with tracing.start_span(names.REQUEST):
        pass

    with captured_logs() as records:
        flushed = await tracing.shutdown(seconds=0.01)
    exporter.answer.set()

    assert not flushed
    assert [record["event"] for record in records] == ["tracing.unflushed"]


async def test_spans_that_ended_are_sent_when_asked_for_and_later_ones_are_still_taken() -> None:
    exporter = InMemorySpanExporter()
    tracing = configure_tracing(None, "test", exporter)
    counts = []

    for _ in range(2):
        with tracing.start_span(names.REQUEST):
            pass
        assert await tracing.flush(seconds=10)
        counts.append(len(exporter.get_finished_spans()))

    assert counts == [1, 2]
    await tracing.shutdown(seconds=10)


async def test_a_collector_that_hangs_is_waited_for_once_and_told_once() -> None:
    exporter = _HangingExporter()
    tracing = configure_tracing(None, "test", exporter)
    with tracing.start_span(names.REQUEST):
        pass

    with captured_logs() as records:
        first = await tracing.flush(seconds=0.01)
        began = time.monotonic()
        second = await tracing.flush(seconds=60)
    waited = time.monotonic() - began
    exporter.answer.set()

    assert (first, second) == (False, False)
    assert waited < 10
    assert [record["event"] for record in records] == ["tracing.unflushed"]


class _Collector(HTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Keep)
        self.received: list[tuple[str, bytes]] = []


class _Keep(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, _Collector)
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@pytest.mark.parametrize("path", ["", "/", "/v1/traces"])
async def test_spans_reach_a_collector_over_http(path: str) -> None:
    with _Collector() as collector:
        serving = threading.Thread(target=collector.handle_request, daemon=True)
        serving.start()
        tracing = configure_tracing(f"http://127.0.0.1:{collector.server_port}{path}", "gateway")

        with tracing.start_span(names.PUSH, frames=3):
            pass
        assert await tracing.shutdown(seconds=10)

    ((where, body),) = collector.received
    assert where == "/v1/traces"
    assert b"turn.push" in body
    assert b"gateway" in body


def test_without_an_endpoint_a_clients_context_is_handed_on() -> None:
    tracing = configure_tracing(None, "test")

    with tracing.start_span(names.REQUEST, _CLIENT) as request:
        with tracing.start_span(names.ENQUEUE) as enqueue:
            enqueue.set(queue="input")
        inside = tracing.current()

    assert request.context == enqueue.context == inside == _CLIENT
    assert tracing.current() == TraceContext()


async def test_without_an_endpoint_there_is_nothing_to_flush() -> None:
    tracing = configure_tracing("", "test")

    assert await tracing.flush(seconds=0)
    assert await tracing.shutdown(seconds=0)


def test_a_span_that_is_not_recorded_costs_next_to_nothing() -> None:
    tracing = configure_tracing(None, "test")
    rounds = []

    for _ in range(5):
        start = time.perf_counter()
        for _ in range(500):
            with tracing.start_span(names.ATTEMPT, _CLIENT, attempt=1):
                pass
        rounds.append((time.perf_counter() - start) / 500)

    # Budget: 2 microseconds; the margin is for a busy machine.
    assert min(rounds) < 10e-6


def test_importing_telemetry_loads_no_tracing_sdk() -> None:
    program = "import sys, turnline.telemetry; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "prometheus_client" in loaded
    assert not loaded & {"opentelemetry", "structlog", "rich", "requests", "google", "starlette"}


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "nonsense",
        "00-" + "0" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "0" * 16 + "-01",
        "ff-" + "a" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "A" * 32 + "-" + "b" * 16 + "-01",
        "00-" + "a" * 32 + "-" + "b" * 16 + "-01-more",
        "01-" + "a" * 32 + "-" + "b" * 16 + "-01-" + "x" * 600,
    ],
)
def test_headers_that_hold_no_context_give_an_empty_one(traceparent: str) -> None:
    assert extract({"traceparent": traceparent, "tracestate": "v=1"}) == TraceContext()


def test_a_context_survives_its_headers() -> None:
    assert extract(inject(_CLIENT)) == _CLIENT
    assert inject(TraceContext()) == {}


@pytest.mark.parametrize("tracestate", ["v=" + "x" * 600, "v=1\r\nx: y"])
def test_a_tracestate_that_is_too_long_or_no_header_is_left_out(tracestate: str) -> None:
    headers = {"traceparent": _CLIENT.traceparent, "tracestate": tracestate}

    assert extract(headers) == TraceContext(traceparent=_CLIENT.traceparent)
