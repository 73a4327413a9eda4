"""Who is on duty and who waits, for commands: each change is an event like those of a clinical system, and takes its way.

References are opaque; no names are here.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.errors import Invalid, NotFound
from frontdesk.queues import store
from frontdesk.queues.encounters import EncounterState
from frontdesk.queues.events import EventType, QueueEvent
from frontdesk.queues.ingest import ingest


@dataclass(frozen=True, slots=True)
class OnDuty:
    provider_group_id: int
    doctor: str
    since_at: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    plan_id: int
    patient: str
    joined_at: datetime


@dataclass(frozen=True, slots=True)
class InVisit:
    plan_id: int
    visit: str
    doctor: str
    started_at: datetime


def doctor_on_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """Whether this was news: a doctor who is on duty already stays so, since when they were. Raises NotFound."""
    return _duty(tx, QueueEvent(_new_id(), EventType.DOCTOR_ON_DUTY, now, provider_group_id, doctor=doctor))


def doctor_off_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """Whether the doctor was on duty. Raises NotFound for an unknown group."""
    return _duty(tx, QueueEvent(_new_id(), EventType.DOCTOR_OFF_DUTY, now, provider_group_id, doctor=doctor))


def patient_joins(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """Whether this was news: who waits already keeps their place, and who is with a doctor does not wait. Raises NotFound."""
    group = store.group_of_plan(tx, plan_id)
    known = store.find_encounter(tx, group, patient)
    if known is not None:
        waits_here = known.state == EncounterState.WAITING and known.plan_id == plan_id
        if waits_here or known.state == EncounterState.IN_VISIT:
            return False
        now = _after(now, known.last_event_at)
    _tell(tx, QueueEvent(_new_id(), EventType.PATIENT_JOINED, now, group, plan_id, visit=patient))
    return True


def patient_leaves(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """Whether the patient was waiting. Raises NotFound for an unknown plan."""
    group = store.group_of_plan(tx, plan_id)
    known = store.find_encounter(tx, group, patient)
    if known is None or known.state != EncounterState.WAITING or known.plan_id != plan_id:
        return False
    at = _after(now, known.last_event_at)
    _tell(tx, QueueEvent(_new_id(), EventType.PATIENT_LEFT, at, group, plan_id, visit=patient))
    return True


def record_visit(
    tx: Tx, plan_id: int, doctor: str, *, started_at: datetime, ended_at: datetime | None
) -> None:
    """A visit, in progress while `ended_at` is None. Raises NotFound."""
    group, visit = store.group_of_plan(tx, plan_id), _new_id()
    began = QueueEvent(_new_id(), EventType.VISIT_STARTED, started_at, group, plan_id, doctor, visit)
    _tell(tx, began)
    if ended_at is not None:
        _tell(tx, replace(began, id=_new_id(), type=EventType.VISIT_ENDED, at=ended_at))


def list_on_duty(tx: Tx) -> list[OnDuty]:
    return [OnDuty(*row) for row in store.select_doctors(tx)]


def list_waiting(tx: Tx) -> list[Waiting]:
    return [Waiting(*row) for row in store.select_patients(tx)]


def list_in_visit(tx: Tx) -> list[InVisit]:
    return [InVisit(*row) for row in store.select_visits(tx)]


def _duty(tx: Tx, event: QueueEvent) -> bool:
    group, doctor = event.provider_group_id or 0, event.doctor or ""
    if not store.provider_group_exists(tx, group):
        raise NotFound("There is no such provider group.")
    known = store.find_duty(tx, group, doctor)
    if (known is not None and known.on_duty) is (event.type is EventType.DOCTOR_ON_DUTY):
        return False
    if known is not None:
        event = replace(event, at=_after(event.at, known.on_at, known.off_at))
    _tell(tx, event)
    return True


def _tell(tx: Tx, event: QueueEvent) -> None:
    [taken] = ingest(tx, [event], now=event.at)
    if taken.faults:
        raise Invalid(taken.faults)


def _after(now: datetime, *known: datetime | None) -> datetime:
    """Now, or just after what is known already: a command changes what is, whatever clock told of it before."""
    return max([now, *(moment + timedelta(microseconds=1) for moment in known if moment is not None)])


def _new_id() -> str:
    return f"frontdesk-{secrets.token_hex(12)}"
