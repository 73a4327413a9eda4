"""Single changes by hand: each is an event like those of a clinical system, and goes through `ingest`."""

import secrets
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.errors import Invalid, NotFound
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import Duty, Encounter, EncounterState, EventType, QueueEvent
from frontdesk.queues.store import events as store


def doctor_on_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """False if the doctor was on duty already; the earlier start time is kept. Raises NotFound for an unknown group."""
    return _change_duty(tx, EventType.DOCTOR_ON_DUTY, provider_group_id, doctor, now)


def doctor_off_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """False if the doctor was not on duty. Raises NotFound for an unknown group."""
    return _change_duty(tx, EventType.DOCTOR_OFF_DUTY, provider_group_id, doctor, now)


def patient_joins(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """False if the patient waits there already, or is with a doctor. Raises NotFound for an unknown plan."""
    return _move(tx, EventType.PATIENT_JOINED, plan_id, patient, now)


def patient_leaves(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """False if the patient was not waiting there. Raises NotFound for an unknown plan."""
    return _move(tx, EventType.PATIENT_LEFT, plan_id, patient, now)


def _change_duty(tx: Tx, type_: EventType, group: int, doctor: str, now: datetime) -> bool:
    if not store.lock_groups(tx, [group]):
        raise NotFound("provider group")
    duty = store.find_settled(tx, Duty, (doctor, group)) or Duty()
    if duty.on_duty is (type_ is EventType.DOCTOR_ON_DUTY):
        return False
    at = _after(now, duty.on_at, duty.off_at)
    return _ingest(tx, QueueEvent(_new_id(), type_, at, group, doctor=doctor))


def _move(tx: Tx, type_: EventType, plan_id: int, patient: str, now: datetime) -> bool:
    group = store.groups_of_plans(tx, [plan_id]).get(plan_id)
    if group is None:
        raise NotFound("plan")
    known = store.find_settled(tx, Encounter, (patient, group))
    waits = known is not None and known.waits_for(plan_id)
    in_visit = known is not None and known.state is EncounterState.IN_VISIT
    if (waits or in_visit) if type_ is EventType.PATIENT_JOINED else not waits:
        return False
    at = _after(now, known.last_event_at if known else None)
    return _ingest(tx, QueueEvent(_new_id(), type_, at, group, plan_id, visit=patient))


def _ingest(tx: Tx, event: QueueEvent) -> bool:
    [result] = ingest(tx, [event], now=event.at)
    if result.faults:
        raise Invalid(result.faults)
    return True


def _after(now: datetime, *known: datetime | None) -> datetime:
    """Now, or just after the latest known time: a command changes the present, even if a feeder's clock was ahead."""
    return max([now, *(moment + timedelta(microseconds=1) for moment in known if moment is not None)])


def _new_id() -> str:
    return f"frontdesk-{secrets.token_hex(12)}"
