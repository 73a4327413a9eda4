"""What makes a past unfit to be judged, told before the figures; a usual past gets no warning."""

import io

from frontdesk.queues.backtest.encounters_csv import encounter_events, read_encounters
from frontdesk.queues.backtest.judge import run_backtest, warnings_of, warnings_of_file

HEAD = "joined,started,ended,left,doctor,plan\n"


def at(minute: int) -> str:
    return f"2026-11-20T{8 + minute // 60:02d}:{minute % 60:02d}:00Z"


def warnings(rows: list[str]) -> dict[str, str]:
    """The message of each warning, by its code."""
    found = read_encounters(io.StringIO(HEAD + "".join(rows)))
    assert found.faults == []
    events = encounter_events(found.rows).events
    told = [*warnings_of_file(found), *warnings_of(events, run_backtest(events, since=0.0))]
    return {warning.code: warning.message for warning in told}


def warned(rows: list[str]) -> list[str]:
    return [*warnings(rows)]


def seen(minute: int, doctor: str = "a", *, ended: bool = True) -> str:
    end = at(minute + 4) if ended else ""
    return f"{at(minute)},{at(minute)},{end},,{doctor},p\n"


USUAL = [seen(5 * n, doctor) for n in range(60) for doctor in ("a", "b")]


def test_a_usual_past_gets_no_warning() -> None:
    hung_up = [f"{at(n)},,,{at(n)},,p\n" for n in range(60)]
    assert warned([*USUAL, *hung_up, *hung_up]) == []


def test_visits_without_ends_are_warned_of() -> None:
    assert warned([seen(5 * n, ended=False) for n in range(60)]) == ["no_ends"]
    assert warned([seen(5 * n, ended=n % 4 > 0) for n in range(60)]) == []


def test_a_file_with_each_row_twice_is_warned_of() -> None:
    assert warned([row for row in USUAL for _ in range(2)]) == ["repeated_rows"]
    assert warned([*USUAL, USUAL[7]]) == []


def test_a_line_beside_idle_doctors_is_warned_of_and_described() -> None:
    """Twenty doctors have a visit an hour; the patients that left are told to have left at night."""
    visits = [seen(60 * hour + n, f"dr-{n}") for hour in range(8) for n in range(20)]
    assert warned(visits) == []
    [(code, message)] = warnings([*visits, *[f"{at(30)},,,{at(900)},,p\n"] * 33]).items()
    assert code == "waiting_beside_idle"
    assert "33 beside 20 at 2026-11-20T09:00:00Z" in message
