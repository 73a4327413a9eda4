"""The beats of a process with several loops."""

import time
from typing import Any

from frontdesk.db import Database
from frontdesk.liveness import LoopBeats
from frontdesk.worker.background import BackgroundTask
from tests.patience import wait_until


class Told:
    def __init__(self, *, stuck_seconds: float = 600.0) -> None:
        self.beats = 0
        self.lines: list[tuple[str, Any]] = []
        self.loops = LoopBeats(
            self._beat, self._tell, beat_seconds=0.01, stuck_seconds=stuck_seconds
        )

    def _beat(self) -> None:
        self.beats += 1

    def _tell(self, event: str, **values: Any) -> None:
        self.lines.append((event, values["loop"]))


def test_a_process_stops_beating_while_one_of_its_loops_is_stuck_and_says_so_once() -> None:
    told = Told(stuck_seconds=0.05)
    told.loops.advance("hangs")
    time.sleep(0.1)
    before = told.beats
    for _ in range(3):
        told.loops.advance("goes on")
        time.sleep(0.02)
    assert (told.beats, told.lines) == (before, [("worker_loop_stuck", "hangs")])
    told.loops.advance("hangs")
    assert told.beats == before + 1


def test_a_loop_that_has_ended_is_not_stuck() -> None:
    told = Told(stuck_seconds=0.05)
    told.loops.advance("ends")
    told.loops.leave("ends")
    time.sleep(0.1)
    before = told.beats
    told.loops.advance("goes on")
    assert (told.beats, told.lines) == (before + 1, [])


class Hourly(BackgroundTask):
    first_seconds = 3600.0
    poll_seconds = 3600.0
    failure_event = "hourly_failed"

    def step(self) -> bool:
        raise AssertionError


def test_a_task_that_waits_for_an_hour_beats(db: Database) -> None:
    told = Told()
    with Hourly(db, beats=told.loops):
        wait_until(lambda: told.beats > 3, "some beats")
