"""The metrics of several serving processes, added up."""

import asyncio
import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frontdesk.web.telemetry import METRICS_FOLDER, Telemetry
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
        request = SimpleNamespace(method="GET", known_caller=None, request_id=str(number))
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


def run(program: str, *arguments: str, folder: Path) -> str:
    environment = {**os.environ, "FRONTDESK_METRICS": str(folder)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_requests_durations_and_dropped_log_lines_of_all_processes_are_added_up(tmp_path: Path) -> None:
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
async def test_counts_are_stored_soon_after_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    request: Any = SimpleNamespace(method="GET", known_caller=None, request_id="1")
    Telemetry(io.StringIO()).answered(request, "/v2/plans", 200, 0.02)
    while not [*tmp_path.glob("*.json")]:  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    assert "frontdesk_request_seconds_count" in run(READ, folder=tmp_path)


def test_a_process_without_space_for_its_counts_counts_in_memory(tmp_path: Path) -> None:
    text = run(FULL_DISK + ANSWER + READ, "3", folder=tmp_path)
    assert 'frontdesk_requests_total{method="GET",route="/v2/plans",status="200"} 3.0' in text.splitlines()
    assert list(tmp_path.iterdir()) == []
