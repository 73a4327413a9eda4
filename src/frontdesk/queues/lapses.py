"""Ends the duties of doctors that have sent no event for so long that their off duty must be lost."""

import secrets
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.queues.store import events as store
from frontdesk.queues.store.lapses import LAPSED_ID, LapsedDuty, find_lapsed


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
