"""The metrics of several serving processes, added up."""

import asyncio
import io
import json
import os
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry

from frontdesk import PROGRAM
from frontdesk.app import App
from frontdesk.web.request import Request
from frontdesk.web.telemetry import METRICS_FOLDER, Telemetry, _cached_address
from tests.patience import in_event_loop

# A serving process that answers the requests of its argument, and whose log has no reader.
ANSWER = """
import asyncio, os, sys
from types import SimpleNamespace
from frontdesk.web.telemetry import Telemetry

async def main():
    reading, writing = os.pipe()
    os.close(reading)
    telemetry = Telemetry(os.fdopen(writing, "w"))
    for number in range(int(sys.argv[1])):
        seen = {"forwarding": ("127.0.0.1", ""), "trace_parent": None}
        request = SimpleNamespace(method="GET", known_caller=None, request_id=str(number), **seen)
        telemetry.answered(request, "/v2/plans", 200, 0.02)
    telemetry.close()
    telemetry.flush()
    return telemetry

TELEMETRY = asyncio.run(main())
"""

READ = """
from prometheus_client import CollectorRegistry, generate_latest
from frontdesk.web.telemetry import Telemetry

registry = CollectorRegistry()
registry.register(globals().get("TELEMETRY") or Telemetry())
print(generate_latest(registry).decode())
"""

# Before a serving process: its disk has no space for its counts.
FULL_DISK = """
import errno, pathlib

def fail(*_):
    raise OSError(errno.ENOSPC, "full")

pathlib.Path.write_bytes = fail
"""


IDS = f"{'ab' * 16}-{'cd' * 8}"


@pytest.mark.parametrize(
    ("sent", "route", "status", "logged"),
    [
        ({}, "/v2/plans", 200, ("info", "10.0.0.7", None)),
        ({"x-forwarded-for": "203.0.113.9"}, "/v2/plans", 401, ("info", "203.0.113.9", None)),
        ({"x-forwarded-for": '"},"x":"'}, "/v2/plans", 500, ("error", "10.0.0.7", None)),
        ({"x-forwarded-for": "203.0.113.9"}, "/register/{token}", 503, ("warning", None, None)),
        ({"traceparent": f"00-{IDS}-01"}, "/v2/plans", 200, ("info", "10.0.0.7", "ab" * 16)),
        ({"traceparent": f"00-{IDS.upper()}-01"}, "/v2/plans", 200, ("info", "10.0.0.7", None)),
        (
            {"traceparent": f"00-{'0' * 32}-{'cd' * 8}-01"},
            "/v2/plans",
            200,
            ("info", "10.0.0.7", None),
        ),
        (
            {"traceparent": f"00-{'ab' * 16}-{'0' * 16}-01"},
            "/v2/plans",
            200,
            ("info", "10.0.0.7", None),
        ),
        ({"traceparent": f"ff-{IDS}-01"}, "/v2/plans", 200, ("info", "10.0.0.7", None)),
        ({"traceparent": f'00-{IDS}-01"x'}, "/v2/plans", 200, ("info", "10.0.0.7", None)),
    ],
)
@in_event_loop
async def test_a_line_has_the_level_the_forwarded_address_and_a_well_formed_trace(
    sent: dict[str, str], route: str, status: int, logged: tuple[str, str | None, str | None]
) -> None:
    headers = [(name.encode(), value.encode()) for name, value in sent.items()]
    scope = {
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": headers,
        "client": ["10.0.0.7", 1],
    }
    config = mock.Mock(trusted_proxies=(ip_network("10.0.0.0/8"),))
    text = io.StringIO()
    app = mock.Mock(config=config, metrics=CollectorRegistry())
    telemetry = Telemetry(text)
    telemetry.watch(app)
    telemetry.answered(Request(scope, mock.Mock(), mock.Mock()), route, status, 0.02)
    telemetry.flush()
    line = json.loads(text.getvalue())
    assert (line["level"], line["address"], line.get("trace_id")) == logged


def test_a_long_header_is_not_kept() -> None:
    find = _cached_address([ip_network("10.0.0.0/8")])
    short, long = (f"{'192.0.2.1, ' * count}198.51.100.7" for count in (1, 1000))
    before = sys.getrefcount(long)
    assert {find("10.0.0.1", header) for header in (short, long)} == {'"198.51.100.7"'}
    assert sys.getrefcount(long) == before


def run(program: str, *arguments: str, folder: Path) -> str:
    environment = {**os.environ, "FRONTDESK_METRICS": str(folder)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_requests_durations_and_dropped_log_lines_of_all_processes_are_added_up(
    tmp_path: Path,
) -> None:
    for requests in ("3", "4"):
        run(ANSWER, requests, folder=tmp_path)
    lines = run(READ, folder=tmp_path).splitlines()
    assert "frontdesk_log_lines_dropped_total 7.0" in lines
    labels = 'method="GET",route="/v2/plans",status="200"'
    assert f"frontdesk_requests_total{{{labels}}} 7.0" in lines
    assert f"frontdesk_request_seconds_count{{{labels}}} 7.0" in lines
    for bound, count in (("0.01", 0), ("0.025", 7), ("+Inf", 7)):
        assert f'frontdesk_request_seconds_bucket{{le="{bound}",{labels}}} {count}.0' in lines
    assert not [line for line in lines if "_created" in line]
    assert "# HELP frontdesk_requests_total Answered requests." in lines


@in_event_loop
async def test_counts_are_stored_soon_after_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    request: Any = SimpleNamespace(
        method="GET",
        known_caller=None,
        request_id="1",
        forwarding=("127.0.0.1", ""),
        trace_parent=None,
    )
    Telemetry(io.StringIO()).answered(request, "/v2/plans", 200, 0.02)
    while not [*tmp_path.glob("*.json")]:  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    assert "frontdesk_request_seconds_count" in run(READ, folder=tmp_path)


def test_a_process_without_space_for_its_counts_counts_in_memory(tmp_path: Path) -> None:
    text = run(FULL_DISK + ANSWER + READ, "3", folder=tmp_path)
    assert (
        'frontdesk_requests_total{method="GET",route="/v2/plans",status="200"} 3.0'
        in text.splitlines()
    )
    assert list(tmp_path.iterdir()) == []


def test_the_gauges_of_the_process_are_shown(app: App) -> None:
    Telemetry(io.StringIO()).watch(app)

    def read(name: str, **labels: str) -> float | None:
        return app.metrics.get_sample_value(f"frontdesk_{name}", labels)

    before = read("pool_connections", state="used")
    with app.db.read() as tx:
        tx.exec_driver_sql("SELECT 1").all()
        assert before is not None
        assert read("pool_connections", state="used") == before + 1
    assert read("pool_connections", state="idle")
    assert read("group_commit_waiting") == 0
    app.enrolments._waiting.extend([mock.Mock()] * 3)
    assert read("group_commit_waiting") == 3
    assert read("build_info", **PROGRAM) == 1
    assert read("disk_free_bytes")
    assert app.metrics.get_sample_value("process_open_fds")
    app.db.close()
