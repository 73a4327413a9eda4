"""Addresses that must not be mailed, and why: on and off the list; those who heed it are `rules` and delivery."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from frontdesk.db import Tx
from frontdesk.invitations import letter_store
from frontdesk.text import fold_email

PAGE = 1000


class SuppressionReason(StrEnum):
    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    UNSUBSCRIBE = "unsubscribe"
    BY_HAND = "by_hand"


@dataclass(frozen=True, slots=True)
class Suppression:
    address: str
    reason: str
    created_at: datetime


def suppress(tx: Tx, address: str, reason: SuppressionReason, *, now: datetime) -> bool:
    """Mail this address no more, however it is written. False if it was on the list; its first reason stays."""
    folded = fold_email(address)
    if letter_store.find_suppression(tx, folded) is not None:
        return False
    letter_store.insert_suppression(tx, folded, reason=reason, now=now)
    return True


def allow_again(tx: Tx, address: str) -> bool:
    """Take the address off the list. False if it was not on it."""
    return letter_store.delete_suppression(tx, fold_email(address))


def find_suppression(tx: Tx, address: str) -> Suppression | None:
    row = letter_store.find_suppression(tx, fold_email(address))
    return None if row is None else _suppression(row)


def list_suppressions(tx: Tx, *, limit: int | None = None) -> Iterator[Suppression]:
    """All of them (or the first `limit`) in order of the addresses, read page by page."""
    after, left = "", limit
    while left is None or left > 0:
        rows = letter_store.list_suppressions(
            tx, after=after, limit=PAGE if left is None else min(PAGE, left)
        )
        yield from map(_suppression, rows)
        if len(rows) < PAGE:
            return
        after = rows[-1]["address_folded"]
        left = None if left is None else left - len(rows)


def _suppression(row: dict[str, object]) -> Suppression:
    return Suppression(row["address_folded"], row["reason"], row["created_at"])  # type: ignore[arg-type]
