"""The SQL of the doctors on duty, and of their reported pauses. Its parameters: `groups`, `now`,
and `since`, the earliest time that counts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    FromClause,
    ScalarSelect,
    Table,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
)

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey
from frontdesk.queues.model import EventType
from frontdesk.queues.tables import duties, queue_events

GROUPS: BindParameter[Any] = bindparam("groups", expanding=True)
NOW: BindParameter[Any] = bindparam("now")
SINCE: BindParameter[Any] = bindparam("since")

_duty = duties.c
_event = queue_events.c


def _first_start(of: Table, since: Any) -> ScalarSelect[Any]:
    """The time of the first visit that the doctor of a row of the table began or took over since
    then. A repeated start of the doctor's visit in progress begins none.
    """
    starts = queue_events.alias("start")
    start = starts.c
    return (
        select(start.at)
        .where(
            SameKey(start.doctor, of.c.doctor),
            SameKey(start.provider_group_id, of.c.provider_group_id),
            start.at >= since,
            start.type == EventType.VISIT_STARTED.value,
            func.coalesce(_doctor_before(starts), "") != start.doctor,
        )
        .order_by(start.doctor, start.provider_group_id, start.at)
        .limit(1)
        .correlate(of)
        .scalar_subquery()
    )


def _doctor_before(starts: FromClause) -> ScalarSelect[Any]:
    """Just before a start of a visit, its doctor; null if the visit is not in progress."""
    start = starts.c
    before = queue_events.alias("before").c
    is_start = before.type == EventType.VISIT_STARTED.value
    same_instant = and_(before.at == start.at, is_start, before.event_id < start.event_id)
    return (
        select(case((is_start, before.doctor)))
        .where(
            SameKey(before.visit, start.visit),
            SameKey(before.provider_group_id, start.provider_group_id),
            or_(is_start, before.type == EventType.VISIT_ENDED.value),
            or_(before.at < start.at, same_instant),
        )
        # Of one instant, an end comes after a start: as in queues/encounters.py.
        .order_by(before.at.desc(), before.type, before.event_id.desc())
        .limit(1)
        .correlate(starts)
        .scalar_subquery()
    )


# The expected end of the present pause: a pause ends at `until`, and before it when the doctor
# comes on duty again or starts a visit.
_paused_until = case(
    (
        and_(
            _duty.paused_until > NOW,
            _duty.paused_at <= NOW,
            _duty.paused_at >= _duty.on_at,
            _first_start(duties, _duty.paused_at).is_(None),
        ),
        _duty.paused_until,
    )
).label("paused_until")
ON_DUTY = (
    select(*_duty["provider_group_id", "doctor", "plan_ids", "capacity", "on_at"])
    .add_columns(_paused_until)
    .where(_duty.provider_group_id.in_(GROUPS), _duty.on_duty)
)
# Of a pause, the first visit that the doctor started since its beginning.
_visit_in_pause = case(
    (_event.type == EventType.DOCTOR_PAUSED.value, _first_start(queue_events, _event.at))
)
# At one instant a shift ends before the next begins, and a pause begins after it.
DUTY_EVENTS = (
    select(*_event["provider_group_id", "doctor", "type", "at", "until"])
    .add_columns(_visit_in_pause)
    .where(_event.visit.is_(None), _event.provider_group_id.in_(GROUPS), _event.at >= SINCE)
    .order_by(_event.at, _event.type, _event.until)
)
_LISTED = (
    select(*_duty["provider_group_id", "doctor"], _duty.on_at.label("since_at"), _paused_until)
    .where(_duty.on_duty)
    .order_by(*_duty["provider_group_id", "on_at", "doctor"])
)


def list_on_duty(tx: Tx, now: datetime) -> Sequence[Any]:
    """The doctors on duty (`provider_group_id`, `doctor`, `since_at`, `paused_until`), by provider
    group and start. `paused_until`: the expected end of the present pause, None without one.
    """
    return tx.execute(_LISTED, {"now": now}).all()
