"""Lifts suppressions, by why the address is on the list and by who asks.

A bounce may be lifted when the mailbox works again, a complaint and an operator's own entry by
operators only, an unsubscription by nobody (docs/invitations.md, "Suppress an address").
"""

from collections.abc import Collection

from frontdesk import codes
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.invitations.model import LiftedSuppression, Suppression, SuppressionReason
from frontdesk.invitations.store import suppressions
from frontdesk.reach import Reach
from frontdesk.text import fold_email

# An address has an entry for everybody by each reason, and one for each account that the person
# unsubscribed from.
MOST_ENTRIES = 1000

_UNSUBSCRIBED = (
    "The person unsubscribed. Nobody can lift that: not the account, not an operator. The links of "
    "the mails that they have still work; a new mail needs another address of theirs."
)
_NEEDS_OPERATOR = (
    "The reader complained, or an operator blocked the address. Only an operator can lift that."
)


def unsuppress(
    tx: Tx, reach: Reach, address: str, *, may_lift: Collection[SuppressionReason]
) -> LiftedSuppression:
    """Lift the reasons for which the address is on the list, in any spelling, where the caller may.

    `may_lift`: LIFTED_BY_SUPPORT or LIFTED_BY_OPERATORS; the door decides it. With the reach of an
    account, only what its own mail has caused: the answer about another account's is that of an
    address that is not on the list.

    Raises NotFound if the address is not on the list; FrontdeskError `unsubscribed` or
    `needs_operator` if nothing of it may be lifted. Then nothing has changed.
    """
    folded = fold_email(address)
    found = suppressions.list_suppressions(tx, reach, limit=MOST_ENTRIES, address=folded)
    if not found:
        raise NotFound("address", "The address is not on the suppression list.")
    lifted = frozenset(each.reason for each in found).intersection(may_lift)
    left = [each for each in found if each.reason not in lifted]
    if not lifted:
        raise _refusal(left)
    suppressions.lift(tx, reach, folded, lifted)
    return LiftedSuppression(lifted, left)


def _refusal(left: Collection[Suppression]) -> FrontdeskError:
    if all(each.reason is SuppressionReason.UNSUBSCRIBE for each in left):
        return FrontdeskError(_UNSUBSCRIBED, code=codes.operators.UNSUBSCRIBED)
    return FrontdeskError(_NEEDS_OPERATOR, code=codes.operators.NEEDS_OPERATOR)
