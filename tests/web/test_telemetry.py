"""The metrics of several serving processes, added up."""

import os
import subprocess
import sys
from pathlib import Path

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

asyncio.run(main())
"""

READ = """
from prometheus_client import CollectorRegistry, generate_latest
from frontdesk.web.telemetry import Telemetry

registry = CollectorRegistry()
registry.register(Telemetry())
print(generate_latest(registry).decode())
"""


def run(program: str, *arguments: str, folder: Path) -> str:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_dropped_log_lines_of_all_processes_are_added_up(tmp_path: Path) -> None:
    for requests in ("3", "4"):
        run(ANSWER, requests, folder=tmp_path)
    assert "frontdesk_log_lines_dropped_total 7.0" in run(READ, folder=tmp_path).splitlines()


def test_requests_and_their_durations_of_all_processes_are_added_up(tmp_path: Path) -> None:
    for requests in ("3", "4"):
        run(ANSWER, requests, folder=tmp_path)
    lines = run(READ, folder=tmp_path).splitlines()
    labels = 'method="GET",route="/v2/plans",status="200"'
    assert f"frontdesk_requests_total{{{labels}}} 7.0" in lines
    assert f"frontdesk_request_seconds_count{{{labels}}} 7.0" in lines
    for bound, count in (("0.01", 0), ("0.025", 7), ("+Inf", 7)):
        assert f'frontdesk_request_seconds_bucket{{le="{bound}",{labels}}} {count}.0' in lines
    assert not [line for line in lines if "_created" in line]
    assert "# HELP frontdesk_requests_total Answered requests." in lines
