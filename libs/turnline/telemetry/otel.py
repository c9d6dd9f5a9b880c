"""Tracing on the OpenTelemetry SDK; loaded by `traces.configure_tracing` when it is on.

The provider is this process's own: an application that installed a global one keeps it.  Spans
that an agent's framework makes become children of `agent.run` all the same, since the current span
is OpenTelemetry's.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from turnline.errors import TurnlineError
from turnline.protocol import TraceContext
from turnline.telemetry.context import bind
from turnline.telemetry.logs import get_logger
from turnline.telemetry.schema import SpanKind, SpanSpec, UndeclaredError
from turnline.telemetry.tracebacks import type_name
from turnline.telemetry.traces import AttributeValue

_log = get_logger("telemetry")

_TRACES_PATH = "/v1/traces"
_EXPORT_SECONDS = 5.0
_PREFIX = "turnline."
_KINDS = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
    SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
}
_propagator = TraceContextTextMapPropagator()


class SdkTracing:
    """A `Tracing` that records; export runs in a thread, in batches, bounded."""

    def __init__(
        self,
        *,
        otlp_endpoint: str,
        service_name: str,
        exporter: SpanExporter | None,
        sample_ratio: float,
        strict: bool,
    ) -> None:
        """Start the export thread; parameters as of `traces.configure_tracing`."""
        if exporter is None:
            exporter = OTLPSpanExporter(
                endpoint=_traces_url(otlp_endpoint), timeout=_EXPORT_SECONDS
            )
        self._strict = strict
        self._flusher: threading.Thread | None = None
        self._provider = TracerProvider(
            resource=Resource.create({SERVICE_NAME: service_name}),
            sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
            # At exit it would wait without a deadline for a collector that is gone.
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("turnline")

    def start_span(
        self, spec: SpanSpec, parent: TraceContext | None = None, /, **attributes: AttributeValue
    ) -> "SdkSpan":
        """See `traces.Tracing.start_span`."""
        base = otel_context.get_current() if parent is None else _context_of(parent)
        span = self._tracer.start_span(
            spec.name,
            context=base,
            kind=_KINDS[spec.kind],
            attributes=_declared(spec, attributes, strict=self._strict),
        )
        return SdkSpan(spec, span, base, strict=self._strict)

    def current(self) -> TraceContext:
        """See `traces.Tracing.current`."""
        return _trace_context(otel_context.get_current())

    async def flush(self, *, seconds: float) -> bool:
        """See `traces.Tracing.flush`."""
        if self._flusher is not None and self._flusher.is_alive():
            return False
        return await self._flushed(self._provider.force_flush, seconds)

    async def shutdown(self, *, seconds: float) -> bool:
        """See `traces.Tracing.shutdown`."""
        return await self._flushed(self._provider.shutdown, seconds)

    async def _flushed(self, work: Callable[[], object], seconds: float) -> bool:
        flushed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def flush() -> None:
            work()
            # The loop may be closed by the time a slow collector answers.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(flushed.set)

        # A daemon thread, for the process must be able to exit while the collector hangs.
        self._flusher = threading.Thread(target=flush, name="turnline-trace-flush", daemon=True)
        self._flusher.start()
        try:
            async with asyncio.timeout(seconds):
                await flushed.wait()
        except TimeoutError:
            _log.warning("tracing.unflushed", seconds=seconds)
            return False
        return True


class SdkSpan:
    """A recorded `Span`."""

    __slots__ = ("_base", "_ids", "_otel_token", "_span", "_spec", "_strict")

    def __init__(
        self, spec: SpanSpec, span: trace.Span, base: otel_context.Context, *, strict: bool
    ) -> None:
        self._spec = spec
        self._span = span
        self._base = base
        self._strict = strict
        found = span.get_span_context()
        self._ids: AbstractContextManager[None] = bind(
            trace_id=trace.format_trace_id(found.trace_id),
            span_id=trace.format_span_id(found.span_id),
        )

    def __enter__(self) -> Self:
        """Make the span current, for logs too."""
        self._otel_token = otel_context.attach(trace.set_span_in_context(self._span, self._base))
        self._ids.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the span, noting how."""
        self._ids.__exit__(None, None, None)
        otel_context.detach(self._otel_token)
        match error:
            case None:
                pass
            case asyncio.CancelledError() | GeneratorExit():
                self._span.set_attribute(f"{_PREFIX}cancelled", True)
            case TurnlineError():
                self.fail(error.code.value)
            case _:
                self.fail(type_name(error))
        self._span.end()

    @property
    def context(self) -> TraceContext:
        """See `traces.Span.context`."""
        return _trace_context(trace.set_span_in_context(self._span, otel_context.Context()))

    def set(self, **attributes: AttributeValue) -> None:
        """See `traces.Span.set`."""
        self._span.set_attributes(_declared(self._spec, attributes, strict=self._strict))

    def fail(self, code: str) -> None:
        """See `traces.Span.fail`."""
        self._span.set_attribute("error.type", code)
        self._span.set_status(trace.StatusCode.ERROR)


def _traces_url(endpoint: str) -> str:
    path = urlsplit(endpoint).path.rstrip("/")
    return endpoint if path.endswith(_TRACES_PATH) else endpoint.rstrip("/") + _TRACES_PATH


def _context_of(parent: TraceContext) -> otel_context.Context:
    carrier = {"traceparent": parent.traceparent, "tracestate": parent.tracestate}
    return _propagator.extract(carrier, otel_context.Context())


def _trace_context(context: otel_context.Context) -> TraceContext:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, context)
    return TraceContext(
        traceparent=carrier.get("traceparent", ""), tracestate=carrier.get("tracestate", "")
    )


def _declared(
    spec: SpanSpec, attributes: Mapping[str, AttributeValue], *, strict: bool
) -> dict[str, AttributeValue]:
    known = {name: value for name, value in attributes.items() if name in spec.attributes}
    if strict and len(known) < len(attributes):
        undeclared = sorted(attributes.keys() - known.keys())
        raise UndeclaredError(f"span {spec.name!r} declares no attribute {undeclared}")
    return {_PREFIX + name: value for name, value in known.items()}
