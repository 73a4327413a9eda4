"""Traces by OpenTelemetry, if OTEL_* asks for them: spans of requests, deliveries and chunks of files, with ids and codes only.

A span is made when its work has ended. Without OTEL_* nothing of the library is imported.
"""

import os
import time
from collections.abc import Mapping
from typing import Any

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
# An exporter that gets no answer must not hold up the end of the process.
_DEFAULTS = {"OTEL_SERVICE_NAME": "frontdesk", "OTEL_EXPORTER_OTLP_TIMEOUT": "2"}


SpanIds = tuple[str, str, str]  # of the trace and of the span, and its flags, as `traceparent` has them


class Traces:
    """The spans of this process; `tracer` is None unless they are wanted."""

    tracer: Any = None

    def start(self) -> None:
        """Send spans by OTLP over HTTP, if OTEL_TRACES_EXPORTER is `otlp`, or is not set and an endpoint is."""
        exporter = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp" * any(map(os.environ.get, _ENDPOINTS))
        if exporter == "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor

            for name, value in _DEFAULTS.items():
                os.environ.setdefault(name, value)
            provider = TracerProvider()
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            self.tracer = provider.get_tracer("frontdesk")

    def record(
        self, name: str, seconds: float, known: Mapping[str, Any], parent: SpanIds | None = None
    ) -> None:
        """A span with these attributes that ends now and took so long. `parent`: the caller's. Call it while there is a
        tracer."""
        from opentelemetry import context, trace

        around = context.Context()
        if parent is not None:
            trace_id, span_id, flags = (int(each, 16) for each in parent)
            caller = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
            around = trace.set_span_in_context(trace.NonRecordingSpan(caller), around)
        ends = time.time_ns()
        kind = trace.SpanKind.INTERNAL if "http.route" not in known else trace.SpanKind.SERVER
        attributes = {key: value for key, value in known.items() if value is not None}
        begins = ends - int(seconds * 1e9)
        self.tracer.start_span(name, around, kind, attributes, start_time=begins).end(ends)


TRACES = Traces()
