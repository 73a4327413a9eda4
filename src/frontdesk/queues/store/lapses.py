"""The SQL of duties that have lapsed: their doctors have had no event for as long as their provider
group says (`plans.model.ProviderGroup.duty_hours`).
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, and_, bindparam, func, or_, select

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey
from frontdesk.plans.model import MOST_DUTY_HOURS
from frontdesk.plans.tables import provider_groups
from frontdesk.queues.model import LONGEST_VISIT
from frontdesk.queues.store.events import PAGE
from frontdesk.queues.tables import duties, encounters, queue_events

LAPSED_ID = "frontdesk-lapsed-"  # of the events that end lapsed duties


class LapsedDuty(NamedTuple):
    provider_group_id: int
    doctor: str
    last_event_at: datetime


_duty = duties.c
_visit = encounters.c
_event = queue_events.c
_LIMIT: BindParameter[Any] = bindparam("limit")

# The latest event of the visits that name the doctor. One that goes on may have begun some hours
# before the limit.
_same_visit = and_(
    SameKey(_visit.visit, _event.visit), SameKey(_visit.provider_group_id, _event.provider_group_id)
)
_last_of_visits = (
    select(func.max(_visit.last_event_at))
    .select_from(queue_events.join(encounters, _same_visit))
    .where(
        SameKey(_event.doctor, _duty.doctor),
        SameKey(_event.provider_group_id, _duty.provider_group_id),
        _event.at >= bindparam("visits_since"),
    )
    .correlate(duties)
    .scalar_subquery()
)
_LAPSED = (
    select(*_duty["provider_group_id", "doctor", "on_at", "paused_at"])
    .add_columns(_last_of_visits.label("visits_at"))
    .join(provider_groups, SameKey(_duty.provider_group_id, provider_groups.c.id))
    .where(
        provider_groups.c.duty_hours == bindparam("hours"),
        _duty.on_duty,
        _duty.on_at < _LIMIT,
        or_(_duty.paused_until.is_(None), _duty.paused_until < _LIMIT),
        func.coalesce(_last_of_visits, _duty.on_at) < _LIMIT,
    )
    .order_by(_duty.provider_group_id, _duty.doctor)
    .limit(PAGE)
)


def find_lapsed(tx: Tx, now: datetime) -> list[LapsedDuty]:
    """A page of the duties that have lapsed. A pause counts as an event until its expected end."""
    found: list[LapsedDuty] = []
    for hours in tx.execute(select(provider_groups.c.duty_hours).distinct()).scalars().all():
        limit = now - timedelta(hours=hours)
        values = {"hours": hours, "limit": limit, "visits_since": limit - LONGEST_VISIT}
        for row in tx.execute(_LAPSED, values):
            times = (row.on_at, row.paused_at, row.visits_at)
            last = max(at for at in times if at is not None)
            found.append(LapsedDuty(row.provider_group_id, row.doctor, last))
    return found[:PAGE]


def count_lapsed(tx: Tx, since: datetime) -> dict[int, int]:
    """By provider group, how many duties were ended as lapsed since then; 0 for the others.

    The events that ended them are as old as the last event before: without the bound for `at`, all
    events of doctors would be read.
    """
    numbers = (
        select(_event.provider_group_id, func.count())
        .where(
            _event.visit.is_(None),
            _event.provider_group_id.in_(select(provider_groups.c.id)),
            _event.at >= since - timedelta(hours=2 * MOST_DUTY_HOURS),
            _event.received_at >= since,
            _event.event_id.startswith(LAPSED_ID),
        )
        .group_by(_event.provider_group_id)
    )
    counts = dict.fromkeys(tx.execute(select(provider_groups.c.id)).scalars(), 0)
    for group, number in tx.execute(numbers):
        counts[group] = number
    return counts
