"""Works on a file in the foreground, with a progress bar (rows/s, time left) and a stop by Ctrl-C."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import MofNCompleteColumn, ProgressColumn, Task
from rich.text import Text

from frontdesk.cli.output import progress
from frontdesk.clock import system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.eligibility.probes import ProbeLimit
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.files import RunOptions, get_file, run_next
from frontdesk.files.model import EligibilityFile, FileState, FileStep

POLL_SECONDS = 0.5
PATIENCE_SECONDS = 60

_ENDED = {FileState.DONE, FileState.FAILED, FileState.HELD, FileState.CANCELLED}
_STEPS = {FileStep.CHECK: "checking", FileStep.APPLY: "applying", FileStep.END: "ending"}


class _RowsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} rows/s", style="cyan")


def work_on(db: Database, config: Config, file_id: int) -> EligibilityFile:
    """Work on the file, or watch the worker that does, until it ends or Ctrl-C stops it. Raises FrontdeskError."""
    with progress(MofNCompleteColumn(), _RowsPerSecond()) as bar, _stop_signals() as signals:
        task = bar.add_task("waiting", total=None)

        def show(step: FileStep, done: int, total: int | None) -> None:
            bar.update(task, description=_STEPS[step], completed=done, total=total)

        options = RunOptions(
            config.uniqueness,
            lambda: bool(signals),
            show,
            probe_limit=ProbeLimit(config.taken_per_day, config.uniqueness),
        )
        patient_until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                worked = run_next(db, system_clock, options, only=file_id)
                file = db.ask(lambda tx: get_file(tx, file_id, account_id=None))
            except Unavailable:
                if signals or time.monotonic() > patient_until:
                    raise FrontdeskError(
                        f"The database went away; the file goes on with: frontdesk file resume {file_id}",
                        code="unavailable",
                    ) from None
            else:
                patient_until = time.monotonic() + PATIENCE_SECONDS
                if file.state in _ENDED or signals:
                    return file
                if not worked:
                    show(file.step, file.rows_done, file.rows_total)
            time.sleep(POLL_SECONDS)


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """The Ctrl-C and SIGTERM so far. The work stops after the current chunk, so that the next worker need not wait for the
    lease.

    Not an Event: a handler that sets it can interrupt the thread that is about to wait for it, and never ends.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        signals.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
