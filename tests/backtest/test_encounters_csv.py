"""A CSV of past encounters: what can be read, every fault of the rest, the shifts that follow from
the visits, and what makes a past unfit to be judged.
"""

import io
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from frontdesk.backtest.encounters_csv import EncountersCsv, encounter_events, read_encounters
from frontdesk.backtest.judge import run_backtest, warnings_of, warnings_of_file
from tests.queues.feed import ENDED, JOINED, LEFT, OFF, ON, STARTED

HEAD = "joined,started,ended,left,doctor,plan\n"
DAY = "2026-11-20T"


def read(text: str) -> EncountersCsv:
    return read_encounters(io.StringIO(text, newline=""))


@pytest.mark.parametrize(("zone", "separator"), [("Z", ","), ("", ";"), ("", "\t")])
def test_columns_are_found_by_name_and_times_without_offset_are_utc(
    zone: str, separator: str
) -> None:
    text = f"Plan, DOCTOR ,note,Joined,Started\nGold,dr-1,x,{DAY}09:00:00{zone},2026-11-20 04:05:00-05:00\n"
    found = read(text.replace(",", separator))
    assert found.faults == []
    [row] = found.rows
    assert row.started == (row.joined or 0) + 300
    assert (row.ended, row.left, row.doctor, row.plan) == (None, None, "dr-1", "Gold")


@pytest.mark.parametrize(
    ("row", "faults"),
    [
        (",,,,,", [("joined", "required")]),
        (f"yesterday,{DAY}25:00:00Z,,,a,", [("joined", "not_a_time"), ("started", "not_a_time")]),
        (f"{DAY}09:00:00Z,{DAY}09:01:00Z,,,,", [("doctor", "required")]),
        (f"{DAY}09:00:00Z,{DAY}09:01:00Z,,{DAY}09:01:00Z,a,", [("left", "not_allowed")]),
        (f"{DAY}09:00:00Z,{DAY}08:00:00Z,,,a,", [("started", "too_early")]),
        (f",{DAY}09:00:00Z,{DAY}08:00:00Z,,a,", [("ended", "too_early")]),
        (f"{DAY}09:00:00Z,,,{DAY}08:00:00Z,,", [("left", "too_early")]),
    ],
)
def test_each_fault_of_a_row_is_told_with_its_line(row: str, faults: list[tuple[str, str]]) -> None:
    found = read(f"{HEAD}{DAY}08:00:00Z,,,,,\n{row}\n")
    told = [(line, fault.field, fault.code) for line, fault in found.faults]
    assert told == [(3, *fault) for fault in faults]
    assert (len(found.rows), found.faulty_rows) == (1, 1)
    assert not any("yesterday" in fault.message for _, fault in found.faults)


def test_another_file_is_told_by_its_missing_columns_or_as_unreadable() -> None:
    unreadable = f"{HEAD}\udcff\udcfe\0", f'{HEAD}"{"x" * 200_000}",,,,,\n'
    for content in ("", "\n", "a,b\n1,2\n", *unreadable):
        raw = io.BytesIO(content.encode(errors="surrogateescape"))
        found = read_encounters(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
        expected = ["file"] if content in unreadable else ["joined", "started", "doctor"]
        assert [fault.field for _, fault in found.faults] == expected


def test_clocks_that_differ_by_seconds_are_no_fault() -> None:
    """As in a bank's call centre: put through at 8:03:31, answered at 8:03:30."""
    good = f"{DAY}08:03:31Z,{DAY}08:03:30Z,{DAY}08:03:28Z"
    too_early = f"{DAY}08:03:40Z,{DAY}08:03:30Z,"
    found = read(f"{HEAD}{good},,a,\n{too_early},,a,\n")
    [row] = found.rows
    assert row.joined == row.started == row.ended
    assert [(line, fault.code) for line, fault in found.faults] == [(3, "too_early")]


def test_an_encounter_becomes_its_events_and_plans_keep_their_names() -> None:
    rows = [seen("a", 0, 1, 5), f"{DAY}09:02:00Z,,,{DAY}09:04:00Z,,Silver\n"]
    told = encounter_events(read(HEAD + "".join(rows)).rows)
    assert told.plans == {1: "p", 2: "Silver"}
    of_visits = [(event.type, event.plan_id) for event in told.events if event.visit]
    assert of_visits == [(JOINED, 1), (STARTED, 1), (ENDED, 1), (JOINED, 2), (LEFT, 2)]
    assert {event.plan_ids for event in told.events if event.type is ON} == {frozenset({1})}


def shifts(*visits: tuple[str, str]) -> list[tuple[str, str]]:
    rows = read(
        HEAD + "".join(f",{DAY}{start}:00Z,{DAY}{end}:00Z,,a,p\n" for start, end in visits)
    ).rows
    events = [event for event in encounter_events(rows).events if event.type in (ON, OFF)]
    base = rows[0].started or 0.0
    at = [f"{(event.at - base) / 3600:g}" for event in events]
    return list(zip(at[::2], at[1::2], strict=True))


def test_a_doctor_is_on_duty_while_visits_are_less_than_an_hour_apart() -> None:
    assert shifts(("09:00", "09:30"), ("10:15", "10:30"), ("13:00", "14:00")) == [
        ("0", "1.5"),
        ("4", "5"),
    ]
    # A single visit whose end is cut to the minute of its start keeps no doctor on duty.
    assert shifts(("09:00", "09:00")) == []
    assert shifts(("09:00", "09:30"), ("13:00", "13:00")) == [("0", "0.5")]


def test_a_forgotten_end_does_not_raise_a_doctors_usual_visits() -> None:
    chat = [seen("chat", n, n, n + 3) for n in range(50)]
    single = [seen("single", n, n, n + 1) for n in range(1, 40)]
    assert places([*chat, *single, seen("single", 0, 0, 2)]) == {"chat": 3, "single": 1}


def places(rows: list[str]) -> dict[str, int]:
    told = encounter_events(read(HEAD + "".join(rows)).rows)
    return {event.doctor: event.capacity for event in told.events if event.type is ON}


def seen(doctor: str, joined: int, started: int, ended: int) -> str:
    times = (f"{DAY}{9 + at // 60:02d}:{at % 60:02d}:00Z" for at in (joined, started, ended))
    return "{},{},{},,{},p\n".format(*times, doctor)


def test_ends_that_are_told_late_are_no_second_place_while_patients_wait() -> None:
    """Each fourth visit was told to end three minutes after the doctor's next one had begun."""
    phone = [
        seen("phone", 4 * n, 5 * n + 10, 5 * n + 15 + (3 if n % 4 == 0 else 0)) for n in range(40)
    ]
    assert places(phone) == {"phone": 1}
    chat = [seen("chat", 4 * n, 5 * n + 10, 5 * n + 20) for n in range(40)]
    assert places([*phone, *chat]) == {"phone": 1, "chat": 2}
    # A doctor of few waits has as many places as the others.
    seldom = [seen("seldom", 1, 10, 40), seen("seldom", 35, 38, 60)]
    assert places([*phone, *seldom]) == {"phone": 1, "seldom": 1}
    assert places(seldom) == {"seldom": 2}


def test_a_wait_without_an_end_is_left_out() -> None:
    """Otherwise its patient would stand in the line of all that follow, for a day."""
    rows = [
        f"{DAY}08:00:00Z,,,,,p\n",
        *(seen("a", 10 * n + 1, 10 * n + 1, 10 * n + 6) for n in range(4)),
    ]
    told = encounter_events(read(HEAD + "".join(rows)).rows)
    assert told.without_end == 1
    found = run_backtest(told.events, since=0.0)
    assert {one.position for one in found.judged} == {0}


NEW_YORK = ZoneInfo("America/New_York")


def test_local_times_that_do_not_exist_or_exist_twice_are_named() -> None:
    """On 8 March 2026 two o'clock is left out in New York; on 1 November one o'clock comes twice."""
    times = ("2026-03-08 01:59,2026-03-08 03:00", "2026-03-08 01:59,2026-03-08 02:30",
             "2026-11-01 00:59,2026-11-01 01:30",
             "2026-11-01 00:59-04:00,2026-11-01 01:30-04:00")  # fmt: skip
    found = read_encounters(
        io.StringIO(HEAD + "".join(f"{both},,,a,p\n" for both in times)), NEW_YORK
    )
    told = [(line, fault.field, fault.code) for line, fault in found.faults]
    assert told == [(3, "started", "no_such_time"), (4, "started", "time_exists_twice")]
    assert len(found.rows) == 2
    text = f"{HEAD}2026-07-01 09:00,2026-12-01 09:00,2026-12-01T16:00:00Z,,a,p\n"
    [row] = read_encounters(io.StringIO(text), NEW_YORK).rows
    at = [
        datetime.fromtimestamp(each or 0, UTC).isoformat()[5:16]
        for each in (row.joined, row.started, row.ended)
    ]
    assert at == ["07-01T13:00", "12-01T14:00", "12-01T16:00"]


@pytest.mark.parametrize(
    ("joined", "lines"),
    [
        (("01:10:00", "01:58:00", "01:02:00", "01:20:00"), (4,)),
        (("01:10:00", "01:58:00", "01:57:30", "02:20:00"), ()),
        (("01:10:00Z", "01:58:00Z", "01:02:00Z", "01:20:00Z"), ()),
        (("04:10:00", "01:58:00", "01:02:00", "01:20:00"), ()),
    ],
)
def test_local_times_that_go_back_an_hour_are_named(
    joined: tuple[str, ...], lines: tuple[int, ...]
) -> None:
    text = HEAD + "".join(f"2026-11-01T{at},2026-11-01T{at},,,a,p\n" for at in joined)
    assert read(text).set_back == lines
    assert read_encounters(io.StringIO(text), UTC).set_back == ()


def warnings(rows: list[str]) -> dict[str, str]:
    """The message of each warning, by its code."""
    found = read(HEAD + "".join(rows))
    assert found.faults == []
    events = encounter_events(found.rows).events
    told = [*warnings_of_file(found), *warnings_of(events, run_backtest(events, since=0.0))]
    return {warning.code: warning.message for warning in told}


def short(minute: int, doctor: str = "a") -> str:
    return seen(doctor, minute, minute, minute + 4)


def without_end(minute: int) -> str:
    return "{0},{0},,,a,p\n".format(short(minute).split(",")[0])


def left(joined: int, left: int) -> str:
    return "{},,,{},,p\n".format(*(short(minute).split(",")[0] for minute in (joined, left)))


USUAL = [short(5 * n, doctor) for n in range(60) for doctor in ("a", "b")]
HOURLY = [short(60 * hour + n, f"dr-{n}") for hour in range(8) for n in range(20)]


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([*USUAL, *(left(n, n) for n in range(60) for _ in range(2))], []),
        ([without_end(5 * n) for n in range(60)], ["no_ends"]),
        ([without_end(5 * n) if n % 4 == 0 else short(5 * n) for n in range(60)], []),
        ([row for row in USUAL for _ in range(2)], ["repeated_rows"]),
        ([*USUAL, USUAL[7]], []),
        (HOURLY, []),
    ],
)
def test_what_makes_a_past_unfit_to_be_judged_is_warned_of(
    rows: list[str], codes: list[str]
) -> None:
    assert [*warnings(rows)] == codes


def test_a_line_beside_idle_doctors_is_warned_of_and_described() -> None:
    """Twenty doctors have a visit an hour; the patients that left are told to have left at night."""
    [(code, message)] = warnings([*HOURLY, *[left(30, 840)] * 33]).items()
    assert code == "waiting_beside_idle"
    assert "33 beside 20 at 2026-11-20T10:00:00Z" in message
