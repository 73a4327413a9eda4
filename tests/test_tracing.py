"""Traces: spans of requests, deliveries and chunks, with ids only, reach a collector; without
OTEL_* nothing is imported.
"""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from frontdesk.tracing import TRACES
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.patience import wait_until
from tests.worker.conftest import Post, post

__all__ = ["post"]

IDS = "http.route http.response.status_code request_id invitation_id result reason attempt code"
IDS += " file_id chunk rows"


class Collector:
    """Takes OTLP over HTTP on a port of its own; `spans` by name, `received` as they came."""

    def __init__(self) -> None:
        self.spans: dict[str, Any] = {}
        self.received = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                content = (
                    gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
                )
                collector.received += content
                for resource in ExportTraceServiceRequest.FromString(content).resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans |= {span.name: span for span in scope.spans}
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setattr(TRACES, "tracer", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "frontdesk")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5")
    TRACES.start()
    yield made
    made.close()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_requests_deliveries_and_chunks_are_spans_with_ids_only(
    api: Api, customer: Customer, clock: SetClock, post: Post, collector: Collector
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    headers = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    body = member_body(1, email="canary@example.com", invite_immediately=True)
    assert api.post(path + "?canary=canary", body, headers=headers).status_code == 201
    assert api.get(
        "/v2/plans", headers=headers | {"traceparent": f"00-{'ee' * 16}-{'cd' * 8}-00"}
    ).is_success
    post.worker().turn()
    Desk(post.db, customer, clock).load(
        csv_of([row(7, first_name="canary")]), file_name="canary.csv"
    )
    names = {"POST /v2/plans/{plan_id}/eligibility", "delivery", "file.chunk"}
    wait_until(lambda: names <= collector.spans.keys(), "the spans")
    assert collector.spans.keys() == names  # the caller of the GET wanted none
    request = collector.spans["POST /v2/plans/{plan_id}/eligibility"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == ("ab" * 16, "cd" * 8)
    assert request.start_time_unix_nano < request.end_time_unix_nano
    told = {each.key: each.value for span in collector.spans.values() for each in span.attributes}
    assert told.keys() == {*IDS.split()}
    assert (told["http.response.status_code"].int_value, told["result"].string_value) == (
        201,
        "sent",
    )
    assert (told["rows"].int_value, told["invitation_id"].int_value) == (1, post.row()["id"])
    assert b"canary" not in collector.received


def test_without_otel_nothing_of_it_is_imported() -> None:
    program = """
import sys
import frontdesk.server, frontdesk.cli.worker
from frontdesk.tracing import TRACES
TRACES.start()
print([name for name in sys.modules if name.startswith("opentelemetry")], TRACES.tracer)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[] None\n"
