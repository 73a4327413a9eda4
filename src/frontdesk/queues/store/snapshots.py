"""The SQL of the shared snapshots, and of the log of estimates and the waits that followed them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, insert, select, true, update

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey, as_json, by_key
from frontdesk.plans.tables import plans
from frontdesk.queues.estimate.record import PlanRecord, WaitEstimate
from frontdesk.queues.model import EncounterState, QueueInfo, QueueSnapshot, WaitOutcome
from frontdesk.queues.store.json_forms import (
    basis_of_json,
    classes_as_json,
    estimate_of_json,
    queue_as_json,
    queue_of_json,
    records_as_json,
    records_of_json,
)
from frontdesk.queues.tables import encounters, estimate_log, queue_snapshots
from frontdesk.reach import Reach
from frontdesk.text import stored_time

MAX_OUTCOMES = 20_000


def plan_ids_of(tx: Tx, account_id: int) -> list[int]:
    return list(tx.execute(select(plans.c.id).where(plans.c.account_id == account_id)).scalars())


def find_snapshot(tx: Tx, account_id: int, *, lock: bool = False) -> QueueSnapshot | None:
    query = select(queue_snapshots).where(queue_snapshots.c.account_id == account_id)
    row = tx.execute(query.with_for_update() if lock else query).first()
    if row is None:
        return None
    queues = {int(id_): queue_of_json(values) for id_, values in row.queues.items()}
    ttl_seconds = round((row.expires_at - row.taken_at).total_seconds())
    return QueueSnapshot(
        queues, ttl_seconds, row.taken_at, row.expires_at, records_of_json(row.records)
    )


def list_records(tx: Tx, reach: Reach) -> dict[int, PlanRecord]:
    """By plan within reach, what its estimates have taught."""
    query = select(queue_snapshots.c.records).where(queue_snapshots.c.records.is_not(None))
    if reach.account_id is not None:
        query = query.where(queue_snapshots.c.account_id == reach.account_id)
    found = map(records_of_json, tx.execute(query).scalars())
    return {id_: record for records in found if records for id_, record in records.plans.items()}


def save_snapshot(
    tx: Tx, account_id: int, snapshot: QueueSnapshot, *, logged: Collection[int]
) -> None:
    """Store the snapshot, and log its estimates except those of the plans in `logged`."""
    times = {"taken_at": snapshot.taken_at, "expires_at": snapshot.expires_at}
    queues = {str(id_): queue_as_json(queue) for id_, queue in snapshot.queues.items()}
    values = times | {"queues": queues, "records": records_as_json(snapshot.records)}
    own = queue_snapshots.c.account_id == account_id
    if tx.execute(update(queue_snapshots).where(own).values(**values)).rowcount == 0:
        tx.execute(insert(queue_snapshots).values(account_id=account_id, **values))
    estimates = [
        {
            **times,
            "plan_id": id_,
            "estimate_seconds": queue.estimated_wait_seconds,
            "low_seconds": queue.low_seconds,
            "high_seconds": queue.high_seconds,
            "basis": queue.basis and list(queue.basis),
            "classes": classes_as_json(queue.classes) or None,
        }
        for id_, queue in snapshot.queues.items()
        if queue.doctors_on_duty and id_ not in logged
    ]
    if estimates:
        tx.execute(insert(estimate_log), estimates)


def list_current(tx: Tx, now: datetime) -> dict[int, QueueInfo]:
    """By plan: the values of the unexpired shared snapshots of all accounts."""
    query = select(queue_snapshots.c.queues).where(queue_snapshots.c.expires_at > now)
    return {
        int(id_): queue_of_json(values)
        for queues in tx.execute(query).scalars()
        for id_, values in queues.items()
    }


def list_outcomes(
    tx: Tx, reach: Reach, since: datetime, *, ended: tuple[datetime, datetime] | None = None
) -> list[WaitOutcome]:
    """Each estimate since then, with the wait of the first patient that joined under it and had a
    visit, by time of joining.

    Of the plans within reach; waits that ended after the first of the times `ended` and by the
    second. At most the latest MAX_OUTCOMES waits are read.
    """
    columns = encounters.c
    query = _OUTCOMES if reach.account_id is None else _OUTCOMES_OF_ACCOUNT
    if ended is not None:
        query = query.where(columns.started_at > ended[0], columns.started_at <= ended[1])
    values = {"since": since, "account_id": reach.account_id}
    first = {row.id: row for row in tx.execute(query, values)}  # the earliest comes last
    return [_outcome(row) for row in reversed(first.values())]


def _outcome(row: Any) -> WaitOutcome:
    """The estimate for the patient's class where the plan had one, else that for anyone."""
    classes = row.classes or {}
    own = row.patient_class if row.patient_class in classes else None
    if own is not None:
        estimate = estimate_of_json(classes[own])
    else:
        basis = basis_of_json(row.basis)
        estimate = WaitEstimate(row.estimate_seconds, row.low_seconds, row.high_seconds, basis)
    waited = (row.started_at - row.joined_at).total_seconds()
    return WaitOutcome(row.plan_id, row.joined_at, estimate, waited, own)


def list_estimates_at(
    tx: Tx, plan_id: int, times: Sequence[datetime]
) -> list[tuple[datetime, int, int | None, int | None]]:
    """The estimate that was in force for the plan at each of the times, with the time and the ends
    of its interval; none for a time at which none was in force.
    """
    if tx.dialect.name == "sqlite":
        mark = "?"
        at = "w.value"
        values = "json_each(?)"
    else:
        mark = "%s"
        at = "w.value::timestamptz"
        values = "json_array_elements_text(%s::json)"
    latest = f"""(SELECT s.id FROM estimate_log s WHERE s.plan_id = {mark} AND s.taken_at <= {at}
        ORDER BY s.taken_at DESC LIMIT 1)"""  # noqa: S608 - made of names only
    is_latest = f"e.id = {latest}" if tx.dialect.name == "sqlite" else by_key("e.id", latest)
    sql = f"""SELECT w.value, e.estimate_seconds, e.low_seconds, e.high_seconds
        FROM {values} AS w JOIN estimate_log e ON {is_latest}
        WHERE e.expires_at > {at}"""  # noqa: S608
    parameters = (as_json([stored_time(time) for time in times]), plan_id)
    rows = tx.exec_driver_sql(sql, parameters)
    return sorted((datetime.fromisoformat(at), *values) for at, *values in rows)


def list_waits(
    tx: Tx, group_id: int, plan_id: int, *, since: datetime
) -> list[tuple[datetime, datetime]]:
    """When patients of the plan joined since then and their visits started: the latest MAX_OUTCOMES
    that joined.
    """
    columns = encounters.c
    # By group, as in `_outcomes`.
    query = select(columns.joined_at, columns.started_at).where(
        columns.provider_group_id == group_id,
        columns.plan_id + 0 == plan_id,
        columns.state.in_((EncounterState.IN_VISIT, EncounterState.ENDED)),
        columns.started_at.is_not(None),
        columns.joined_at >= since,
    )
    rows = tx.execute(query.order_by(columns.joined_at.desc()).limit(MAX_OUTCOMES))
    return [(row.joined_at, row.started_at) for row in rows]


def _outcomes(of_account: ColumnElement[bool]) -> Select[Any]:
    """Visits that patients joined since then, each with the estimate that was shown; of such plans."""
    columns = encounters.c
    log = estimate_log.c
    in_force = estimate_log.alias("shown").c
    latest = (
        select(in_force.id)
        .where(in_force.plan_id == columns.plan_id, in_force.taken_at <= columns.joined_at)
        .order_by(in_force.taken_at.desc())
        .limit(1)
        .correlate(encounters)
        .scalar_subquery()
    )
    # By group: with a second index of plan_id, old statistics decided which of the two a look-up of
    # past visits used.
    groups = (
        select(plans.c.provider_group_id.label("id")).where(of_account).distinct().cte("groups")
    )
    of_plans = (
        groups.join(encounters, SameKey(columns.provider_group_id, groups.c.id))
        .join(plans, SameKey(plans.c.id, columns.plan_id))
        .join(estimate_log, SameKey(log.id, latest))
    )
    return (
        select(
            *columns["plan_id", "joined_at", "started_at", "patient_class"],
            *log["id", "estimate_seconds", "low_seconds", "high_seconds", "basis", "classes"],
        )
        .select_from(of_plans)
        .where(
            columns.state.in_((EncounterState.IN_VISIT, EncounterState.ENDED)),
            columns.started_at.is_not(None),
            columns.joined_at >= bindparam("since"),
            log.expires_at > columns.joined_at,
            of_account,
        )
        .order_by(columns.joined_at.desc(), columns.visit)
        .limit(MAX_OUTCOMES)
    )


# Built once: to build them took as long as to run them.
_OUTCOMES = _outcomes(true())
_OUTCOMES_OF_ACCOUNT = _outcomes(plans.c.account_id == bindparam("account_id"))
