"""The SQL of duties that have lapsed: their doctors have had no event for as long as their provider
group says (`plans.model.ProviderGroup.duty_hours`). And of those lapses that were wrong.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ScalarSelect, and_, bindparam, func, or_, select

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey, delete_set, find_set
from frontdesk.plans.model import MOST_DUTY_HOURS
from frontdesk.plans.tables import provider_groups
from frontdesk.queues.model import LONGEST_VISIT, EventType, QueueEvent, Reference
from frontdesk.queues.store.events import PAGE, record_of_row
from frontdesk.queues.tables import duties, encounters, queue_events

LAPSED_ID = "frontdesk-lapsed-"  # of the events that end lapsed duties


class LapsedDuty(NamedTuple):
    provider_group_id: int
    doctor: str
    last_event_at: datetime


class WrongLapse(NamedTuple):
    """An event that ended the duty of a doctor who was still there."""

    event_id: str
    provider_group_id: int
    doctor: str


_duty = duties.c
_visit = encounters.c
_event = queue_events.c
_LIMIT: BindParameter[Any] = bindparam("limit")

_same_visit = and_(
    SameKey(_visit.visit, _event.visit), SameKey(_visit.provider_group_id, _event.provider_group_id)
)


def _last_of_visits(since: Any) -> ScalarSelect[Any]:
    """The latest event of the visits that name the doctor of a duty since then."""
    return (
        select(func.max(_visit.last_event_at))
        .select_from(queue_events.join(encounters, _same_visit))
        .where(
            SameKey(_event.doctor, _duty.doctor),
            SameKey(_event.provider_group_id, _duty.provider_group_id),
            _event.at >= since,
        )
        .correlate(duties)
        .scalar_subquery()
    )


# A visit that goes on may have begun some hours before the limit. The end of a duty is after all of
# its visits, else it would be taken back: they are read only of a duty that has lapsed.
_LAPSED = (
    select(*_duty["provider_group_id", "doctor", "on_at", "paused_at"])
    .add_columns(_last_of_visits(_duty.on_at).label("visits_at"))
    .join(provider_groups, SameKey(_duty.provider_group_id, provider_groups.c.id))
    .where(
        provider_groups.c.duty_hours == bindparam("hours"),
        _duty.on_duty,
        _duty.on_at < _LIMIT,
        # A pause that has ended by a later on duty counts no more.
        or_(
            _duty.paused_until.is_(None), _duty.paused_until < _LIMIT, _duty.paused_at < _duty.on_at
        ),
        func.coalesce(_last_of_visits(bindparam("visits_since")), _duty.on_at) < _LIMIT,
    )
    .order_by(_duty.provider_group_id, _duty.doctor)
    .limit(PAGE)
)

# The first event of the doctor after a lapse, of those that tell whether the doctor is there.
_next = queue_events.alias("next").c
_shown_next = (
    select(_next.type)
    .where(
        SameKey(_next.doctor, _event.doctor),
        SameKey(_next.provider_group_id, _event.provider_group_id),
        _next.at > _event.at,
        _next.type != EventType.VISIT_ENDED.value,
    )
    # In the order of the doctor's index: by time alone PostgreSQL read everyone's later events.
    .order_by(*(_next[name] for name in ("doctor", "provider_group_id", "at", "type")))
    .limit(1)
    .correlate(queue_events)
    .scalar_subquery()
)
# The range finds the few by the primary key: behind the prefix are hexadecimal digits, so it holds
# in each collation.
_is_lapse = and_(
    _event.event_id > LAPSED_ID,
    _event.event_id < LAPSED_ID + "g",
    _event.type == EventType.DOCTOR_OFF_DUTY.value,
)
_WRONG_LAPSES = (
    select(*_event["event_id", "provider_group_id", "doctor"])
    .where(
        _is_lapse, _shown_next.in_((EventType.DOCTOR_PAUSED.value, EventType.VISIT_STARTED.value))
    )
    .order_by(_event.event_id)
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


def find_wrong_lapses(tx: Tx) -> list[WrongLapse]:
    """A page of the lapses after which the doctor paused or started a visit, before any other
    doctor.on_duty or doctor.off_duty.
    """
    return [WrongLapse(*row) for row in tx.execute(_WRONG_LAPSES)]


def delete_lapses(tx: Tx, lapses: Collection[WrongLapse]) -> None:
    delete_set(
        tx,
        queue_events,
        [
            {"event_id": lapse.event_id, "provider_group_id": lapse.provider_group_id}
            for lapse in lapses
        ],
    )


def find_duty_ids(tx: Tx, lapses: Collection[WrongLapse]) -> dict[Reference, int]:
    """The ids of the duties of the lapses' doctors."""
    wanted = {(lapse.doctor, lapse.provider_group_id) for lapse in lapses}
    names = {doctor for doctor, _ in wanted}
    found = find_set(
        tx, duties, "doctor", names, columns=("id", "doctor", "provider_group_id")
    ).rows
    ids = {(row["doctor"], row["provider_group_id"]): row["id"] for row in found}
    return {doctor: id_ for doctor, id_ in ids.items() if doctor in wanted}


def select_duty_events(tx: Tx, lapses: Collection[WrongLapse]) -> Sequence[QueueEvent]:
    """All duty events of the doctors of the lapses, and of doctors of the same names in the groups
    of the others.
    """
    query = select(queue_events).where(
        _event.visit.is_(None),
        _event.provider_group_id.in_({lapse.provider_group_id for lapse in lapses}),
        _event.doctor.in_({lapse.doctor for lapse in lapses}),
    )
    return [record_of_row(QueueEvent, row) for row in tx.execute(query).mappings()]


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
