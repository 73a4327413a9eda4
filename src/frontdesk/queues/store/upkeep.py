"""The SQL of making anew what follows from events, of forgetting old ones, and of the log of estimates."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, insert, or_, select

from frontdesk.db import Tx
from frontdesk.db.sets import find_set
from frontdesk.plans.tables import plans
from frontdesk.queues.store import EVENT_COLUMNS
from frontdesk.queues.tables import duties, encounters, estimate_log, queue_events

PAGE = 1000


def log_estimates(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        tx.execute(insert(estimate_log), list(rows))


def select_outcomes(tx: Tx, since: datetime, *, limit: int) -> list[Any]:
    """Visits that began since then, with the estimate that was in force when their patient joined: the latest first."""
    columns, log = encounters.c, estimate_log.c
    shown = estimate_log.alias("shown").c
    latest = (
        select(shown.id)
        .where(shown.plan_id == columns.plan_id, shown.taken_at <= columns.joined_at)
        .order_by(shown.taken_at.desc())
        .limit(1)
        .correlate(encounters)
        .scalar_subquery()
    )
    of_plans = plans.join(encounters, columns.plan_id == plans.c.id).join(estimate_log, log.id == latest)
    query = (
        select(columns.plan_id, columns.joined_at, columns.started_at, log.id, log.estimate_seconds)
        .select_from(of_plans)
        .where(
            columns.joined_at >= since,
            columns.started_at.is_not(None),
            log.expires_at > columns.joined_at,
        )
        .order_by(columns.joined_at.desc(), columns.visit)
        .limit(limit)
    )
    return list(tx.execute(query))


def pages_of_visits(tx: Tx) -> Iterator[list[str]]:
    """Every visit that has events, a page of references at a time."""
    visit, last = queue_events.c.visit, ""
    while True:
        query = select(visit).where(visit > last).distinct().order_by(visit).limit(PAGE)
        page = list(tx.execute(query).scalars())
        if not page:
            return
        yield page
        last = page[-1]


def events_of_visits(tx: Tx, visits: Collection[str]) -> list[dict[str, Any]]:
    return find_set(tx, queue_events, "visit", visits, columns=EVENT_COLUMNS).rows


def events_of_doctors(tx: Tx) -> list[dict[str, Any]]:
    columns = [queue_events.c[name] for name in EVENT_COLUMNS]
    query = select(*columns).where(queue_events.c.visit.is_(None))
    return [dict(zip(EVENT_COLUMNS, row, strict=True)) for row in tx.execute(query)]


def select_duties(tx: Tx) -> list[dict[str, Any]]:
    return [dict(row) for row in tx.execute(select(duties)).mappings()]


def select_encounters(tx: Tx, visits: Collection[str]) -> list[dict[str, Any]]:
    query = select(encounters).where(encounters.c.visit.in_(visits))
    return [dict(row) for row in tx.execute(query).mappings()]


def delete_encounters_without_events(tx: Tx) -> int:
    known = (queue_events.c.visit == encounters.c.visit) & (
        queue_events.c.provider_group_id == encounters.c.provider_group_id
    )
    bare = ~select(queue_events.c.event_id).where(known).exists()
    return tx.execute(delete(encounters).where(bare)).rowcount


def delete_duties(tx: Tx, ids: Collection[int]) -> None:
    tx.execute(delete(duties).where(duties.c.id.in_(ids)))


def prune_encounters(tx: Tx, before: datetime) -> tuple[int, int]:
    """Up to a page of the encounters whose last event is older, with their events: how many of each."""
    columns = encounters.c
    old = select(columns.id, columns.visit, columns.provider_group_id).where(columns.last_event_at < before)
    rows = list(tx.execute(old.order_by(columns.last_event_at).limit(PAGE)))
    if not rows:
        return 0, 0
    theirs = {(row.visit, row.provider_group_id) for row in rows}
    by_group: dict[int, list[str]] = {}
    for visit, group in theirs:
        by_group.setdefault(group, []).append(visit)
    events = sum(
        tx.execute(
            delete(queue_events).where(
                queue_events.c.provider_group_id == group, queue_events.c.visit.in_(visits)
            )
        ).rowcount
        for group, visits in by_group.items()
    )
    tx.execute(delete(encounters).where(columns.id.in_([row.id for row in rows])))
    return len(rows), events


def prune_duties(tx: Tx, before: datetime) -> int:
    """Up to a page of the doctors' events that are older and no longer the latest of their kind: how many."""
    event, duty = queue_events.c, duties.c
    same_doctor = (duty.doctor == event.doctor) & (duty.provider_group_id == event.provider_group_id)
    still_counts = or_(
        and_(event.type == "doctor.on_duty", duty.on_event == event.event_id),
        and_(event.type == "doctor.off_duty", duty.off_at == event.at),
    )
    counts = select(duty.id).where(same_doctor, still_counts).exists()
    old = select(event.provider_group_id, event.event_id).where(
        event.at < before, event.visit.is_(None), ~counts
    )
    by_group: dict[int, list[str]] = {}
    for group, id_ in tx.execute(old.limit(PAGE)):
        by_group.setdefault(group, []).append(id_)
    for group, ids in by_group.items():
        tx.execute(delete(queue_events).where(event.provider_group_id == group, event.event_id.in_(ids)))
    return sum(map(len, by_group.values()))


def prune_estimates(tx: Tx, before: datetime) -> int:
    """Up to a page of the estimates that were given before: how many."""
    log = estimate_log.c
    old = select(log.id).where(log.taken_at < before).order_by(log.taken_at).limit(PAGE)
    ids = list(tx.execute(old).scalars())
    if ids:
        tx.execute(delete(estimate_log).where(log.id.in_(ids)))
    return len(ids)
