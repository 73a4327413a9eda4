"""Traces by OpenTelemetry, if OTEL_* asks for them: spans of requests, deliveries and chunks of
files, with ids and codes only.

A span is made when its work has ended. Without OTEL_* nothing of the library is imported.
"""

import os
import time
from collections.abc import Mapping
from typing import Any

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
# An exporter that gets no answer must not hold up the end of the process.
_DEFAULTS = {"OTEL_SERVICE_NAME": "frontdesk", "OTEL_EXPORTER_OTLP_TIMEOUT": "2"}


class Traces:
    """The spans of this process; `tracer` is None unless they are wanted."""

    tracer: Any = None

    def start(self) -> None:
        """Send spans by OTLP over HTTP, if OTEL_TRACES_EXPORTER is `otlp`, or is not set and an
        endpoint is.
        """
        exporter = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp" * any(
            map(os.environ.get, _ENDPOINTS)
        )
        if exporter == "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor

            for name, value in _DEFAULTS.items():
                os.environ.setdefault(name, value)
            provider = TracerProvider()
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            self.tracer = provider.get_tracer("frontdesk")

    def record(self, name: str, seconds: float, known: Mapping[str, Any], parent: str = "") -> None:
        """A span with these attributes that ends now and took so long. `parent`: a `traceparent`.
        Needs a tracer.
        """
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        around = TraceContextTextMapPropagator().extract({"traceparent": parent})
        ends = time.time_ns()
        span = self.tracer.start_span(name, around, start_time=ends - int(seconds * 1e9))
        span.set_attributes({key: value for key, value in known.items() if value is not None})
        span.end(ends)


TRACES = Traces()
