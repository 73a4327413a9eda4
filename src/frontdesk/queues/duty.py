"""Who is on duty and who waits: the changes that feed the queue. References are opaque; no names are here."""

from dataclasses import dataclass
from datetime import datetime

from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.queues import store


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


def doctor_on_duty(tx: Tx, provider_group_id: int, doctor: str, *, now: datetime) -> bool:
    """Whether this was news: a doctor who is on duty already stays so, since when they were. Raises NotFound."""
    if not store.provider_group_exists(tx, provider_group_id):
        raise NotFound("There is no such provider group.")
    return store.insert_doctor(tx, provider_group_id, doctor, now)


def doctor_off_duty(tx: Tx, provider_group_id: int, doctor: str) -> bool:
    """Whether the doctor was on duty. Raises NotFound for an unknown group."""
    if not store.provider_group_exists(tx, provider_group_id):
        raise NotFound("There is no such provider group.")
    return store.delete_doctor(tx, provider_group_id, doctor)


def patient_joins(tx: Tx, plan_id: int, patient: str, *, now: datetime) -> bool:
    """Whether this was news: who waits already keeps their place. Raises NotFound."""
    store.group_of_plan(tx, plan_id)
    return store.insert_patient(tx, plan_id, patient, now)


def patient_leaves(tx: Tx, plan_id: int, patient: str) -> bool:
    """Whether the patient was waiting. Raises NotFound for an unknown plan."""
    store.group_of_plan(tx, plan_id)
    return store.delete_patient(tx, plan_id, patient)


def record_visit(
    tx: Tx, plan_id: int, doctor: str, *, started_at: datetime, ended_at: datetime | None
) -> None:
    """A visit, in progress while `ended_at` is None. Raises NotFound."""
    store.insert_visit(tx, plan_id, store.group_of_plan(tx, plan_id), doctor, started_at, ended_at)


def list_on_duty(tx: Tx) -> list[OnDuty]:
    return [OnDuty(*row) for row in store.select_doctors(tx)]


def list_waiting(tx: Tx) -> list[Waiting]:
    return [Waiting(*row) for row in store.select_patients(tx)]
