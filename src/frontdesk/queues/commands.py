"""Single changes by hand: each is an event like those of a clinical system, and goes through `ingest`."""

import secrets
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.errors import Invalid, NotFound
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EncounterState, EventType, QueueEvent
from frontdesk.queues.store import events as store


def doctor_on_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """False if the doctor was on duty already; the earlier start time is kept. Raises NotFound for an unknown group."""
    return _change_duty(tx, EventType.DOCTOR_ON_DUTY, provider_group_id, doctor, now)


def doctor_off_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """False if the doctor was not on duty. Raises NotFound for an unknown group."""
    return _change_duty(tx, EventType.DOCTOR_OFF_DUTY, provider_group_id, doctor, now)


def patient_joins(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """False if the patient waits there already, or is with a doctor. Raises NotFound for an unknown plan."""
    group = store.group_of_plan(tx, plan_id)
    known = store.find_encounter(tx, group, patient)
    if known is not None:
        if known.waits_for(plan_id) or known.state is EncounterState.IN_VISIT:
            return False
        now = _after(now, known.last_event_at)
    _ingest(tx, QueueEvent(_new_id(), EventType.PATIENT_JOINED, now, group, plan_id, visit=patient))
    return True


def patient_leaves(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """False if the patient was not waiting there. Raises NotFound for an unknown plan."""
    group = store.group_of_plan(tx, plan_id)
    known = store.find_encounter(tx, group, patient)
    if known is None or not known.waits_for(plan_id):
        return False
    at = _after(now, known.last_event_at)
    _ingest(tx, QueueEvent(_new_id(), EventType.PATIENT_LEFT, at, group, plan_id, visit=patient))
    return True


def _change_duty(tx: Tx, type_: EventType, group: int, doctor: str, now: datetime) -> bool:
    known = store.find_duty(tx, group, doctor)
    if known is not None and known.on_duty is (type_ is EventType.DOCTOR_ON_DUTY):
        return False
    if known is not None:
        now = _after(now, known.on_at, known.off_at)
    elif not store.lock_groups(tx, [group]):
        raise NotFound("provider group")
    elif type_ is EventType.DOCTOR_OFF_DUTY:
        return False
    _ingest(tx, QueueEvent(_new_id(), type_, now, group, doctor=doctor))
    return True


def _ingest(tx: Tx, event: QueueEvent) -> None:
    [result] = ingest(tx, [event], now=event.at)
    if result.faults:
        raise Invalid(result.faults)


def _after(now: datetime, *known: datetime | None) -> datetime:
    """Now, or just after the latest known time: a command changes the present, even if a feeder's clock was ahead."""
    return max([now, *(moment + timedelta(microseconds=1) for moment in known if moment is not None)])


def _new_id() -> str:
    return f"frontdesk-{secrets.token_hex(12)}"
