"""Invented files of encounters, and what is read from them."""

import io
from datetime import datetime, tzinfo

from frontdesk.backtest.columns import ABSENT, EncounterColumns, EncounterRow
from frontdesk.backtest.encounters_csv import CellRules, EncountersCsv, read_encounters
from frontdesk.backtest.file_events import FileEvents
from frontdesk.queues.model import ReplayEvent

HEAD = "joined,started,ended,left,doctor,plan\n"
DAY = "2026-11-20T"
NOW = datetime.fromisoformat("2026-11-25T12:00:00Z").timestamp()


def read(text: str, zone: tzinfo | None = None) -> EncountersCsv:
    return read_encounters(io.StringIO(text, newline=""), CellRules(zone, NOW))


def rows_of(found: EncountersCsv) -> list[EncounterRow]:
    return [row_at(found.rows, index) for index in range(len(found.rows))]


def row_at(rows: EncounterColumns, index: int) -> EncounterRow:
    times = {name: getattr(rows, name)[index] for name in ("joined", "started", "ended", "left")}
    return EncounterRow(
        **{name: None if at == ABSENT else at for name, at in times.items()},
        doctor=rows.doctors.in_order()[rows.doctor[index]],
        plan=rows.plans.in_order()[rows.plan[index]],
    )


def events_of(text: str) -> list[ReplayEvent]:
    found = read(text)
    assert found.faults == []
    return list(FileEvents(found.rows, since=0.0))


def seen(doctor: str, joined: int, started: int, ended: int, plan: str = "p") -> str:
    """A row of a visit; in minutes after nine o'clock."""
    times = ",".join(minute(at) for at in (joined, started, ended))
    return f"{times},,{doctor},{plan}\n"


def left(joined: int, left: int) -> str:
    return f"{minute(joined)},,,{minute(left)},,p\n"


def minute(after_nine: int) -> str:
    return f"{DAY}{9 + after_nine // 60:02d}:{after_nine % 60:02d}:00Z"
