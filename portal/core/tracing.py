"""Traces by OpenTelemetry, where SLIPWAY_OTLP_ENDPOINT names a receiver; otherwise neither spans nor
the exporter are imported.

A message is only a hint, so the context of a trace travels with the row: `current()` is stored with it and is the
parent of what another process does for it later. Exporting never delays or fails what is traced.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.conf import settings

from portal.core import clock

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

Attributes = Mapping[str, str | int | bool]

_SECONDS: Final = 5
_lock = threading.Lock()
# By process, because the thread that exports does not survive a fork.
_providers: dict[int, TracerProvider] = {}


def is_on() -> bool:
    return bool(settings.SLIPWAY_OTLP_ENDPOINT)


@contextmanager
def span(name: str, *, parent: str = "", attributes: Attributes | None = None) -> Iterator[None]:
    """Record a span around the block. `parent` is what `current` returned; without one it belongs to the span
    around it.

    An exception marks the span as failed and is raised.
    """
    if not is_on():
        yield
        return
    with _tracer().start_as_current_span(
        name, context=_context(parent), attributes=dict(attributes or {})
    ):
        yield


@contextmanager
def span_for_each(name: str, parents: Collection[tuple[str, Attributes]]) -> Iterator[None]:
    """Record a block that serves many rows at once: a span in the trace of each row that has one, all with the same
    times.
    """
    traced = [(parent, attributes) for parent, attributes in parents if parent]
    if not is_on() or not traced:
        yield
        return
    began = _nanoseconds()
    try:
        yield
    finally:
        ended = _nanoseconds()
        for parent, attributes in traced:
            _record(name, parent, attributes, began, ended)


def note(name: str, *, parent: str, attributes: Attributes | None = None) -> None:
    """Record a moment in the trace of a row. Does nothing if it has none."""
    if is_on() and parent:
        at = _nanoseconds()
        _record(name, parent, attributes or {}, at, at)


def name_current(name: str, attributes: Attributes) -> None:
    """Rename the current span, when it is known only later what it is."""
    if is_on():
        _current_span().update_name(name)
        _current_span().set_attributes(dict(attributes))


def current() -> str:
    """Return the current span, to be stored with a row. Empty without a span."""
    if not is_on():
        return ""
    context = _current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def flush() -> None:
    """Send what this process has recorded. For processes that end, and for tests."""
    with _lock:
        provider = _providers.get(os.getpid())
    if provider is not None:
        provider.force_flush(_SECONDS * 1000)


def forget() -> None:
    """Forget the tracer, after the settings changed."""
    with _lock:
        provider = _providers.pop(os.getpid(), None)
    if provider is not None:
        provider.shutdown()


def _record(name: str, parent: str, attributes: Attributes, began: int, ended: int) -> None:
    made = _tracer().start_span(
        name, context=_context(parent), attributes=dict(attributes), start_time=began
    )
    made.end(ended)


def _nanoseconds() -> int:
    return int(clock.now().timestamp() * 1e9)


def _context(parent: str) -> Context | None:
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415  only where it is on
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator().extract({"traceparent": parent}) if parent else None


def _current_span() -> Span:
    from opentelemetry import trace  # noqa: PLC0415  only where it is on

    return trace.get_current_span()


def _tracer() -> Tracer:
    with _lock:
        provider = _providers.get(os.getpid())
        if provider is None:
            provider = _providers[os.getpid()] = _make_provider()
    return provider.get_tracer("slipway")


def _make_provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  only where it is on
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  as above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  as above

    exporter = OTLPSpanExporter(
        endpoint=f"{settings.SLIPWAY_OTLP_ENDPOINT.rstrip('/')}/v1/traces",
        headers=settings.SLIPWAY_OTLP_HEADERS,
        timeout=_SECONDS,
    )
    made = TracerProvider(resource=Resource.create({"service.name": "slipway"}))
    made.add_span_processor(BatchSpanProcessor(exporter))
    return made
