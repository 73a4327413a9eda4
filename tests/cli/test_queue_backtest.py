"""`frontdesk queue backtest`: on stored events, on a CSV, on nothing."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from frontdesk.cli.queue_backtest import FAULTS_SHOWN
from frontdesk.clock import system_clock
from frontdesk.queues.ingest import ingest
from tests.cli.conftest import CommandLine
from tests.queues.feed import ENDED, JOINED, ON, STARTED, event, make_clinic

HEAD = "joined,started,ended,left,doctor,plan\n"


def seen(visit: str, plan: int, joined: float, waited: float) -> list[Any]:
    return [
        event(f"j{visit}", JOINED, joined, plan_id=plan, visit=visit),
        event(f"s{visit}", STARTED, joined + waited, plan_id=plan, visit=visit, doctor="a"),
        event(f"e{visit}", ENDED, joined + waited + 300, plan_id=plan, visit=visit),
    ]


@pytest.fixture
def clinic_with_a_past(cli: CommandLine) -> int:
    """Its plan: one patient was seen at once, one waited 90 s beside an idle doctor, one joined before the last ten days."""
    cli.json("migrate")
    db = cli.open()
    clinic = make_clinic(db)
    plan, start = clinic.plan_ids[0], system_clock().replace(minute=0) - timedelta(days=5)
    events = [
        event("on", ON, -100, provider_group_id=clinic.group_id, doctor="a"),
        *seen("1", plan, 0, 0),
        *seen("2", plan, 1000, 90),
    ]
    base = events[1].at
    told = [one._replace(at=start + (one.at - base)) for one in events]
    with db.write() as tx:
        for one in told:
            ingest(tx, [one], now=one.at)
    db.close()
    return plan


def test_stored_events_are_judged_and_nothing_is_stored(cli: CommandLine, clinic_with_a_past: int) -> None:
    before = cli.audit_trail()
    found = cli.json("queue", "backtest", "--days", "10")
    assert {name: found[name] for name in ("judged", "left_unseen", "nobody_on_duty", "bad_rows")} == {
        "judged": 2,
        "left_unseen": 0,
        "nobody_on_duty": 0,
        "bad_rows": 0,
    }
    everyone = found["all"]
    assert (everyone["matched"], everyone["mean_wait_seconds"]) == (2, 45.0)
    assert (everyone["mean_error_seconds"], everyone["bias_seconds"]) == (45.0, -45.0)
    assert everyone["wrong_zero_share"] == 0.5
    assert [everyone[f"{name}_share"] for name in ("coverage", "below", "above")] == [None] * 3
    assert [rival["name"] for rival in everyone["rivals"]][:2] == ["AHT x position", "last wait"]
    assert [(one["plan_id"], one["plan"], one["matched"]) for one in found["by_plan"]] == [
        (clinic_with_a_past, "Plan 0", 2)
    ]
    assert sum(one["matched"] for one in found["by_hour"]) == 2
    assert [one["position"] for one in found["by_position"]] == ["ready"]
    assert cli.audit_trail() == before


def test_people_get_tables(cli: CommandLine, clinic_with_a_past: int) -> None:
    text = cli.text("queue", "backtest")
    assert "2 patients judged" in text
    for part in ("AHT x position", "Plan 0", "0:45 min"):
        assert part in text


def test_patients_before_these_days_are_not_judged(cli: CommandLine, clinic_with_a_past: int) -> None:
    assert cli.json("queue", "backtest", "--days", "3")["judged"] == 0


def test_an_empty_database_is_no_error(cli: CommandLine) -> None:
    cli.json("migrate")
    assert cli.json("queue", "backtest") == {
        "days": 30,
        "judged": 0,
        "left_unseen": 0,
        "nobody_on_duty": 0,
        "bad_rows": 0,
        "rows_without_end": 0,
        "warnings": [],
    }
    assert "No patient that joined in the last 30 days" in cli.text("queue", "backtest")


def test_a_csv_is_judged_without_a_database(bare_cli: CommandLine, tmp_path: Path) -> None:
    rows = [
        f"2026-11-20T{8 + n // 6:02d}:{n % 6 * 10:02d}:00Z,2026-11-20T{8 + n // 6:02d}:{n % 6 * 10 + 1:02d}:00Z,"
        f"2026-11-20T{8 + n // 6:02d}:{n % 6 * 10 + 9:02d}:00Z,,dr-1,Gold\n"
        for n in range(12)
    ]
    file = tmp_path / "encounters.csv"
    lost = "2026-11-20T08:00:00Z,,,,,Gold\n"
    file.write_text("\ufeff" + HEAD + "".join([*rows, lost]), encoding="utf-8")
    found = bare_cli.json("queue", "backtest", "--csv", str(file))
    assert (found["judged"], found["nobody_on_duty"], found["rows_without_end"]) == (11, 1, 1)
    assert [(one["plan_id"], one["plan"]) for one in found["by_plan"]] == [(None, "Gold")]
    text = bare_cli.text("queue", "backtest", "--csv", str(file))
    assert "Gold" in text
    assert "1 rows without an end of the wait left out." in text


def test_every_bad_row_is_told_and_may_be_left_out(bare_cli: CommandLine, tmp_path: Path) -> None:
    good = (
        "2026-11-20T08:00:00Z,2026-11-20T08:01:00Z,,,a,p\n2026-11-20T08:00:30Z,2026-11-20T08:02:00Z,,,a,p\n"
    )
    file = tmp_path / "encounters.csv"
    file.write_text(HEAD + good + "soon,,,,,\n" * (FAULTS_SHOWN + 2))
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), status=1)
    assert "line 4: joined is not a time such as 2026-11-20T09:15:00Z" in told
    assert "and 2 more" in told
    assert "soon" not in told
    found = bare_cli.json("queue", "backtest", "--csv", str(file), "--skip-bad-rows")
    assert found["bad_rows"] == FAULTS_SHOWN + 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04\xff\xfe", b"id,name\n1,x\n"])
def test_another_file_is_refused_whatever_is_to_be_skipped(
    bare_cli: CommandLine, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "other.csv"
    file.write_bytes(content)
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), "--skip-bad-rows", status=1)
    assert "The file has faults" in told


def test_what_is_wrong_with_a_past_is_said_before_its_figures(bare_cli: CommandLine, tmp_path: Path) -> None:
    row = "2026-11-20T{0}:00Z,2026-11-20T{0}:10Z,,,a,p\n"
    file = tmp_path / "encounters.csv"
    file.write_text(HEAD + "".join(row.format(f"08:{n:02d}") * 2 for n in range(20)))
    found = bare_cli.json("queue", "backtest", "--csv", str(file))
    assert [warning["code"] for warning in found["warnings"]] == ["repeated_rows", "no_ends"]
    lines = bare_cli.text("queue", "backtest", "--csv", str(file)).splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["Warning", "Warning"]
    assert "Remove the copies." in lines[0]
    assert "patients judged" in lines[2]


def test_local_times_over_a_change_of_the_clock_are_named_with_their_line(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    times = ("01:40", "01:55", "01:05", "01:30", "02:10", "02:30")
    file = tmp_path / "encounters.csv"
    file.write_text(HEAD + "".join(f"2026-11-01 {at}:00,2026-11-01 {at}:20,,,a,p\n" for at in times))
    (warning, _) = bare_cli.json("queue", "backtest", "--csv", str(file))["warnings"]
    assert (warning["code"], warning["lines"]) == ("times_go_back", [4])
    zone = ("--time-zone", "America/New_York")
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), *zone, status=1)
    assert "line 2: joined exists twice in the time zone: write it with its offset" in told
    found = bare_cli.json("queue", "backtest", "--csv", str(file), *zone, "--skip-bad-rows")
    assert (found["bad_rows"], [warning["code"] for warning in found["warnings"]]) == (4, ["no_ends"])


def test_a_time_zone_that_is_not_known_is_told(bare_cli: CommandLine) -> None:
    told = bare_cli.refused("queue", "backtest", "--csv", "-", "--time-zone", "../x", status=2)
    assert "does not know the time zone" in told


def test_a_file_that_is_not_there_is_told(bare_cli: CommandLine) -> None:
    assert "can't be read" in bare_cli.refused("queue", "backtest", "--csv", "no/such.csv", status=1)
