"""Places from which a reader may go on: those whose next event is still kept.

An event is deleted after EVENT_DAYS, but for the newest of its account: a reader that has read all
of a quiet feed has missed nothing (`privacy.store`).
"""

from datetime import datetime, timedelta

from frontdesk import codes
from frontdesk.codes import Code, Kind
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError
from frontdesk.events import store
from frontdesk.events.model import EVENT_DAYS, EventPlace


class CursorGone(FrontdeskError, kind=Kind.GONE):
    """The feed does not go on from this place, so a reader would miss events without a sign."""

    def __init__(self, code: Code, field: str) -> None:
        super().__init__(code.sentence, code=code, field=field)


def check_place(tx: Tx, account_id: int, place: EventPlace, *, field: str) -> None:
    """Raises CursorGone for an event that the account does not have (any more)."""
    if store.has_event(tx, account_id, place):
        return
    first = store.first_place(tx, account_id)
    is_older = first is not None and place < first
    code = codes.faults.CURSOR_TOO_OLD if is_older else codes.faults.CURSOR_UNKNOWN
    raise CursorGone(code, field)


def check_time(tx: Tx, account_id: int, since: datetime, *, now: datetime, field: str) -> None:
    """Raises CursorGone for a time from which events of the feed are deleted already."""
    oldest = now - timedelta(days=EVENT_DAYS)
    began = store.feed_since(tx, account_id)
    if since < oldest and began is not None and began < oldest:
        raise CursorGone(codes.faults.CURSOR_TOO_OLD, field)
