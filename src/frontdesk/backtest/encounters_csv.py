"""Reads a CSV of past encounters, one per row, and makes the events that a clinical system would
have sent.

Columns by name, in any order (docs/wait-estimate.md): joined, started, ended, left, doctor, plan.
Such a file has no shifts; they are derived from the visits.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain, pairwise
from math import ceil
from operator import attrgetter
from typing import NamedTuple

from frontdesk import codes
from frontdesk.errors import Fault
from frontdesk.queues.estimate.model import READY_SECONDS
from frontdesk.queues.model import EventType, ReplayEvent
from frontdesk.text import Rejected

TIMES = ("joined", "started", "ended", "left")
COLUMNS = (*TIMES, "doctor", "plan")
NEEDED = ("joined", "started", "doctor")  # required columns
IN_ORDER = (("joined", "started"), ("joined", "left"), ("started", "ended"), ("joined", "ended"))
# In real files the systems of the line and of the visits have different clocks and roundings: a
# visit "starts" up to two seconds before its patient leaves the line.
CLOCKS_DIFFER_SECONDS = 5.0
HOUR = timedelta(hours=1)
OUT_OF_ORDER = timedelta(minutes=1)  # rows of one minute may be in any order

SHIFT_GAP_SECONDS = 3600.0  # a doctor without a visit for so long was off duty
# A doctor with room takes a waiting patient. So after each start with a wait all places are taken,
# except for late ends of visits (one more) and doctors that have just come (fewer): the number of
# visits that two thirds of these starts reach is the capacity.
MOST_SHARE = 2 / 3
ENOUGH_STARTS = 10
# Without waits: the number at this share of the starts. Some visits overlap because an end was
# forgotten.
USUAL_SHARE = 0.05


class EncounterRow(NamedTuple):
    """Seconds since 1970; None: there is no such time in the row."""

    joined: float | None
    started: float | None
    ended: float | None
    left: float | None
    doctor: str
    plan: str


class RowFault(NamedTuple):
    """`line` of the file, the first is 1; `fault.field` is the column."""

    line: int
    fault: Fault


class EncountersCsv(NamedTuple):
    """`set_back`: the lines at which times without an offset go back by up to an hour, in a file
    that is in order otherwise.
    """

    rows: list[EncounterRow]
    faults: list[RowFault]
    faulty_rows: int
    set_back: tuple[int, ...] = ()


class EncounterEvents(NamedTuple):
    """The events, and the names of the plans by the ids that the events have.

    `without_end`: the rows left out because they have no end of the wait; their patients would stay
    in the line for a day.
    """

    events: list[ReplayEvent]
    plans: dict[int, str]
    without_end: int = 0


def read_encounters(lines: Iterable[str], zone: tzinfo | None = None) -> EncountersCsv:
    """The rows that can be used, and ALL faults of the others. Columns that have other names are
    ignored.

    `zone`: of times without an offset; None: they are UTC.
    """
    text = iter(lines)
    rows: list[EncounterRow] = []
    faults: list[RowFault] = []
    local: list[tuple[int, datetime]] = []
    faulty = 0
    reader = csv.DictReader(text)
    try:
        first = next(text, "")
        # Spreadsheets of some countries write semicolons, databases tabs.
        reader = csv.DictReader(chain([first], text), delimiter=max(",;\t", key=first.count))
        reader.fieldnames = [(name or "").strip().lower() for name in reader.fieldnames or ()]
        rule = "is not among the columns of the first line"
        missing = [name for name in NEEDED if name not in reader.fieldnames]
        faults += [RowFault(1, Fault(name, codes.faults.REQUIRED, rule)) for name in missing]
        if faults:
            return EncountersCsv([], faults, 0)
        for values in reader:
            cells = {name: (values.get(name) or "").strip() for name in COLUMNS}
            row, found = _row(cells, zone)
            if found:
                faulty += 1
                faults += [RowFault(reader.line_num, fault) for fault in found]
            else:
                rows.append(row)
                at = datetime.fromisoformat(cells["joined"] or cells["started"])
                if zone is None and at.tzinfo is None:
                    local.append((reader.line_num, at))
    except (csv.Error, UnicodeDecodeError):
        line = reader.line_num + 1
        faults.append(
            RowFault(
                line,
                Fault("file", codes.operators.UNREADABLE, "is not CSV in UTF-8 from this line on"),
            )
        )
        faulty += 1
    return EncountersCsv(rows, faults, faulty, _set_back(local))


def _set_back(times: Sequence[tuple[int, datetime]]) -> tuple[int, ...]:
    """The lines at which a clock was set back; none where the file is in no order of time. `times`:
    those without an offset.
    """
    steps = [
        (line, last - at) for (_, last), (line, at) in pairwise(times) if last - at > OUT_OF_ORDER
    ]
    return (
        tuple(line for line, _ in steps)
        if all(HOUR / 2 < step <= HOUR for _, step in steps)
        else ()
    )


def _row(values: Mapping[str, str], zone: tzinfo | None) -> tuple[EncounterRow, list[Fault]]:
    times: dict[str, float | None] = {}
    faults = []
    for name in TIMES:
        try:
            times[name] = _seconds(values[name], zone) if values[name] else None
        except Rejected as rejected:
            times[name] = None
            faults.append(Fault(name, rejected.code, rejected.message))
    row = _with_one_clock(EncounterRow(**times, doctor=values["doctor"], plan=values["plan"]))
    return row, faults or list(_contradictions(row))


def _seconds(text: str, zone: tzinfo | None) -> float:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            at = _local(at, zone or UTC)
        return at.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise Rejected(
            codes.operators.NOT_A_TIME, "is not a time such as 2026-11-20T09:15:00Z"
        ) from None


def _local(at: datetime, zone: tzinfo) -> datetime:
    first = at.replace(tzinfo=zone)
    second = at.replace(tzinfo=zone, fold=1)
    before = first.utcoffset()
    after = second.utcoffset()
    if before is not None and after is not None and before != after:
        if before < after:
            raise Rejected(
                codes.operators.NO_SUCH_TIME,
                "does not exist in the time zone: the clocks are set forward",
            )
        raise Rejected(
            codes.operators.TIME_EXISTS_TWICE,
            "exists twice in the time zone: write it with its offset",
        )
    return first


def _with_one_clock(row: EncounterRow) -> EncounterRow:
    """The start of the visit counts where another time is on the wrong side of it by a few seconds."""
    if row.started is None:
        return row
    joined = row.joined
    ended = row.ended
    if joined is not None and 0 < joined - row.started <= CLOCKS_DIFFER_SECONDS:
        joined = row.started
    if ended is not None and 0 < row.started - ended <= CLOCKS_DIFFER_SECONDS:
        ended = row.started
    return row._replace(joined=joined, ended=ended)


def _contradictions(row: EncounterRow) -> Iterator[Fault]:
    if row.joined is None and row.started is None:
        yield Fault("joined", codes.faults.REQUIRED, "is missing, and so is started")
    if row.started is not None and not row.doctor:
        yield Fault("doctor", codes.faults.REQUIRED, "is missing although the visit started")
    if row.started is not None and row.left is not None:
        yield Fault(
            "left", codes.faults.NOT_ALLOWED, "a patient that was seen did not leave unseen"
        )
    for earlier, later in IN_ORDER:
        first = getattr(row, earlier)
        second = getattr(row, later)
        if first is not None and second is not None and second < first:
            yield Fault(later, codes.operators.TOO_EARLY, f"is before {earlier}")


def encounter_events(rows: Sequence[EncounterRow]) -> EncounterEvents:
    """The events of the encounters, and of the shifts that follow from them."""
    ids: dict[str, int] = {}
    for row in rows:
        ids.setdefault(row.plan, len(ids) + 1)
    events = shifts_of(
        SeenVisit(row.doctor, ids[row.plan], row.started, row.ended or row.started, row.joined)
        for row in rows
        if row.started is not None
    )
    known = [row for row in rows if row.started is not None or row.left is not None]
    for number, row in enumerate(known):
        events += _events_of(row, str(number), ids[row.plan])
    return EncounterEvents(events, {id_: name for name, id_ in ids.items()}, len(rows) - len(known))


def _events_of(row: EncounterRow, visit: str, plan_id: int) -> Iterator[ReplayEvent]:
    events_of_row = (
        (EventType.PATIENT_JOINED, row.joined),
        (EventType.VISIT_STARTED, row.started),
        (EventType.VISIT_ENDED, row.ended),
        (EventType.PATIENT_LEFT, row.left),
    )
    for type_, at in events_of_row:
        if at is not None:
            yield ReplayEvent(at, type_, plan_id, visit, row.doctor, known_at=at)


class SeenVisit(NamedTuple):
    """A visit of the doctor's. `joined` None: the patient was not waiting. Times in seconds since
    1970.
    """

    doctor: str
    plan_id: int
    started: float
    ended: float
    joined: float | None


def shifts_of(visits: Iterable[SeenVisit]) -> list[ReplayEvent]:
    """The shifts of each doctor, with the plans of the doctor's visits and the capacity."""
    by_doctor: defaultdict[str, list[SeenVisit]] = defaultdict(list)
    for visit in sorted(visits, key=attrgetter("started", "ended")):
        by_doctor[visit.doctor].append(visit)
    starts = {doctor: _starts(own) for doctor, own in by_doctor.items()}
    everyone = [in_hand for own in starts.values() for in_hand, after_wait in own if after_wait]
    events: list[ReplayEvent] = []
    for doctor, own in by_doctor.items():
        events += _shifts(doctor, own, _places(starts[doctor], everyone))
    return events


def _shifts(doctor: str, visits: Sequence[SeenVisit], places: int) -> Iterator[ReplayEvent]:
    plan_ids = frozenset(visit.plan_id for visit in visits)
    start = visits[0].started
    until = visits[0].ended
    shifts = []
    for visit in visits:
        if visit.started - until > SHIFT_GAP_SECONDS:
            shifts.append((start, until))
            start = visit.started
            until = visit.ended
        until = max(until, visit.ended)
    for on, off in [*shifts, (start, until)]:
        if off == on:
            continue  # at one instant `on` counts after `off`: the doctor would stay on duty
        yield ReplayEvent(
            on,
            EventType.DOCTOR_ON_DUTY,
            doctor=doctor,
            plan_ids=plan_ids,
            capacity=places,
            known_at=on,
        )
        yield ReplayEvent(off, EventType.DOCTOR_OFF_DUTY, doctor=doctor, known_at=off)


def _starts(visits: Sequence[SeenVisit]) -> list[tuple[int, bool]]:
    """By start: the number of visits that the doctor then has, by their reported ends; and whether
    the patient had waited.
    """
    found = []
    ends = list[float]()
    for visit in visits:
        ends = [end for end in ends if end > visit.started]
        ends.append(visit.ended)
        waited = visit.joined is not None and visit.started - visit.joined > READY_SECONDS
        found.append((len(ends), waited))
    return found


def _places(own: Sequence[tuple[int, bool]], everyone: Sequence[int]) -> int:
    """How many visits at a time. `everyone`: the numbers after starts with a wait, of all doctors."""
    for numbers in ([in_hand for in_hand, after_wait in own if after_wait], everyone):
        if len(numbers) >= ENOUGH_STARTS:
            return _reached(numbers, MOST_SHARE)
    return _reached([in_hand for in_hand, _ in own], USUAL_SHARE)


def _reached(numbers: Sequence[int], share: float) -> int:
    """The largest number that this share of the numbers reaches."""
    return sorted(numbers, reverse=True)[max(0, ceil(share * len(numbers)) - 1)]
