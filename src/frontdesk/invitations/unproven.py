"""Addresses that support entered for a member without proof. The link of an invitation is the
member's registration, so none goes to such an address before somebody vouches for it.

The addresses are kept by member, not with the invitation: one may leave the member and come back, by a
file, the undo of a file, or another call (docs/decisions/0179).
"""

from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError
from frontdesk.invitations.store import unproven as store
from frontdesk.text import fold_email

MOST_UNPROVEN = 20  # addresses of a member


class TooManyUnproven(FrontdeskError, kind=Kind.CONFLICT):
    """The member has MOST_UNPROVEN unproven addresses. None is dropped for a further one: a mail
    could go to it later.
    """

    def __init__(self) -> None:
        super().__init__(
            f"Support has entered {MOST_UNPROVEN} addresses of this person without proof. A further one "
            "needs three answers that match, or an editor of the account."
        )


def mark_unproven(tx: Tx, member_id: int, address: str) -> None:
    """Send no invitation of the locked member to this address until somebody vouches for it. Raises
    TooManyUnproven.
    """
    folded = fold_email(address)
    known = store.list_unproven(tx, [member_id])
    if (member_id, folded) in known:
        return
    if len(known) >= MOST_UNPROVEN:
        raise TooManyUnproven
    store.add_unproven(tx, member_id, folded)


def vouch_for(tx: Tx, member_id: int, address: str) -> None:
    """Somebody vouches for this address of the member, and for no other."""
    store.delete_unproven(tx, member_id, fold_email(address))


def is_unproven(tx: Tx, member_id: int, address_folded: str | None) -> bool:
    """Whether support entered this address of the member, and nobody has vouched for it."""
    return (member_id, address_folded) in store.list_unproven(tx, [member_id])
