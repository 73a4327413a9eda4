"""Which roles go together, and with which account."""

from collections.abc import Collection

from frontdesk import codes
from frontdesk.access.accounts import get_account
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.users.model import ACCOUNT_ROLES, Role

MOST_NAMED_ACCOUNTS = 100


def check_roles(
    tx: Tx, account_id: int | None, roles: Collection[Role], named_accounts: Collection[int] | None
) -> None:
    """Raises Invalid (field `roles`, `accounts`) unless there is a role, each is one of an account
    for a user of an account and one of the installation for any other user, and accounts are named
    for support only. Raises NotFound for a named account that does not exist.
    """
    if not roles:
        raise _wrong("roles", "must be one role or more")
    if account_id is not None and not ACCOUNT_ROLES.issuperset(roles):
        raise _wrong("roles", "must be viewer, editor, approver or admin for a user of an account")
    if account_id is None and not ACCOUNT_ROLES.isdisjoint(roles):
        rule = "must be support, operator or auditor for a user of the installation"
        raise _wrong("roles", rule)
    if named_accounts is None:
        return
    if Role.SUPPORT not in roles:
        raise _wrong("accounts", "must be left out: accounts are named for the role support only")
    if not 1 <= len(named_accounts) <= MOST_NAMED_ACCOUNTS:
        rule = f"must be 1 to {MOST_NAMED_ACCOUNTS} accounts; without any, support sees every one"
        raise _wrong("accounts", rule)
    for each in sorted(named_accounts):
        get_account(tx, each)


def _wrong(field: str, rule: str) -> Invalid:
    return Invalid([Fault(field, codes.operators.WRONG_ROLES, rule)])
