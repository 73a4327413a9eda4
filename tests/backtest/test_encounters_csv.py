"""A CSV of past encounters: what can be read, and every fault of the rest."""

import io
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from frontdesk.backtest.columns import NO_PRIORITY
from frontdesk.backtest.encounters_csv import (
    FAULTS_KEPT,
    PROGRESS_EVERY,
    CellRules,
    read_encounters,
)
from frontdesk.queues.model import EventType
from tests.backtest.encounters import DAY, HEAD, NOW, events_of, read, rows_of


@pytest.mark.parametrize(("zone", "separator"), [("Z", ","), ("", ";"), ("", "\t")])
def test_columns_are_found_by_name_and_times_without_offset_are_utc(
    zone: str, separator: str
) -> None:
    text = f"Plan, DOCTOR ,note,Joined,Started\nGold,dr-1,x,{DAY}09:00:00{zone},2026-11-20 04:05:00-05:00\n"
    found = read(text.replace(",", separator))
    assert found.faults == []
    [row] = rows_of(found)
    assert row.started == (row.joined or 0) + 300
    assert (row.ended, row.left, row.doctor, row.plan) == (None, None, "dr-1", "Gold")


@pytest.mark.parametrize(
    ("row", "faults"),
    [
        (",,,,,", [("joined", "required")]),
        (f"yesterday,{DAY}25:00:00Z,,,a,", [("joined", "not_a_time"), ("started", "not_a_time")]),
        (f"{DAY}09:00:00Z,{DAY}09:01:00Z,,,,", [("doctor", "required")]),
        (f"{DAY}09:00:00Z,,{DAY}09:05:00Z,,a,", [("started", "required")]),
        (f"{DAY}09:00:00Z,,,,,\x1b[31mred", [("plan", "control_character")]),
        (f"{DAY}09:00:00Z,,,,,r\u202eed", [("plan", "control_character")]),
        (f"{DAY}09:00:00Z,,,,,{'x' * 201}", [("plan", "too_long")]),
        (f"{DAY}09:00:00Z,{DAY}09:01:00Z,,{DAY}09:01:00Z,a,", [("left", "not_allowed")]),
        (f"{DAY}09:00:00Z,{DAY}08:00:00Z,,,a,", [("started", "too_early")]),
        (f",{DAY}09:00:00Z,{DAY}08:00:00Z,,a,", [("ended", "too_early")]),
        (f"{DAY}09:00:00Z,,,{DAY}08:00:00Z,,", [("left", "too_early")]),
        ("joined,started,ended,left,doctor,plan", [(name, "not_a_time") for name in
            ("joined", "started", "ended", "left")]),
        (f"{DAY}09:00:00Z,{DAY}09:01:00Z,2062-11-20T09:05:00Z,,a,", [("ended", "in_the_future")]),
    ],
)  # fmt: skip
def test_each_fault_of_a_row_is_told_with_its_line(row: str, faults: list[tuple[str, str]]) -> None:
    found = read(f"{HEAD}{DAY}08:00:00Z,,,,,\n{row}\n")
    told = [(line, fault.field, fault.code) for line, fault in found.faults]
    assert told == [(3, *fault) for fault in faults]
    assert (len(found.rows), found.faulty_rows) == (1, 1)
    assert not any("yesterday" in fault.message for _, fault in found.faults)


def test_an_end_of_a_patient_that_left_is_no_fault() -> None:
    assert read(f"{HEAD}{DAY}09:00:00Z,,{DAY}09:05:00Z,{DAY}09:05:00Z,,\n").faults == []


def test_invisible_characters_around_a_plan_are_left_out() -> None:
    found = read(f"{HEAD}{DAY}09:00:00Z,,,,,\u202e red\u200b\n")
    assert (found.faults, [row.plan for row in rows_of(found)]) == ([], ["red"])


def test_a_time_may_be_a_day_ahead_of_the_clock() -> None:
    for ahead, faults in ((timedelta(hours=23), 0), (timedelta(hours=25), 1)):
        at = datetime.fromtimestamp(NOW, UTC) + ahead
        assert read(f"{HEAD}{at.isoformat()},,,,,\n").fault_count == faults


def test_of_many_faults_the_first_are_kept_and_all_are_counted() -> None:
    found = read(HEAD + "soon,,,,,\n" * (FAULTS_KEPT + 50))
    assert len(found.faults) == FAULTS_KEPT
    assert found.fault_count == found.faulty_rows == FAULTS_KEPT + 50


def test_reading_reports_its_progress() -> None:
    calls: list[int] = []
    lines = io.StringIO(HEAD + f"{DAY}09:00:00Z,,,,,\n" * (2 * PROGRESS_EVERY + 1))
    read_encounters(lines, CellRules(None, NOW), progress=lambda: calls.append(1))
    assert len(calls) == 3


def test_another_file_is_told_by_its_missing_columns_or_as_unreadable() -> None:
    unreadable = f"{HEAD}\udcff\udcfe\0", f'{HEAD}"{"x" * 200_000}",,,,,\n'
    for content in ("", "\n", "a,b\n1,2\n", *unreadable):
        raw = io.BytesIO(content.encode(errors="surrogateescape"))
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        found = read_encounters(text, CellRules(None, NOW))
        expected = ["file"] if content in unreadable else ["joined", "started", "doctor"]
        assert [fault.field for _, fault in found.faults] == expected


def test_a_title_above_the_names_of_the_columns_is_pointed_at() -> None:
    found = read(f"Report of November,,,,,\n,,,,,\n{HEAD}{DAY}09:00:00Z,,,,,\n")
    rule = "is not among the columns of the first line; line 3 names it: remove the lines above"
    assert {fault.message for _, fault in found.faults} == {rule}


def test_clocks_that_differ_by_seconds_are_no_fault() -> None:
    """As in a bank's call centre: put through at 8:03:31, answered at 8:03:30."""
    good = f"{DAY}08:03:31Z,{DAY}08:03:30Z,{DAY}08:03:28Z"
    too_early = f"{DAY}08:03:40Z,{DAY}08:03:30Z,"
    found = read(f"{HEAD}{good},,a,\n{too_early},,a,\n")
    [row] = rows_of(found)
    assert row.joined == row.started == row.ended
    assert [(line, fault.code) for line, fault in found.faults] == [(3, "too_early")]


def test_a_visit_that_ends_days_after_its_start_counts_as_without_an_end() -> None:
    row = f"{DAY}09:00:00Z,{DAY}09:01:00Z,{{}},,a,p\n"
    ends = ("2026-11-21T09:01:00Z", "2026-11-21T09:01:01Z")
    found = read(HEAD + "".join(row.format(end) for end in ends))
    assert [one.ended is None for one in rows_of(found)] == [False, True]
    assert list(found.late_ends) == [3]


NEW_YORK = ZoneInfo("America/New_York")


def test_local_times_that_do_not_exist_or_exist_twice_are_named() -> None:
    """On 8 March 2026 two o'clock is left out in New York; on 1 November one o'clock comes twice."""
    times = ("2026-03-08 01:59,2026-03-08 03:00", "2026-03-08 01:59,2026-03-08 02:30",
             "2026-11-01 00:59,2026-11-01 01:30",
             "2026-11-01 00:59-04:00,2026-11-01 01:30-04:00")  # fmt: skip
    found = read(HEAD + "".join(f"{both},,,a,p\n" for both in times), NEW_YORK)
    told = [(line, fault.field, fault.code) for line, fault in found.faults]
    assert told == [(3, "started", "no_such_time"), (4, "started", "time_exists_twice")]
    assert len(found.rows) == 2
    text = f"{HEAD}2026-07-01 09:00,2026-11-12 09:00,2026-11-12T16:00:00Z,,a,p\n"
    [row] = rows_of(read(text, NEW_YORK))
    at = [
        datetime.fromtimestamp(each or 0, UTC).isoformat()[5:16]
        for each in (row.joined, row.started, row.ended)
    ]
    assert at == ["07-01T13:00", "11-12T14:00", "11-12T16:00"]


@pytest.mark.parametrize(
    ("joined", "lines"),
    [
        (("01:10:00", "01:58:00", "01:02:00", "01:20:00"), [4]),
        (("01:10:00", "01:58:00", "01:57:30", "02:20:00"), []),
        (("01:10:00Z", "01:58:00Z", "01:02:00Z", "01:20:00Z"), []),
        (("04:10:00", "01:58:00", "01:02:00", "01:20:00"), []),
    ],
)
def test_local_times_that_go_back_an_hour_are_named(
    joined: tuple[str, ...], lines: list[int]
) -> None:
    text = HEAD + "".join(f"2026-11-01T{at},2026-11-01T{at},,,a,p\n" for at in joined)
    assert list(read(text).set_back) == lines
    assert list(read(text, UTC).set_back) == []


WORDS = "joined,started,doctor,class,priority,not_before\n"


def test_a_patient_may_have_a_class_and_a_priority() -> None:
    joined = f"{DAY}09:00:00Z,{DAY}09:10:00Z,a"
    events = events_of(f"{WORDS}{joined},urgent,10,\n{joined},,-100,\n{joined},,,\n")
    told = [
        (one.patient_class, one.priority) for one in events if one.type is EventType.PATIENT_JOINED
    ]
    assert told == [("urgent", 10), (None, -100), (None, None)]
    assert NO_PRIORITY < -100


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("Urgent,", "class"), ("follow up,", "class"), ("a" * 41 + ",", "class"),
        (",101", "priority"), (",-101", "priority"), (",high", "priority"), (",1.5", "priority"),
    ],
)  # fmt: skip
def test_a_class_and_a_priority_that_the_service_would_refuse_are_faults(
    words: str, field: str
) -> None:
    found = read(f"{WORDS}{DAY}09:00:00Z,{DAY}09:10:00Z,a,{words},\n")
    told = [(line, fault.field, fault.code) for line, fault in found.faults]
    assert told == [(2, field, "not_allowed")]
    assert len(found.rows) == 0


@pytest.mark.parametrize(
    ("booked", "joined"),
    [("", "09:00"), ("08:30", "09:00"), ("09:05", "09:05"), ("09:30", "09:10")],
)
def test_a_booked_patient_is_in_the_line_from_the_booked_time_on(booked: str, joined: str) -> None:
    """A visit that begins before the booked time had no wait."""
    not_before = f"{DAY}{booked}:00Z" if booked else ""
    text = f"{WORDS}{DAY}09:00:00Z,{DAY}09:10:00Z,a,,,{not_before}\n"
    [joining] = [one for one in events_of(text) if one.type is EventType.PATIENT_JOINED]
    assert datetime.fromtimestamp(joining.at, UTC).isoformat()[11:16] == joined
