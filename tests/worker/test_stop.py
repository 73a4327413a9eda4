"""A worker stops on a signal, whatever it is doing when the signal comes."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.log_output import LogOutput
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.mail.memory import MemoryMailer


@pytest.fixture
def watchdog() -> Iterator[None]:
    """Ends a test that hangs."""

    def bark(*_: object) -> None:
        raise TimeoutError("the worker does not stop")

    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, 20)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("watchdog")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_signal_at_any_line_of_an_idle_worker_stops_it(
    config: Config, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeliveryWorker, "step", lambda _worker: False)
    for moment in range(1, 80):
        options = WorkerOptions(idle_seconds=0.0, log=LogOutput(io.StringIO()))
        worker = DeliveryWorker(config, db, MemoryMailer(), options)
        lines = 0

        def trace(_frame: FrameType, event: str, _argument: Any, moment: int = moment) -> Any:
            nonlocal lines
            lines += event == "line"
            if lines == moment and event == "line":
                os.kill(os.getpid(), signal.SIGUSR1)
            return trace

        before = signal.signal(signal.SIGUSR1, lambda *_, worker=worker: worker.stop())
        tracer = sys.gettrace()
        sys.settrace(trace)
        try:
            worker.run()
        finally:
            sys.settrace(tracer)
            signal.signal(signal.SIGUSR1, before)
        assert lines >= moment
