"""The hold of all delivery: by an operator, or because this database is a restored or copied one, in
which is pending again what was sent after the backup was taken (docs/decisions/0032).
"""

from collections.abc import Callable
from functools import partial

from frontdesk import events
from frontdesk.db import Tx, database_identity
from frontdesk.db.database_identity import FailoverWitness
from frontdesk.invitations.model import DeliveryHome, HoldReason
from frontdesk.invitations.store import workers

HOME_TABLE = "delivery_home"


def find_hold(tx: Tx, witness: FailoverWitness | None = None) -> HoldReason | None:
    """Why nothing may be delivered now, None if it may. A suspicion is stored, and holds delivery
    from then on, unless it is a failover by which the witness knows that nothing was lost.
    """
    home = workers.find_home(tx)
    reason = find_hold_reason(tx, home)
    if reason is HoldReason.MOVED and witness is not None and witness.saw_failover(tx, home.home):
        _save_home_here(tx)
        return None
    if reason is None and home.home is None:
        release(tx)  # the first delivery of this database: its home is here
    elif reason is not None and home.held_reason is None:
        hold(tx, reason)
    return reason


def find_hold_reason(tx: Tx, home: DeliveryHome | None = None) -> HoldReason | None:
    """Why nothing may be delivered, None if it may; changes nothing."""
    home = home or workers.find_home(tx)
    if home.held_reason is not None:
        return HoldReason(home.held_reason)
    counter = database_identity.read_counter(tx)
    if home.home is None:
        return HoldReason.OLDER if counter else None
    if home.home != database_identity.database_identity(tx, HOME_TABLE) or counter is None:
        return HoldReason.MOVED
    return HoldReason.OLDER if counter > home.offers else None


def hold(tx: Tx, reason: HoldReason) -> None:
    """Deliver nothing from now on; what workers hold is still finished."""
    workers.save_home(tx, held_reason=reason.value)


def release(tx: Tx) -> None:
    """Deliver (again): this database's home is where it is now."""
    _save_home_here(tx)
    events.number_anew(tx)
    database_identity.set_counter(tx, workers.find_home(tx).offers)


def _save_home_here(tx: Tx) -> None:
    """End a hold, and take the present identity of the database as that of its home."""
    here = database_identity.database_identity(tx, HOME_TABLE)
    workers.save_home(tx, home=here, held_reason=None)


def count_offer(tx: Tx) -> Callable[[], None] | None:
    """Count a commit after which mail leaves. Call what it returns before any does: it notes the
    count outside the database.

    None on PostgreSQL, whose identity changes with every restore.
    """
    path = database_identity.counter_path(tx)
    return (
        None
        if path is None
        else partial(database_identity.raise_counter, path, workers.count_offers(tx))
    )
