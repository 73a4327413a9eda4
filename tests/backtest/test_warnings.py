"""What makes a past unfit to be judged: each warning, with its numbers, its lines and its remedy."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from frontdesk.backtest.file_events import FileEvents
from frontdesk.backtest.judge import judge_past
from frontdesk.backtest.warnings import (
    LINES_SHOWN,
    BacktestWarning,
    warning_of_rows_apart,
    warnings_of,
    warnings_of_file,
)
from frontdesk.backtest.window import DEFAULT_DAYS, judged_days, rows_apart
from tests.backtest.encounters import HEAD, left, minute, read, seen


def warnings(rows: list[str]) -> dict[str, BacktestWarning]:
    """By code."""
    found = read(HEAD + "".join(rows))
    assert found.faults == []
    events = FileEvents(found.rows, since=0.0)
    told = [*warnings_of_file(found), *warnings_of(judge_past(events, since=0.0))]
    return {warning.code: warning for warning in told}


def short(minute: int, doctor: str = "a") -> str:
    return seen(doctor, minute, minute, minute + 4)


def without_end(at: int) -> str:
    return f"{minute(at)},{minute(at)},,,a,p\n"


def still_waits(at: int) -> str:
    return f"{minute(at)},,,,,p\n"


def ends_later(at: int, day: str) -> str:
    return short(at).replace(minute(at + 4), day + minute(at + 4)[10:])


USUAL = [short(5 * n, doctor) for n in range(60) for doctor in ("a", "b")]
HOURLY = [short(60 * hour + n, f"dr-{n}") for hour in range(8) for n in range(20)]


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([*USUAL, *(left(n, n) for n in range(60) for _ in range(2))], []),
        ([without_end(5 * n) for n in range(60)], ["no_ends"]),
        ([without_end(5 * n) if n % 10 == 0 else short(5 * n) for n in range(60)], ["no_ends"]),
        ([without_end(5 * n) if n % 11 == 0 else short(5 * n) for n in range(1, 60)], []),
        ([row for row in USUAL for _ in range(2)], ["repeated_rows"]),
        ([*USUAL, *(still_waits(n) for n in range(14))], ["no_wait_ends"]),
        ([*USUAL, *(still_waits(n) for n in range(13))], []),
        ([*USUAL, USUAL[7]], []),
        (HOURLY, []),
        ([*USUAL, ends_later(400, "2026-11-22")], ["late_ends"]),
        ([short(5 * n, f"visit-{n}") for n in range(60)], ["doctor_per_visit"]),
        ([short(5 * n, f"visit-{n}") for n in range(40)], []),
    ],
)  # fmt: skip
def test_what_makes_a_past_unfit_to_be_judged_is_warned_of(
    rows: list[str], codes: list[str]
) -> None:
    assert [*warnings(rows)] == codes


def test_a_line_beside_idle_doctors_is_warned_of_and_described() -> None:
    """Twenty doctors have a visit an hour; the patients that left are told to have left at night."""
    [(code, warning)] = warnings([*HOURLY, *[left(30, 840)] * 33]).items()
    assert code == "waiting_beside_idle"
    assert "33 beside 20 at 2026-11-20 10:00+00:00" in warning.message


def test_the_share_of_visits_without_an_end_is_told() -> None:
    rows = [without_end(5 * n) if n % 3 == 0 else short(5 * n) for n in range(60)]
    assert "Of 60 visits 20 (33%) have no end" in warnings(rows)["no_ends"].message


def test_rows_without_an_end_of_the_wait_are_told_with_their_number() -> None:
    told = warnings([*USUAL, *(still_waits(n) for n in range(30))])["no_wait_ends"]
    assert told.message.startswith("30 of 150 rows have no end of the wait, and are left out:")


def test_late_ends_are_told_with_their_lines() -> None:
    one = warnings([*USUAL, ends_later(400, "2026-11-24")])["late_ends"]
    assert one.lines == (122,)
    assert one.message.startswith(
        "1 visit with an end more than 24 hours after the start, at line 122."
    )
    late = [ends_later(n, "2026-11-22") for n in range(LINES_SHOWN + 3)]
    several = warnings([*USUAL, *late])["late_ends"]
    assert several.lines == tuple(range(122, 122 + LINES_SHOWN + 3))
    assert "23 visits with an end more than 24 hours" in several.message
    assert "140, 141 and 3 more." in several.message


def test_a_visit_number_in_the_column_of_doctors_is_told_with_the_numbers() -> None:
    told = warnings([short(5 * n, f"visit-{n}") for n in range(60)])["doctor_per_visit"]
    assert "60 visits have 60 different doctors" in told.message


def apart(rows: list[str]) -> BacktestWarning | None:
    found = read(HEAD + "".join(rows)).rows
    gap = rows_apart(found, judged_days(found, DEFAULT_DAYS))
    return gap and warning_of_rows_apart(gap, ZoneInfo("America/New_York"))


def on_day(number: int, after_nine: int = 0) -> str:
    """A row on the day with this number, from 1 June 2026."""
    day = datetime(2026, 6, 1, tzinfo=UTC) + timedelta(days=number)
    return short(after_nine).replace("2026-11-20", f"{day:%Y-%m-%d}")


def test_a_row_apart_from_all_others_is_told_with_the_gap_and_its_line() -> None:
    days = [on_day(number, at) for number in range(60) for at in range(0, 60, 5)]
    warning = apart([*days, on_day(170)])
    assert warning is not None
    assert warning.lines == (722,)
    assert "between 2026-07-30 05:55-04:00 and 2026-11-18 04:00-05:00" in warning.message
    assert "after that the file has only 1 row, at line 722." in warning.message
    assert "--days" in warning.message


@pytest.mark.parametrize(
    "rows",
    [
        [on_day(number, at) for number in range(-400, 170) for at in range(0, 20, 5)],
        # Open on one day a week.
        [on_day(number, at) for number in range(-401, 170, 7) for at in range(0, 60, 5)],
        [on_day(0), on_day(170)],
        [],
    ],
)
def test_a_long_file_has_no_row_apart(rows: list[str]) -> None:
    assert apart(rows) is None


def test_only_joinings_and_starts_say_which_days_are_judged() -> None:
    """An end ten hours later, a wait without an end and a leaving move them not."""
    rows = [
        on_day(0),
        on_day(1),
        on_day(2, 10),
        on_day(2, 700),
        ",".join([on_day(40)[:20], ",,,,p\n"]),
    ]
    rows[1] = rows[1].replace("09:04", "19:04")
    found = read(HEAD + "".join(rows)).rows
    days = judged_days(found, days=1)
    assert days.last == found.joined[3]
    assert days.since == days.last - 86400
    assert days.first == found.joined[2]
    assert (days.patients, days.all_patients) == (2, 4)
