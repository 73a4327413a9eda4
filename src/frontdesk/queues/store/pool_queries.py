"""The statements that read provider groups as pools, built once: to build them took longer than to run them.

Parameters: `groups`, `since` (the earliest time that counts) and `most` rows. Each is bounded and by index, however many patients
and visits there ever were.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, String, and_, bindparam, cast, func, literal, select

from frontdesk.db.sets import SameKey
from frontdesk.plans.tables import plans
from frontdesk.queues.estimate.late_feed import KNOWN_STARTS
from frontdesk.queues.estimate.model import KNOWN_VISITS
from frontdesk.queues.model import EncounterState, EventType
from frontdesk.queues.tables import duties, encounters, queue_events

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_OVER = (EncounterState.IN_VISIT.value, EncounterState.ENDED.value, EncounterState.LEFT.value)
_GROUPS: BindParameter[Any] = bindparam("groups", expanding=True)
_SINCE: BindParameter[Any] = bindparam("since")

_encounter, _event, _duty = encounters.c, queue_events.c, duties.c


def _is_now(state: EncounterState) -> ColumnElement[bool]:
    """In the text of the statement: a plan for any state takes the few that are not over for as many as all others, and
    PostgreSQL 15 read every encounter."""
    return _encounter.state == bindparam(None, state.value, literal_execute=True)


def _is_visit(columns: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return columns.state == EncounterState.ENDED.value, columns.started_at.is_not(None)


ON_DUTY = select(*_duty["provider_group_id", "doctor", "plan_ids", "capacity", "on_at"]).where(
    _duty.provider_group_id.in_(_GROUPS), _duty.on_duty
)

# The latest first.
ONGOING_VISITS = (
    select(*_encounter["provider_group_id", "doctor", "plan_id", "started_at", "joined_at"])
    .where(
        _encounter.provider_group_id.in_(_GROUPS),
        _is_now(EncounterState.IN_VISIT),
        _encounter.started_at > _SINCE,
    )
    .order_by(_encounter.started_at.desc(), _encounter.visit)
)

# One text per group, in order of arrival: to fetch ten thousand rows takes longer than all the rest.
WAITING = (
    select(
        _encounter.provider_group_id,
        *(
            func.aggregate_strings(cast(column, String), ",").aggregate_order_by(
                _encounter.joined_at, _encounter.visit
            )
            for column in (_encounter.plan_id, _encounter.joined_at)
        ),
    )
    .where(
        _encounter.provider_group_id.in_(_GROUPS),
        _is_now(EncounterState.WAITING),
        _encounter.joined_at > _SINCE,
    )
    .group_by(_encounter.provider_group_id)
)

_older = encounters.alias("older").c
_oldest = (
    select(_older.ended_at)
    .where(_older.plan_id == plans.c.id, *_is_visit(_older))
    .order_by(_older.ended_at.desc())
    .limit(1)
    .offset(KNOWN_VISITS - 1)
    .scalar_subquery()
)
_since = (
    select(plans.c.id, func.coalesce(_oldest, literal(_BEGINNING, _encounter.ended_at.type)).label("at"))
    .where(plans.c.provider_group_id.in_(_GROUPS))
    .subquery("since")
)
# At most KNOWN_VISITS times the number of plans.
PAST_VISITS = (
    select(*_encounter["provider_group_id", "plan_id", "started_at", "ended_at", "doctor", "joined_at"])
    .join(_since, and_(SameKey(_encounter.plan_id, _since.c.id), _encounter.ended_at >= _since.c.at))
    .where(*_is_visit(_encounter))
)

PAST_WAITS = (
    select(*_encounter["provider_group_id", "state", "joined_at", "started_at", "ended_at"])
    .where(
        _encounter.provider_group_id.in_(_GROUPS),
        _encounter.state.in_(_OVER),
        _encounter.joined_at >= _SINCE,
    )
    .order_by(_encounter.joined_at.desc())
    .limit(bindparam("most"))
)

# At one instant a shift ends before the next begins.
DUTY_EVENTS = (
    select(*_event["provider_group_id", "doctor", "type", "at"])
    .where(_event.visit.is_(None), _event.provider_group_id.in_(_GROUPS), _event.at >= _SINCE)
    .order_by(_event.at, _event.type)
)

_place = func.row_number().over(
    partition_by=_encounter.provider_group_id, order_by=_encounter.started_at.desc()
)
_latest = (
    select(*_encounter["provider_group_id", "visit", "started_at"], _place.label("place"))
    .where(
        _encounter.provider_group_id.in_(_GROUPS),
        _is_now(EncounterState.IN_VISIT),
        _encounter.started_at > _SINCE,
    )
    .subquery("latest")
)
# The starts of the visits in progress, the latest KNOWN_STARTS of each group; of one that was handed over, each.
STARTS = (
    select(_latest.c.provider_group_id, _latest.c.started_at, _event.at, _event.received_at)
    .join(
        queue_events,
        and_(
            SameKey(_event.visit, _latest.c.visit),
            SameKey(_event.provider_group_id, _latest.c.provider_group_id),
            _event.type == EventType.VISIT_STARTED.value,
        ),
    )
    .where(_latest.c.place <= KNOWN_STARTS)
)
