"""`frontdesk queue`: live queues, the keeping of their events, and the back-test on stored events,
on a CSV, on nothing.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.cli.queue_backtest import FAULTS_SHOWN
from frontdesk.clock import system_clock
from frontdesk.db.engine import write_together
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.queues.tables import encounters, estimate_log
from tests.cli.conftest import CommandLine
from tests.queues.feed import ENDED, JOINED, ON, STARTED, event, make_clinic


@pytest.fixture
def demo(cli: CommandLine) -> dict[str, Any]:
    made: dict[str, Any] = cli.json("demo")
    return made


def told(type_: EventType, plan: int, visit: str, at: datetime) -> QueueEvent:
    """An event of a visit to the doctor that its first letter names."""
    return event(f"{type_}{visit}", type_, 0, plan_id=plan, visit=visit, doctor=visit[0])._replace(
        at=at
    )


def test_the_board_shows_each_plan_with_its_queue(cli: CommandLine, demo: dict[str, Any]) -> None:
    items = cli.json("queue", "watch")
    assert [item["plan_id"] for item in items] == demo["plan_ids"]
    assert [item["doctors"] for item in items] == [2, 2, 1, 1]
    assert [item["queue_length"] for item in items] == [3, 1, 2, 0]
    assert all(item["is_active"] and item["estimated_wait_time"] > 0 for item in items)
    assert items[0]["last_hour"] == {"matched": 0, "mean_error_seconds": None}
    board = cli.text("queue", "watch", "--once", "--account", str(demo["account_id"]))
    assert "Demo Bronze" in board
    assert "min" in board


def test_rebuilding_mends_what_is_not_of_the_events(cli: CommandLine, demo: dict[str, Any]) -> None:
    assert cli.json("queue", "rebuild")["mended"] == 0
    db = cli.open()
    with db.write() as tx:
        tx.execute(update(encounters).values(state="left"))
    db.close()
    assert "were wrong and are corrected" in cli.text("queue", "rebuild")
    assert "All rows were correct" in cli.text("queue", "rebuild")
    assert [entry["action"] for entry in cli.audit_trail()][-3:] == ["queue.rebuilt"] * 3


def test_old_events_are_forgotten_by_age(cli: CommandLine, demo: dict[str, Any]) -> None:
    assert cli.json("queue", "prune") == {"events": 0, "encounters": 0, "estimates": 0}
    plan = demo["plan_ids"][0]
    now = system_clock()
    then = now - timedelta(days=30)
    db = cli.open()
    old = [told(type_, plan, "x", then) for type_ in (JOINED, STARTED)]
    write_together(db, old, lambda tx, events: ingest(tx, events, now=now))
    db.close()
    assert cli.json("queue", "prune", "--older-than", "29d") == {
        "events": 2,
        "encounters": 1,
        "estimates": 0,
    }
    assert "Deleted: 0 events" in cli.text("queue", "prune", "--older-than", "29d")


@pytest.mark.parametrize("age", ["7d", "90", "0d", "d", "90h", "٩0d"])
def test_an_age_in_which_events_may_come_again_is_misuse(bare_cli: CommandLine, age: str) -> None:
    assert "8d at least" in bare_cli.refused("queue", "prune", "--older-than", age, status=2)


def test_estimates_are_compared_with_the_waits_that_came(
    cli: CommandLine, demo: dict[str, Any]
) -> None:
    assert "No patient" in cli.text("queue", "accuracy")
    plan = demo["plan_ids"][0]
    now = system_clock()
    db = cli.open()
    for number, (minutes_ago, estimate, wait) in enumerate(
        [(50, 600, 660), (30, 300, 240), (10, 60, 90)]
    ):
        joined = now - timedelta(minutes=minutes_ago)
        row = {
            "plan_id": plan,
            "taken_at": joined - timedelta(seconds=5),
            "estimate_seconds": estimate,
        }
        made = [
            told(type_, plan, f"{doctor}{number}", joined + timedelta(seconds=second))
            for doctor, seconds in (("a", (0, wait)), ("b", (3, 2000)))
            for type_, second in zip((JOINED, STARTED), seconds, strict=True)
        ]
        with db.write() as tx:
            tx.execute(
                estimate_log.insert(), [row | {"expires_at": joined + timedelta(seconds=10)}]
            )
            ingest(tx, made, now=now)
    db.close()
    outcome = cli.json("queue", "accuracy", "--hours", "2")
    figures = {"mean_wait_seconds": 330, "mean_error_seconds": 50, "bias_seconds": -10}
    others = {"p90_error_seconds": 60, "wrong_zero_share": None, "coverage_share": None}
    assert outcome["plans"] == [{"plan_id": plan, "matched": 3} | figures | others]
    assert sum(hour["matched"] for hour in outcome["by_hour"]) == 3
    assert "0:50 min" in cli.text("queue", "accuracy")
    assert cli.json("queue", "watch")[0]["last_hour"] == {"matched": 3, "mean_error_seconds": 50}


HEAD = "joined,started,ended,left,doctor,plan\n"


def seen(visit: str, plan: int, joined: float, waited: float) -> list[Any]:
    return [
        event(f"j{visit}", JOINED, joined, plan_id=plan, visit=visit),
        event(f"s{visit}", STARTED, joined + waited, plan_id=plan, visit=visit, doctor="a"),
        event(f"e{visit}", ENDED, joined + waited + 300, plan_id=plan, visit=visit),
    ]


@pytest.fixture
def clinic_with_a_past(cli: CommandLine) -> int:
    """Its plan: one patient was seen at once, one waited 90 s beside an idle doctor, one joined
    before the last ten days.
    """
    db = cli.open()
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    start = system_clock().replace(minute=0) - timedelta(days=5)
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


def test_stored_events_are_judged_and_nothing_is_stored(
    cli: CommandLine, clinic_with_a_past: int
) -> None:
    before = cli.audit_trail()
    found = cli.json("queue", "backtest", "--days", "10")
    counts = [found[name] for name in ("judged", "left_unseen", "nobody_on_duty", "bad_rows")]
    assert counts == [2, 0, 0, 0]
    everyone = found["all"]
    assert (everyone["matched"], everyone["mean_wait_seconds"]) == (2, 45.0)
    assert (everyone["mean_error_seconds"], everyone["bias_seconds"]) == (45.0, -45.0)
    assert everyone["wrong_zero_share"] == 0.5
    assert [everyone[f"{name}_share"] for name in ("coverage", "below", "above")] == [None] * 3
    assert [rival["name"] for rival in everyone["rivals"]][:2] == ["AHT x position", "last wait"]
    [of_plan] = found["by_plan"]
    assert (of_plan["plan_id"], of_plan["plan"], of_plan["matched"]) == (
        clinic_with_a_past,
        "Plan 0",
        2,
    )
    assert sum(one["matched"] for one in found["by_hour"]) == 2
    assert [one["position"] for one in found["by_position"]] == ["ready"]
    assert cli.audit_trail() == before

    assert cli.json("queue", "backtest", "--days", "3")["judged"] == 0  # they joined before
    text = cli.text("queue", "backtest")
    for part in ("2 patients judged", "AHT x position", "Plan 0", "0:45 min"):
        assert part in text


def test_an_empty_database_is_no_error(cli: CommandLine) -> None:
    names = ("judged", "left_unseen", "nobody_on_duty", "bad_rows", "rows_without_end")
    assert cli.json("queue", "backtest") == {"days": 30, "warnings": []} | dict.fromkeys(names, 0)
    assert "No patient that joined in the last 30 days" in cli.text("queue", "backtest")


def test_a_csv_is_judged_without_a_database(bare_cli: CommandLine, tmp_path: Path) -> None:
    times = (f"2026-11-20T{8 + n // 6:02d}:{n % 6}" for n in range(12))
    rows = [f"{at}0:00Z,{at}1:00Z,{at}9:00Z,,dr-1,Gold\n" for at in times]
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
    good = "2026-11-20T08:{0}:00Z,2026-11-20T08:{0}:30Z,,,a,p\n"
    file = tmp_path / "encounters.csv"
    file.write_text(
        HEAD + good.format("00") * 2 + good.format("02") + "soon,,,,,\n" * (FAULTS_SHOWN + 2)
    )
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), status=1)
    assert "line 5: joined is not a time such as 2026-11-20T09:15:00Z" in told
    assert "and 2 more" in told
    assert "soon" not in told
    found = bare_cli.json("queue", "backtest", "--csv", str(file), "--skip-bad-rows")
    assert found["bad_rows"] == FAULTS_SHOWN + 2
    assert "repeated_rows" in {warning["code"] for warning in found["warnings"]}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04\xff\xfe", b"id,name\n1,x\n"])
def test_another_file_is_always_refused(
    bare_cli: CommandLine, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "other.csv"
    file.write_bytes(content)
    told = bare_cli.refused("queue", "backtest", "--csv", str(file), "--skip-bad-rows", status=1)
    assert "The file has faults" in told


def test_what_is_wrong_with_a_past_is_said_before_its_figures(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    # local, over a change of the clock
    times = ("01:40", "01:55", "01:05", "01:30", "02:10", "02:30")
    file = tmp_path / "encounters.csv"
    file.write_text(
        HEAD + "".join(f"2026-11-01 {at}:00,2026-11-01 {at}:20,,,a,p\n" for at in times)
    )
    asked = ("queue", "backtest", "--csv", str(file))
    warnings = bare_cli.json(*asked)["warnings"]
    assert [(warning["code"], warning["lines"]) for warning in warnings] == [
        ("times_go_back", [4]),
        ("no_ends", []),
    ]
    lines = bare_cli.text(*asked).splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["Warning", "Warning"]
    assert "patients judged" in lines[2]
    told = bare_cli.refused(*asked, "--time-zone", "America/New_York", status=1)
    assert "line 2: joined exists twice in the time zone: write it with its offset" in told


def test_a_time_zone_that_is_not_known_and_a_file_that_is_not_there_are_told(
    bare_cli: CommandLine,
) -> None:
    asked = ("queue", "backtest", "--csv", "no/such.csv")
    assert "can't be read" in bare_cli.refused(*asked, status=1)
    assert "does not know the time zone" in bare_cli.refused(
        *asked, "--time-zone", "../x", status=2
    )
