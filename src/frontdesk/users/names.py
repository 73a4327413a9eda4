"""The names of users: the one that others see, and those that a password must not be made of."""

from frontdesk import codes
from frontdesk.access.accounts import get_account
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.text import Rejected, parse_text
from frontdesk.users.model import NAME_LENGTH, User


def account_names(tx: Tx, account_id: int | None) -> list[str]:
    """The name of the account; none for the installation."""
    return [] if account_id is None else [get_account(tx, account_id).name]


def names_of(tx: Tx, user: User) -> list[str]:
    """The user's e-mail and name, and the name of the account."""
    return [user.email, user.name, *account_names(tx, user.account_id)]


def read_name(name: str) -> str:
    """The name that others see. Raises Invalid (field `name`)."""
    try:
        text = parse_text(name, limit=NAME_LENGTH)
    except Rejected as rejected:
        raise Invalid([Fault("name", rejected.code, rejected.message)]) from None
    if not text:
        raise Invalid([Fault("name", codes.faults.REQUIRED, "must not be blank")])
    return text
