"""The SQL of the encounter queue."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.queues.tables import doctors_on_duty, queue_snapshots, visits, waiting_patients

RECENT_VISITS = 20  # per plan, for what a visit usually takes


@dataclass(frozen=True, slots=True)
class Scene:
    """The queues of some provider groups in one consistent state, as rows."""

    plans: list[Any]  # plan_id, provider_group_id
    doctors: list[Any]  # provider_group_id, doctor
    waiting: list[Any]  # provider_group_id, plan_id, in order of arrival
    in_progress: list[Any]  # provider_group_id, plan_id, doctor, started_at
    recent: list[Any]  # provider_group_id, plan_id, started_at, ended_at


def provider_group_exists(tx: Tx, provider_group_id: int) -> bool:
    query = select(provider_groups.c.id).where(provider_groups.c.id == provider_group_id)
    return tx.execute(query).first() is not None


def group_of_plan(tx: Tx, plan_id: int) -> int:
    group_id = tx.execute(select(plans.c.provider_group_id).where(plans.c.id == plan_id)).scalar()
    if group_id is None:
        raise NotFound("There is no such plan.")
    return int(group_id)


def insert_doctor(tx: Tx, provider_group_id: int, doctor: str, now: datetime) -> bool:
    present = _doctor(provider_group_id, doctor)
    if tx.execute(select(doctors_on_duty.c.doctor).where(present)).first():
        return False
    row = {"provider_group_id": provider_group_id, "doctor": doctor, "since_at": now}
    tx.execute(insert(doctors_on_duty).values(**row))
    return True


def delete_doctor(tx: Tx, provider_group_id: int, doctor: str) -> bool:
    return tx.execute(delete(doctors_on_duty).where(_doctor(provider_group_id, doctor))).rowcount == 1


def insert_patient(tx: Tx, plan_id: int, patient: str, now: datetime) -> bool:
    if tx.execute(select(waiting_patients.c.patient).where(_patient(plan_id, patient))).first():
        return False
    tx.execute(insert(waiting_patients).values(plan_id=plan_id, patient=patient, joined_at=now))
    return True


def delete_patient(tx: Tx, plan_id: int, patient: str) -> bool:
    return tx.execute(delete(waiting_patients).where(_patient(plan_id, patient))).rowcount == 1


def insert_visit(
    tx: Tx, plan_id: int, provider_group_id: int, doctor: str, started_at: datetime, ended_at: datetime | None
) -> None:
    row = {"plan_id": plan_id, "provider_group_id": provider_group_id, "doctor": doctor}
    tx.execute(insert(visits).values(**row, started_at=started_at, ended_at=ended_at))


def select_doctors(tx: Tx) -> list[Any]:
    columns = doctors_on_duty.c
    order = (columns.provider_group_id, columns.since_at, columns.doctor)
    return list(
        tx.execute(select(columns.provider_group_id, columns.doctor, columns.since_at).order_by(*order))
    )


def select_patients(tx: Tx) -> list[Any]:
    columns = waiting_patients.c
    order = (columns.plan_id, columns.joined_at, columns.patient)
    return list(tx.execute(select(columns.plan_id, columns.patient, columns.joined_at).order_by(*order)))


def select_scene(tx: Tx, account_id: int) -> Scene:
    """Everything about the groups that serve the account's plans, sibling plans of other accounts included."""
    own = list(
        tx.execute(select(plans.c.id, plans.c.provider_group_id).where(plans.c.account_id == account_id))
    )
    groups = sorted({row.provider_group_id for row in own})
    in_groups = visits.c.provider_group_id.in_(groups)
    return Scene(
        plans=own,
        doctors=list(
            tx.execute(
                select(doctors_on_duty.c.provider_group_id, doctors_on_duty.c.doctor).where(
                    doctors_on_duty.c.provider_group_id.in_(groups)
                )
            )
        ),
        waiting=list(
            tx.execute(
                select(plans.c.provider_group_id, waiting_patients.c.plan_id)
                .join(plans, plans.c.id == waiting_patients.c.plan_id)
                .where(plans.c.provider_group_id.in_(groups))
                .order_by(
                    waiting_patients.c.joined_at, waiting_patients.c.plan_id, waiting_patients.c.patient
                )
            )
        ),
        in_progress=list(
            tx.execute(
                select(
                    visits.c.provider_group_id, visits.c.plan_id, visits.c.doctor, visits.c.started_at
                ).where(in_groups, visits.c.ended_at.is_(None))
            )
        ),
        recent=_recent_visits(tx, groups),
    )


def _recent_visits(tx: Tx, groups: Collection[int]) -> list[Any]:
    newest = func.row_number().over(partition_by=visits.c.plan_id, order_by=visits.c.ended_at.desc())
    ranked = (
        select(
            visits.c.provider_group_id,
            visits.c.plan_id,
            visits.c.started_at,
            visits.c.ended_at,
            newest.label("n"),
        )
        .where(visits.c.provider_group_id.in_(groups), visits.c.ended_at.is_not(None))
        .subquery()
    )
    return list(tx.execute(select(ranked).where(ranked.c.n <= RECENT_VISITS)))


def find_snapshot(tx: Tx, account_id: int) -> Any | None:
    return tx.execute(select(queue_snapshots).where(queue_snapshots.c.account_id == account_id)).first()


def save_snapshot(
    tx: Tx, account_id: int, *, taken_at: datetime, expires_at: datetime, queues: dict[str, Any]
) -> None:
    values = {"taken_at": taken_at, "expires_at": expires_at, "queues": queues}
    own = queue_snapshots.c.account_id == account_id
    if tx.execute(update(queue_snapshots).where(own).values(**values)).rowcount == 0:
        tx.execute(insert(queue_snapshots).values(account_id=account_id, **values))


def _doctor(provider_group_id: int, doctor: str) -> Any:
    return (doctors_on_duty.c.provider_group_id == provider_group_id) & (doctors_on_duty.c.doctor == doctor)


def _patient(plan_id: int, patient: str) -> Any:
    return (waiting_patients.c.plan_id == plan_id) & (waiting_patients.c.patient == patient)
