"""An account's deliverability settings: whether, how fast and in whose name batched invitations go out."""

from dataclasses import dataclass, replace

from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import store


@dataclass(frozen=True, slots=True)
class Deliverability:
    """`batch_size` messages every `batch_interval_seconds`, never more than `hourly_limit` in any 60 minutes."""

    account_id: int
    enabled: bool = False
    batch_size: int = 100
    batch_interval_seconds: int = 60
    hourly_limit: int = 1000
    sender_name: str | None = None
    sender_address: str | None = None
    registration_url: str | None = None


def get_deliverability(tx: Tx, account_id: int) -> Deliverability:
    """The account's settings; the defaults (off) where none were ever set."""
    row = store.find_deliverability(tx, account_id)
    return Deliverability(**row) if row else Deliverability(account_id)


def set_deliverability(tx: Tx, account_id: int, **changes: object) -> Deliverability:
    """Change the settings named in `changes`, keep the others. Raises Invalid when a number is not positive."""
    settings = replace(get_deliverability(tx, account_id), **changes)  # type: ignore[arg-type]
    faults = [
        Fault(name, "not_positive", "must be a whole number of at least 1")
        for name in ("batch_size", "batch_interval_seconds", "hourly_limit")
        if getattr(settings, name) < 1
    ]
    if faults:
        raise Invalid(faults)
    store.save_deliverability(tx, settings)
    return settings
