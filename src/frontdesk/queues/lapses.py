"""Ends the duties of doctors that have sent no event for so long that their off duty must be lost,
and takes that back when events show that the doctor was there.
"""

import secrets
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.queues.encounters import settle_duty
from frontdesk.queues.ingest import by_reference, ingest, publishing_queue_changes
from frontdesk.queues.model import Duty, EventType, QueueEvent
from frontdesk.queues.store import events as store
from frontdesk.queues.store.lapses import (
    LAPSED_ID,
    LapsedDuty,
    WrongLapse,
    delete_lapses,
    find_duty_ids,
    find_lapsed,
    find_wrong_lapses,
    select_duty_events,
)

DutyChange = LapsedDuty | WrongLapse  # a duty has ended, or its end is taken back


def take_back_lapses(tx: Tx, now: datetime) -> list[WrongLapse]:
    """Take back a page of the lapses after which the doctor paused or started a visit without
    coming on duty again; call it until it takes back none.

    Such events came after the lapse was stored. Without it the duty is what it would be had they
    come in time. Here and not with each batch, which would have to look for lapses.
    """
    groups = {lapse.provider_group_id for lapse in find_wrong_lapses(tx)}
    if not groups:
        return []
    locked = store.lock_groups(tx, groups)
    # Again: an event may have come before the lock.
    found = find_wrong_lapses(tx)
    wrong = [lapse for lapse in found if lapse.provider_group_id in locked]
    delete_lapses(tx, wrong)
    events = by_reference(select_duty_events(tx, wrong))
    duty_rows = [
        store.settled_row(doctor, settle_duty(Duty(), events.get(doctor, ())), id_)
        for doctor, id_ in find_duty_ids(tx, wrong).items()
    ]
    with publishing_queue_changes(tx, {lapse.provider_group_id for lapse in wrong}, now):
        store.save(tx, duty_rows=duty_rows)
    return wrong


def end_lapsed_duties(tx: Tx, now: datetime) -> list[LapsedDuty]:
    """End a page of the duties without an event of their doctor for `duty_hours` of their group;
    call it until it ends none.

    Each ends by an event of its own, so state, events for accounts, history and a rebuild follow
    from one rule. It counts from just after the doctor's last event: a later doctor.on_duty that
    comes late is newer, and the doctor is on duty again.
    """
    groups = {lapsed.provider_group_id for lapsed in find_lapsed(tx, now)}
    if not groups:
        return []
    locked = store.lock_groups(tx, groups)
    # Again: an event may have come before the lock.
    ended = [lapsed for lapsed in find_lapsed(tx, now) if lapsed.provider_group_id in locked]
    ingest(tx, [_off_duty(lapsed) for lapsed in ended], now=now, of_feed=False)
    return ended


def _off_duty(lapsed: LapsedDuty) -> QueueEvent:
    return QueueEvent(
        id=f"{LAPSED_ID}{secrets.token_hex(12)}",
        type=EventType.DOCTOR_OFF_DUTY,
        at=lapsed.last_event_at + timedelta(microseconds=1),
        provider_group_id=lapsed.provider_group_id,
        doctor=lapsed.doctor,
    )
