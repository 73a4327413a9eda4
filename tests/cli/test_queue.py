"""`frontdesk queue`: live queues, and the keeping of their events."""

from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.clock import system_clock
from frontdesk.db.engine import write_together
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.queues.tables import encounters, estimate_log
from frontdesk.text import wire_time
from tests.cli.conftest import CommandLine
from tests.queues.feed import JOINED, STARTED, event


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


def test_booked_patients_are_listed_apart_by_their_time(
    cli: CommandLine, demo: dict[str, Any]
) -> None:
    assert cli.text("queue", "list", "--booked") == "Nobody is booked for later.\n"
    waiting = cli.json("queue", "list")
    plan = demo["plan_ids"][0]
    now = system_clock().replace(microsecond=0)
    booked = [
        told(JOINED, plan, name, now)._replace(
            not_before=now + timedelta(hours=hours), priority=priority
        )
        for name, hours, priority in (("late", 9, 5), ("soon", 1, 0))
    ]
    with closing(cli.open()) as db, db.write() as tx:
        ingest(tx, booked, now=now)
    listed = cli.json("queue", "list", "--booked")
    assert [one["patient"] for one in listed] == ["soon", "late"]
    assert listed[1]["not_before"] == wire_time(now + timedelta(hours=9))
    assert "not before" in cli.text("queue", "list", "--booked")
    assert cli.json("queue", "list") == waiting


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
