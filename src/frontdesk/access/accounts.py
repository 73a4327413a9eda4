"""Accounts: the customers whose plans and members these are."""

from dataclasses import dataclass
from datetime import datetime

from frontdesk.access import store
from frontdesk.db import Tx
from frontdesk.errors import NotFound


@dataclass(frozen=True, slots=True)
class Account:
    id: int
    name: str
    created_at: datetime


def create_account(tx: Tx, *, name: str, now: datetime) -> Account:
    return Account(store.insert_account(tx, name, now=now), name, now)


def list_accounts(tx: Tx) -> list[Account]:
    return [Account(*row) for row in store.select_accounts(tx)]


def get_account(tx: Tx, account_id: int) -> Account:
    """Raises NotFound."""
    rows = store.select_accounts(tx, account_id)
    if not rows:
        raise NotFound("There is no such account.")
    return Account(*rows[0])
