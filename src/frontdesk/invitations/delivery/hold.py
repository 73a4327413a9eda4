"""Whether delivery is held: by an operator, or because this database is a restored or copied one (docs/decisions).

What was sent after a backup was taken is pending again in it. So a database that is not where it delivered last, or is
older than what it has delivered, delivers nothing until an operator has released it.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from frontdesk.db import Tx
from frontdesk.db.home import identity, mark_path, raise_mark, read_mark, set_mark
from frontdesk.db.sets import Row
from frontdesk.invitations.delivery import store

_TABLE = "delivery_home"


class HoldReason(StrEnum):
    """Why delivery is held."""

    BY_OPERATOR = "by_operator"
    MOVED = "moved"
    OLDER = "older"


HOLD_REASONS = {
    HoldReason.BY_OPERATOR: "An operator holds it.",
    HoldReason.MOVED: "This database is not where it delivered last: it was restored, copied or failed over to.",
    HoldReason.OLDER: "This database is older than what it has delivered: a backup was restored over it.",
}


@dataclass(frozen=True, slots=True)
class Hold:
    reason: HoldReason
    since: datetime


def find_hold(tx: Tx, *, now: datetime) -> Hold | None:
    """Why nothing may be delivered now, None if it may. What is found strange is held from then on."""
    row = store.find_home(tx)
    if row is not None and row["held_reason"] is not None:
        return Hold(HoldReason(row["held_reason"]), row["held_at"])
    reason = _strangeness(tx, row)
    if reason is None:
        if row is None or row["home"] is None:
            release(tx)  # it has not delivered yet, and is at home here from now on
        return None
    hold(tx, reason, now=now)
    return Hold(reason, now)


def find_reason(tx: Tx) -> HoldReason | None:
    """Why nothing may be delivered, None if it may; changes nothing."""
    row = store.find_home(tx)
    if row is not None and row["held_reason"] is not None:
        return HoldReason(row["held_reason"])
    return _strangeness(tx, row)


def _strangeness(tx: Tx, row: Row | None) -> HoldReason | None:
    mark = read_mark(tx)
    if row is None or row["home"] is None:
        return HoldReason.OLDER if mark else None
    if row["home"] != identity(tx, _TABLE) or mark is None:
        return HoldReason.MOVED
    return HoldReason.OLDER if mark > row["offers"] else None


def hold(tx: Tx, reason: HoldReason, *, now: datetime) -> None:
    """Deliver nothing from now on; what is in hand is still finished."""
    if store.find_home(tx) is None:
        store.make_home(tx)
    store.save_home(tx, held_reason=reason.value, held_at=now)


def release(tx: Tx) -> None:
    """Deliver (again): this database is at home where it is now."""
    row = store.find_home(tx)
    if row is None:
        store.make_home(tx)
    store.save_home(tx, home=identity(tx, _TABLE), held_reason=None, held_at=None)
    set_mark(tx, row["offers"] if row else 0)


@dataclass(frozen=True, slots=True)
class DeliveryMark:
    """What has to be noted outside the database before the mails that a commit allowed may leave."""

    path: Path
    count: int

    def write(self) -> None:
        raise_mark(self.path, self.count)


def count_offer(tx: Tx) -> DeliveryMark | None:
    """Count a commit after which mail leaves (SQLite; PostgreSQL's identity tells enough)."""
    path = mark_path(tx)
    return None if path is None else DeliveryMark(path, store.count_offers(tx))
