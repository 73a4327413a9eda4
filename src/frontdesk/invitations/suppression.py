"""The suppression list: addresses that must not be mailed, and why (docs/invitations.md)."""

from collections.abc import Iterator
from datetime import datetime

from frontdesk.db import Tx
from frontdesk.invitations import store
from frontdesk.invitations.model import Suppression, SuppressionReason
from frontdesk.text import fold_email

PAGE = 1000


def suppress(tx: Tx, address: str, reason: SuppressionReason, *, now: datetime) -> bool:
    """Suppress the address in any spelling. False if it was on the list; its first reason stays."""
    folded = fold_email(address)
    if store.find_suppressed(tx, {folded}).rows:
        return False
    store.insert_suppression(tx, folded, reason=reason, now=now)
    return True


def unsuppress(tx: Tx, address: str) -> bool:
    """Take the address off the list. False if it was not on it."""
    return store.delete_suppression(tx, fold_email(address))


def list_suppressions(tx: Tx, *, limit: int) -> Iterator[Suppression]:
    """The first `limit` in order of the addresses, read page by page."""
    after = ""
    while limit > 0:
        page = store.list_suppressions(tx, after=after, limit=min(PAGE, limit))
        yield from page
        if len(page) < PAGE:
            return
        after, limit = page[-1].address, limit - len(page)
