"""Changes an account's deliverability settings: whether, how fast and from which sender batched invitations go out."""

from dataclasses import replace

from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.model import DeliverabilitySettings
from frontdesk.invitations.store import get_deliverability, save_deliverability


def set_deliverability(tx: Tx, account_id: int, **changes: object) -> DeliverabilitySettings:
    """Change the settings named in `changes`, keep the others. Raises Invalid when a number is not positive."""
    settings = replace(get_deliverability(tx, account_id), **changes)  # type: ignore[arg-type]
    faults = [
        Fault(name, "not_positive", "must be a whole number of at least 1")
        for name in ("batch_size", "batch_interval_seconds", "hourly_limit")
        if getattr(settings, name) < 1
    ]
    if faults:
        raise Invalid(faults)
    save_deliverability(tx, settings)
    return settings
