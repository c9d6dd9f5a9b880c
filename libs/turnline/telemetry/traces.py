"""Traces: one trace per turn over every process it passes through.

    request-handler   turn.request ── its context goes into the envelope
    input queue            ├── turn.attempt (1)   runner, parent = the envelope's context
                           │      ├── agent.run, turn.commit, turn.publish
                           ├── turn.attempt (2)   a retry is a sibling, not a child
    output queue           └── turn.answer        responder, parent = the envelope's context

The envelope carries the request's context unchanged through retries and on to its answer, so
whoever takes it from a queue passes `envelope.trace` as the parent.  Without an OTLP endpoint
nothing is recorded and the OpenTelemetry packages are not imported, but a client's own context is
still handed on.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar, Token
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from turnline.protocol import TraceContext
from turnline.telemetry.schema import SpanSpec

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from turnline.telemetry.otel import SdkTracing

AttributeValue = str | int | float | bool

# Loaded only when tracing is on: the SDK and its exporter take half a second to import.
_SDK_MODULE = "turnline.telemetry.otel"

_MAX_TRACESTATE = 512
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]*)?")
_TRACESTATE = re.compile(r"[\x20-\x7e\t]*")
_UNTRACED = TraceContext()


class Span(Protocol):
    """One piece of work; use as a context manager, in one task.

    An exception that leaves the block marks the span as failed with the exception's code or type,
    never its text; a cancellation only as cancelled.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @property
    def context(self) -> TraceContext:
        """What to put into an envelope or header so that others continue this trace."""
        ...

    def set(self, **attributes: AttributeValue) -> None:
        """Add attributes the span declares in `names`."""
        ...

    def fail(self, code: str) -> None:
        """Mark the span as failed with a code, where no exception leaves the block."""
        ...


class Tracing(Protocol):
    """Makes the spans of one process."""

    def start_span(
        self, spec: SpanSpec, parent: TraceContext | None = None, /, **attributes: AttributeValue
    ) -> Span:
        """Make a span; it starts now and is current inside its `with` block.

        Args:
            parent: None is the span that is current here, if any; an empty context starts a new
                trace.
            attributes: names declared by `spec`.
        """
        ...

    def current(self) -> TraceContext:
        """The context of the span that is current here; empty outside of all spans."""
        ...

    async def flush(self, *, seconds: float) -> bool:
        """Export what has ended by now, within so many seconds; False if that was not all.

        For whoever may not run on by itself afterwards.  While an earlier call still waits for a
        collector that hangs, this returns at once.
        """
        ...

    async def shutdown(self, *, seconds: float) -> bool:
        """Export what is left, within so many seconds; False if that was not all.

        Spans made afterwards are dropped.
        """
        ...


def configure_tracing(
    otlp_endpoint: str | None,
    service_name: str,
    exporter: "SpanExporter | None" = None,
    *,
    sample_ratio: float = 1.0,
    strict: bool = False,
) -> Tracing:
    """Make the tracing of this process; call it once, in `main`.

    Args:
        otlp_endpoint: OTLP/HTTP address of a collector, `http://collector:4318`, with or without
            the path `/v1/traces`; None or empty turns tracing off.  Headers and TLS come from the
            `OTEL_EXPORTER_OTLP_*` variables.
        service_name: `service.name` of all spans.
        exporter: takes the spans instead of a collector (for tests).
        sample_ratio: part of the traces begun here that is recorded, 0 to 1; a trace begun
            elsewhere follows the decision made there.
        strict: raise UndeclaredError for attributes a span does not declare (for tests); they are
            dropped otherwise.
    """
    if not otlp_endpoint and exporter is None:
        return _Off()
    sdk: type[SdkTracing] = import_module(_SDK_MODULE).SdkTracing
    return sdk(
        otlp_endpoint=otlp_endpoint or "",
        service_name=service_name,
        exporter=exporter,
        sample_ratio=sample_ratio,
        strict=strict,
    )


def extract(headers: Mapping[str, str]) -> TraceContext:
    """Read the W3C headers of a request or message; empty if there are none or they are wrong.

    Args:
        headers: looked up by lower-case name.
    """
    traceparent = headers.get("traceparent", "").strip()
    if not _is_traceparent(traceparent):
        return _UNTRACED
    tracestate = headers.get("tracestate", "").strip()
    if len(tracestate) > _MAX_TRACESTATE or not _TRACESTATE.fullmatch(tracestate):
        tracestate = ""
    return TraceContext(traceparent=traceparent, tracestate=tracestate)


def inject(context: TraceContext) -> dict[str, str]:
    """Make the W3C headers of a context; none for an empty one."""
    headers = {"traceparent": context.traceparent, "tracestate": context.tracestate}
    return {name: value for name, value in headers.items() if value}


def _is_traceparent(value: str) -> bool:
    if not _TRACEPARENT.fullmatch(value):
        return False
    version, trace_id, span_id, _ = value[:55].split("-")
    if version == "ff" or (version == "00" and len(value) != 55):
        return False
    return len(value) <= _MAX_TRACESTATE and trace_id.strip("0") != "" and span_id.strip("0") != ""


_handed_on: ContextVar[TraceContext] = ContextVar("turnline_handed_on", default=_UNTRACED)


class _Off:
    """Records nothing and hands contexts on."""

    def start_span(
        self, _spec: SpanSpec, parent: TraceContext | None = None, /, **_attributes: AttributeValue
    ) -> Span:
        return _Passing(_handed_on.get() if parent is None else parent)

    def current(self) -> TraceContext:
        return _handed_on.get()

    async def flush(self, *, seconds: float) -> bool:
        return True

    async def shutdown(self, *, seconds: float) -> bool:
        del seconds  # Nothing is left to export.
        return True


class _Passing:
    """A span that is not recorded; its context is its parent's."""

    __slots__ = ("_token", "context")

    def __init__(self, context: TraceContext) -> None:
        self.context = context

    def __enter__(self) -> Self:
        self._token: Token[TraceContext] = _handed_on.set(self.context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _handed_on.reset(self._token)

    def set(self, **attributes: AttributeValue) -> None:
        pass

    def fail(self, code: str) -> None:
        pass
