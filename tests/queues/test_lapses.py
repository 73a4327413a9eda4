"""A duty without any event of its doctor ends by itself: when, when not, and that the end is an event
like others.
"""

import json
from collections.abc import Collection
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.backtest.replay import QueueReplay
from frontdesk.db import Database, Tx
from frontdesk.log_output import LogOutput
from frontdesk.plans.changes import change_provider_group
from frontdesk.plans.tables import provider_groups
from frontdesk.queues.encounters import event_order
from frontdesk.queues.ingest import ingest
from frontdesk.queues.lapses import end_lapsed_duties, take_back_lapses
from frontdesk.queues.model import QueueEvent
from frontdesk.queues.store.duties import list_on_duty
from frontdesk.queues.store.events import PAGE, list_history, lock_groups
from frontdesk.queues.store.lapses import count_lapsed
from frontdesk.queues.upkeep import prune, rebuild
from frontdesk.worker.background import LapsedDutyEnder
from tests.conftest import SetClock
from tests.factories import NOW
from tests.queues.feed import (
    ENDED,
    JOINED,
    OFF,
    ON,
    PAUSED,
    STARTED,
    Clinic,
    event,
    feed,
    make_clinic,
    projection,
)

HOUR = 3600.0


def of_doctor(clinic: Clinic, id_: str, type_: Any, hours: float, **fields: Any) -> QueueEvent:
    return event(
        id_, type_, hours * HOUR, provider_group_id=clinic.group_id, doctor="dr-1", **fields
    )


def of_visit(clinic: Clinic, id_: str, type_: Any, hours: float, **fields: Any) -> QueueEvent:
    return event(id_, type_, hours * HOUR, plan_id=clinic.plan_ids[0], visit="v-1", **fields)


def ended_at(db: Database, hours: float) -> list[tuple[str, float]]:
    """The doctors whose duty is ended at that hour, with the hour of their last event."""
    with db.write() as tx:
        ended = end_lapsed_duties(tx, NOW + timedelta(hours=hours))
    return [(one.doctor, (one.last_event_at - NOW).total_seconds() / HOUR) for one in ended]


def taken_back_at(db: Database, hours: float) -> list[str]:
    """The doctors whose lapses are taken back at that hour."""
    with db.write() as tx:
        return [one.doctor for one in take_back_lapses(tx, NOW + timedelta(hours=hours))]


def settled(db: Database, clinic: Clinic, hours: float) -> dict[str, Any]:
    """What follows from the events once a worker has looked at that hour; a rebuild agrees."""
    taken_back_at(db, hours)
    ended_at(db, hours)
    with db.write() as tx:
        found = projection(tx, clinic)
        assert rebuild(tx)["mended"] == 0
        assert projection(tx, clinic) == found
    assert taken_back_at(db, hours) == []  # it is stable
    assert ended_at(db, hours) == []
    return found


def on_duty(db: Database) -> list[str]:
    return [row.doctor for row in db.ask(lambda tx: list_on_duty(tx, NOW))]


def test_a_duty_ends_after_twelve_hours_without_an_event_of_its_doctor(db: Database) -> None:
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))
    assert ended_at(db, 12.0) == []
    assert on_duty(db) == ["dr-1"]
    assert ended_at(db, 12.01) == [("dr-1", 0.0)]
    assert on_duty(db) == []
    assert ended_at(db, 13.0) == []


@pytest.mark.parametrize("what", ["on duty again", "pause", "a visit begins", "a visit ends"])
def test_any_event_of_the_doctor_counts(db: Database, what: str) -> None:
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))
    until = NOW + timedelta(hours=3)
    match what:
        case "on duty again":
            feed(db, of_doctor(clinic, "again", ON, 3))
        case "pause":  # until its expected end
            feed(db, of_doctor(clinic, "pause", PAUSED, 2, until=until))
        case "a visit begins":
            feed(db, of_visit(clinic, "start", STARTED, 3, doctor="dr-1"))
        case _:  # its end names no doctor
            feed(db, of_visit(clinic, "start", STARTED, 1, doctor="dr-1"))
            feed(db, of_visit(clinic, "end", ENDED, 3))
    assert ended_at(db, 14.9) == []
    last = 2.0 if what == "pause" else 3.0
    assert ended_at(db, 15.1) == [("dr-1", last)]


def test_a_pause_that_ended_by_an_on_duty_keeps_no_duty(db: Database) -> None:
    clinic = make_clinic(db)
    until = NOW + timedelta(hours=24)
    feed(
        db,
        of_doctor(clinic, "on", ON, 0),
        of_doctor(clinic, "pause", PAUSED, 0, until=until),
        of_doctor(clinic, "again", ON, 1),
    )
    assert ended_at(db, 13.1) == [("dr-1", 1.0)]


def test_an_event_that_comes_before_the_lock_counts(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))

    where = "frontdesk.queues.store.events.lock_groups"

    def lock_late(tx: Tx, groups: Collection[int] | None) -> set[int]:
        monkeypatch.setattr(where, lock_groups)
        ingest(tx, [of_doctor(clinic, "again", ON, 9)], now=NOW)
        return lock_groups(tx, groups)

    monkeypatch.setattr(where, lock_late)
    assert ended_at(db, 13) == []
    assert on_duty(db) == ["dr-1"]


def test_events_of_others_do_not_count(db: Database) -> None:
    clinic = make_clinic(db)
    other = make_clinic(db, "Other")
    feed(
        db,
        of_doctor(clinic, "on", ON, 0),
        event("on 2", ON, 11 * HOUR, provider_group_id=clinic.group_id, doctor="dr-2"),
        of_doctor(other, "on", ON, 11),
        of_visit(clinic, "join", JOINED, 11),
        of_visit(clinic, "start", STARTED, 11.5, doctor="dr-2"),
        of_visit(other, "start", STARTED, 11.5, doctor="dr-1"),
    )
    assert ended_at(db, 13) == [("dr-1", 0.0)]
    with db.read() as tx:
        left = {(row.provider_group_id, row.doctor) for row in list_on_duty(tx, NOW)}
    assert left == {(clinic.group_id, "dr-2"), (other.group_id, "dr-1")}


def test_each_provider_group_has_its_own_hours(db: Database) -> None:
    short = make_clinic(db, "Short")
    usual = make_clinic(db, "Usual")
    with db.write() as tx:
        change_provider_group(tx, short.group_id, duty_hours=2)
    feed(db, of_doctor(short, "on", ON, 0), of_doctor(usual, "on", ON, 0))
    assert ended_at(db, 3) == [("dr-1", 0.0)]
    with db.read() as tx:
        assert [row.provider_group_id for row in list_on_duty(tx, NOW)] == [usual.group_id]


@pytest.mark.parametrize("hours", [1, 13])
def test_an_on_duty_that_comes_late_counts(db: Database, hours: float) -> None:
    """Sent before the end or after it; it came when the duty had ended."""
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))
    assert len(ended_at(db, 12.5)) == 1
    feed(db, of_doctor(clinic, "late", ON, hours))
    assert on_duty(db) == ["dr-1"]


# Events after an on duty at 0, by the hour; the duty lapses at hour 13 if they come at hour 14.
LATE: dict[str, tuple[list[tuple[Any, float]], list[str]]] = {
    "visits": ([(STARTED, 1), (ENDED, 1.5), (STARTED, 9)], ["dr-1"]),
    "a visit that has not ended": ([(STARTED, 13.5)], ["dr-1"]),
    "a pause": ([(PAUSED, 5)], ["dr-1"]),
    "visits and the end of the shift": ([(STARTED, 1), (STARTED, 9), (OFF, 11)], []),
    "a visit after the end of the shift": ([(OFF, 3), (STARTED, 9)], []),
    "visits and the next shift": ([(STARTED, 1), (ON, 13.5)], ["dr-1"]),
    "a visit that is too long ago": ([(STARTED, 1), (ENDED, 1.5)], []),
}


def late_events(clinic: Clinic, case: str) -> list[QueueEvent]:
    made = []
    for number, (type_, hours) in enumerate(LATE[case][0]):
        fields: dict[str, Any] = {"provider_group_id": clinic.group_id, "doctor": "dr-1"}
        if type_ in (STARTED, ENDED):
            fields = {"plan_id": clinic.plan_ids[0], "visit": f"v-{int(hours)}"}
            if type_ is STARTED:
                fields["doctor"] = "dr-1"
        if type_ is PAUSED:
            fields["until"] = NOW + timedelta(hours=hours + 0.5)
        made.append(event(f"late {number}", type_, hours * HOUR, **fields))
    return made


@pytest.mark.parametrize("case", LATE)
def test_a_lapse_is_taken_back_when_late_events_show_the_doctor(db: Database, case: str) -> None:
    """The state is the same as when the events come in time."""
    late = make_clinic(db, "Late")
    in_time = make_clinic(db, "In time")
    feed(db, of_doctor(in_time, "on", ON, 0), *late_events(in_time, case))
    expected = settled(db, in_time, 14)
    feed(db, of_doctor(late, "on", ON, 0))
    assert len(ended_at(db, 13)) == 1
    feed(db, *late_events(late, case))
    assert settled(db, late, 14) == expected
    with db.read() as tx:
        on_duty = [
            row.doctor for row in list_on_duty(tx, NOW) if row.provider_group_id == late.group_id
        ]
    assert on_duty == LATE[case][1]


def test_a_lapse_is_taken_back_for_visits_of_days_ago(db: Database) -> None:
    """And the duty ends after the last of them, for good."""
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))
    assert ended_at(db, 60) == [("dr-1", 0.0)]
    feed(db, of_visit(clinic, "start", STARTED, 10, doctor="dr-1"))
    assert taken_back_at(db, 60) == ["dr-1"]
    assert ended_at(db, 60) == [("dr-1", 10.0)]
    assert taken_back_at(db, 60) == []


def test_what_takes_no_lapse_back(db: Database) -> None:
    """Another doctor's visit, one of the same doctor's name elsewhere, and the next shift's."""
    clinic = make_clinic(db)
    other = make_clinic(db, "Other")
    feed(db, of_doctor(clinic, "on", ON, 0))
    assert ended_at(db, 13) == [("dr-1", 0.0)]
    feed(
        db,
        of_visit(clinic, "other doctor", STARTED, 13, doctor="dr-2"),
        of_visit(other, "other group", STARTED, 13, doctor="dr-1"),
        of_visit(clinic, "end", ENDED, 13.1),
    )
    assert taken_back_at(db, 14) == []
    feed(
        db,
        of_doctor(clinic, "next shift", ON, 24),
        event("v", STARTED, 25 * HOUR, plan_id=clinic.plan_ids[0], visit="v-2", doctor="dr-1"),
    )
    assert taken_back_at(db, 25) == []


def test_lapses_are_taken_back_a_page_at_a_time(db: Database) -> None:
    clinic = make_clinic(db)
    group = clinic.group_id
    names = [f"dr-{number:04}" for number in range(PAGE + 5)]
    feed(db, *(event(f"on {n}", ON, 0, provider_group_id=group, doctor=n) for n in names))
    assert [len(ended_at(db, 13)) for _ in range(2)] == [PAGE, 5]
    later = 13 * HOUR
    fields = {"provider_group_id": group, "until": NOW + timedelta(hours=14)}
    feed(db, *(event(f"pause {n}", PAUSED, later, doctor=n, **fields) for n in names))
    assert [len(taken_back_at(db, 13)) for _ in range(3)] == [PAGE, 5, 0]
    assert sorted(on_duty(db)) == names


def test_the_end_is_an_event_like_others(db: Database) -> None:
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))
    ended_at(db, 13)
    replay = QueueReplay()
    with db.write() as tx:
        events = sorted(list_history(tx, NOW), key=event_order)
        whole = projection(tx, clinic)
        assert rebuild(tx)["mended"] == 0
        prune(tx, now=NOW + timedelta(days=100), age=timedelta(days=90))
        assert rebuild(tx)["mended"] == 0
        assert projection(tx, clinic) == whole
    assert [one.type for one in events] == [ON, OFF]
    assert events[1].id.startswith("frontdesk-lapsed-")
    for one in events:
        replay.apply(one)
    assert replay.pool((NOW + timedelta(hours=13)).timestamp()).doctors == []


def test_it_makes_no_feed_look_alive(db: Database) -> None:
    clinic = make_clinic(db)
    feed(db, of_doctor(clinic, "on", ON, 0))
    ended_at(db, 13)
    with db.read() as tx:
        assert tx.execute(select(provider_groups.c.fed_at)).scalars().all() == [NOW]


def test_a_page_at_a_time(db: Database) -> None:
    clinic = make_clinic(db)
    group = clinic.group_id
    many = [
        event(f"on {n}", ON, 0, provider_group_id=group, doctor=f"dr-{n:04}")
        for n in range(PAGE + 5)
    ]
    feed(db, *many)
    assert [len(ended_at(db, 13)) for _ in range(3)] == [PAGE, 5, 0]


def test_a_worker_ends_them_and_says_so(db: Database, clock: SetClock) -> None:
    clinic = make_clinic(db)
    other = make_clinic(db, "Other")
    feed(db, of_doctor(clinic, "on", ON, 0))
    lines = StringIO()
    task = LapsedDutyEnder(db, clock=clock, log=LogOutput(lines))
    clock.advance(12 * HOUR)
    assert task.step() is False
    assert lines.getvalue() == ""
    clock.advance(60)
    task.step()
    line = json.loads(lines.getvalue())
    assert (line["level"], line["event"]) == ("warning", "duties_lapsed")
    assert line["by_provider_group"] == {str(clinic.group_id): 1}
    with db.read() as tx:
        day = timedelta(days=1)
        assert count_lapsed(tx, clock() - day) == {clinic.group_id: 1, other.group_id: 0}
        assert count_lapsed(tx, clock() + day)[clinic.group_id] == 0
    lines.truncate(0)
    lines.seek(0)
    feed(db, of_visit(clinic, "late", STARTED, 11, doctor="dr-1"))
    task.step()
    line = json.loads(lines.getvalue())
    assert (line["level"], line["event"]) == ("info", "lapses_taken_back")
    assert line["by_provider_group"] == {str(clinic.group_id): 1}
    assert on_duty(db) == ["dr-1"]
    with db.read() as tx:
        assert count_lapsed(tx, clock() - day)[clinic.group_id] == 0
