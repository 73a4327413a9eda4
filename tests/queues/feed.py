"""Invented queues to feed: two provider groups of one account, events with short names, and what
the projection holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import insert

from frontdesk import access
from frontdesk.db import Database, Tx
from frontdesk.plans.changes import create_plan, create_provider_group
from frontdesk.plans.model import NewPlan
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventResult, EventType, QueueEvent
from frontdesk.queues.tables import duties, encounters, estimate_log
from frontdesk.text import wire_time
from tests.factories import NOW

ON = EventType.DOCTOR_ON_DUTY
OFF = EventType.DOCTOR_OFF_DUTY
PAUSED = EventType.DOCTOR_PAUSED
JOINED = EventType.PATIENT_JOINED
LEFT = EventType.PATIENT_LEFT
STARTED = EventType.VISIT_STARTED
ENDED = EventType.VISIT_ENDED


# Few names and few seconds, so that events meet: type, second, visit, doctor, plan, the doctor's own
# terms, the patient's class and priority, and the seconds until a booking or the end of a pause.
HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(EventType),
        st.integers(0, 6),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 1),
        st.sampled_from([(None, 1), ((0,), 1), ((0, 1), 3)]),
        st.sampled_from([(None, None), ("urgent", 5), (None, -1)]),
        st.sampled_from([None, 1, 3, 30]),
    ),
    min_size=1,
    max_size=14,
)


@dataclass(frozen=True, slots=True)
class Clinic:
    """A provider group with plans of one account, nobody on duty."""

    account_id: int
    group_id: int
    plan_ids: tuple[int, ...]


def make_clinic(db: Database, name: str = "Example", *, plan_count: int = 2) -> Clinic:
    with db.write() as tx:
        account = access.create_account(tx, name=name, now=NOW)
        group = create_provider_group(tx, name=f"{name} Doctors", external_id=None, now=NOW)
        made = [
            create_plan(tx, NewPlan(account.id, group.id, f"plan-{n}", f"Plan {n}"), now=NOW)
            for n in range(plan_count)
        ]
    return Clinic(account.id, group.id, tuple(plan.id for plan in made))


def event(id_: str, type_: EventType, seconds: float, **fields: Any) -> QueueEvent:
    """An event so many seconds after NOW."""
    return QueueEvent(id_, type_, NOW + timedelta(seconds=seconds), **fields)


def on_duty(
    clinic: Clinic, doctor: str, *, plan: int | None = None, seconds: float = -600
) -> QueueEvent:
    """A doctor comes on duty so many seconds after NOW: for one plan of the clinic, or for all."""
    plan_ids = None if plan is None else (clinic.plan_ids[plan],)
    id_ = f"on-{doctor}-{clinic.group_id}"
    group = {"provider_group_id": clinic.group_id}
    return event(id_, ON, seconds, doctor=doctor, plan_ids=plan_ids, **group)


def joined(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A patient joins plan 1, as a clinical system says it; `changes` replace fields, and `...`
    takes one out.
    """
    body: dict[str, Any] = {"id": f"e-{number}", "type": JOINED.value, "at": wire_time(NOW)}
    body |= {"plan_id": 1, "visit": f"visit-{number}"} | changes
    return {name: value for name, value in body.items() if value is not ...}


def events_for(clinic: Clinic, happenings: list[Any], mark: int) -> list[Any]:
    """The same happenings as events of a clinic, under references that no other example uses."""
    made = []
    for number, (type_, second, visit, doctor, plan, terms, patient, later) in enumerate(
        happenings
    ):
        fields: dict[str, Any] = {"provider_group_id": clinic.group_id}
        at_later = None if later is None else NOW + timedelta(seconds=second + later)
        if type_ in (ON, OFF, PAUSED):
            fields |= {"doctor": f"{mark}-dr-{doctor}"}
            if type_ is PAUSED:
                fields["until"] = at_later or NOW + timedelta(seconds=second + 2)
            if type_ is ON:
                plans, capacity = terms
                of_clinic = None if plans is None else tuple(clinic.plan_ids[n] for n in plans)
                fields |= {"plan_ids": of_clinic, "capacity": capacity}
        else:
            fields |= {"plan_id": clinic.plan_ids[plan], "visit": f"{mark}-visit-{visit}"}
            if type_ is STARTED:
                fields["doctor"] = f"{mark}-dr-{doctor}"
            if type_ is JOINED:
                fields |= dict(zip(("patient_class", "priority"), patient, strict=True))
                fields["not_before"] = at_later
        made.append(event(f"{mark}-{number:02d}", type_, second, **fields))
    return made


def feed(db: Database, *events: QueueEvent, now: datetime = NOW) -> list[EventResult]:
    """The events as one batch that comes now, in a transaction of its own."""
    with db.write() as tx:
        return ingest(tx, events, now=now)


def estimated(db: Database, plan_id: int, minute: float, *, seconds: int = 300) -> None:
    """An estimate of 30 s, so many minutes after NOW."""
    at = NOW + timedelta(minutes=minute)
    row = {"plan_id": plan_id, "taken_at": at, "expires_at": at + timedelta(seconds=30)}
    row |= {"estimate_seconds": seconds, "low_seconds": seconds // 2, "high_seconds": 2 * seconds}
    with db.write() as tx:
        tx.execute(insert(estimate_log).values(row))


def waited(db: Database, clinic: Clinic, waits: list[tuple[datetime, float]]) -> None:
    """Patients of the first plan that joined at a time and waited so many seconds."""
    rows = [
        {
            "provider_group_id": clinic.group_id,
            "visit": f"w{number}",
            "plan_id": clinic.plan_ids[0],
            "state": "in_visit",
            "joined_at": at,
            "started_at": at + timedelta(seconds=seconds),
            "last_event_at": at,
        }
        for number, (at, seconds) in enumerate(waits)
    ]
    with db.write() as tx:
        tx.execute(insert(encounters), rows)


def projection(tx: Tx, clinic: Clinic, mark: str = "") -> dict[str, Sequence[Any]]:
    """What follows from a clinic's events, by visit and doctor that begin with the mark: without
    ids of rows, its plans named by their place.
    """
    places = {plan_id: place for place, plan_id in enumerate(clinic.plan_ids)}
    found: dict[str, Sequence[Any]] = {}
    for table, name in ((encounters, "visit"), (duties, "doctor")):
        for row in tx.execute(
            table.select().where(table.c.provider_group_id == clinic.group_id)
        ).mappings():
            values = {
                key: value for key, value in row.items() if key not in ("id", "provider_group_id")
            }
            if "plan_id" in values:
                values["plan_id"] = places[values["plan_id"]]
            if values.get("plan_ids"):
                values["plan_ids"] = [places[plan_id] for plan_id in values["plan_ids"]]
            if row[name].startswith(mark):
                found[f"{name} {row[name]}"] = list(values.items())
    return found
