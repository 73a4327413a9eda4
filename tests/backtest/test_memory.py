"""A million rows have to fit into 300 MB, 55 MB of which are the program: 245 bytes a row.

A process of its own reads 60,000 rows, makes their events, finds their waits and keeps what was
judged. Estimates are left out: they keep nothing, and take a minute.
"""

import subprocess
import sys

ROWS = 60_000
# Before the first page is used again, a smaller file takes more for each row than a large one.
MOST_BYTES_OF_A_ROW = 245 + 55

MEASURED = """
import sys
from datetime import datetime, timedelta
from frontdesk.backtest.encounters_csv import CellRules, read_encounters
from frontdesk.backtest.figures import JudgedWait, JudgedWaits, by_position, figures_of
from frontdesk.backtest.file_events import FileEvents
from frontdesk.backtest.line import Stay, Waits, line_of
from frontdesk.backtest.warnings import warnings_of_file
from frontdesk.backtest.window import judged_days, rows_apart
from frontdesk.queues.estimate.record import WaitEstimate

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

def lines(count):
    yield "joined,started,ended,left,doctor,plan\\n"
    day = datetime(2026, 11, 1)
    for number in range(count):
        joined = day + timedelta(seconds=40 * number)
        started = joined + timedelta(seconds=number % 97)
        ended = started + timedelta(seconds=200 + number % 71)
        yield f"{joined},{started},{ended},,agent-{number % 11},plan {number % 3}\\n"

count = int(sys.argv[1])
before = peak()
found = read_encounters(lines(count), CellRules(None, datetime(2027, 1, 1).timestamp()))
warnings = list(warnings_of_file(found))
days = judged_days(found.rows, 366)
apart = rows_apart(found.rows, days)
events = FileEvents(found.rows, days.since)
judged = JudgedWaits(["a", "b", "c"])
estimate = WaitEstimate(60, 30, 90)
for one in line_of(events, days.since, Waits(events, days.since)):
    if isinstance(one, Stay):
        rivals = {"a": one.wait_seconds, "b": 100.0 + len(judged), "c": 0.5 * len(judged)}
        wait = JudgedWait(one.plan_id, None, one.joined_at, one.wait_seconds, estimate, 1, rivals)
        judged.append(wait)
figures_of(judged)
by_position(judged)
assert len(judged) == count and not warnings, (len(judged), warnings)
print((peak() - before) / count)
"""


def test_rows_take_few_bytes() -> None:
    command = [sys.executable, "-c", MEASURED, str(ROWS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < MOST_BYTES_OF_A_ROW
