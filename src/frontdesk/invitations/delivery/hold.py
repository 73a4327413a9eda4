"""Whether delivery is held: by an operator, or because this database is a restored or copied one (docs/decisions/0032).

What was sent after a backup was taken is pending again in it. So a database that is not where it delivered last, or is
older than what it has delivered, delivers nothing until an operator has released it.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from frontdesk.db import Tx
from frontdesk.db.database_identity import (
    counter_path,
    database_identity,
    raise_counter,
    read_counter,
    set_counter,
)
from frontdesk.invitations.delivery import store
from frontdesk.invitations.delivery.model import DeliveryHome, Hold, HoldReason

_TABLE = "delivery_home"


def find_hold(tx: Tx, *, now: datetime) -> Hold | None:
    """Why nothing may be delivered now, None if it may. A suspicion is stored, and holds delivery from then on."""
    home = store.find_home(tx)
    reason = find_hold_reason(tx, home)
    if reason is None:
        if home.home is None:
            release(tx)  # the first delivery of this database: its home is here
        return None
    if home.held_reason is None:
        hold(tx, reason, now=now)
    return Hold(reason, home.held_at or now)


def find_hold_reason(tx: Tx, home: DeliveryHome | None = None) -> HoldReason | None:
    """Why nothing may be delivered, None if it may; changes nothing."""
    home = home or store.find_home(tx)
    if home.held_reason is not None:
        return HoldReason(home.held_reason)
    counter = read_counter(tx)
    if home.home is None:
        return HoldReason.OLDER if counter else None
    if home.home != database_identity(tx, _TABLE) or counter is None:
        return HoldReason.MOVED
    return HoldReason.OLDER if counter > home.offers else None


def hold(tx: Tx, reason: HoldReason, *, now: datetime) -> None:
    """Deliver nothing from now on; what workers hold is still finished."""
    store.save_home(tx, held_reason=reason.value, held_at=now)


def release(tx: Tx) -> None:
    """Deliver (again): this database's home is where it is now."""
    store.save_home(tx, home=database_identity(tx, _TABLE), held_reason=None, held_at=None)
    set_counter(tx, store.find_home(tx).offers)


def count_offer(tx: Tx) -> Callable[[], None] | None:
    """Count a commit after which mail leaves. Call what it returns before any does: it notes the count outside the database.

    None on PostgreSQL, whose identity changes with every restore.
    """
    path = counter_path(tx)
    return None if path is None else partial(raise_counter, path, store.count_offers(tx))
