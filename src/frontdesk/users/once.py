"""Forms that show a secret do so once: sent again (a reload, a second press) they make nothing.

Each such form has a random number, which is noted in the transaction that makes the secret. It is kept
for half a year: a form may be sent again from a window that was left open, and taken up after
another sign-in.
"""

import re
import secrets
from datetime import datetime

from frontdesk import codes
from frontdesk.access.callers import digest
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.users import store

_NUMBER = re.compile(r"[A-Za-z0-9_-]{20,64}")
_NUMBER_BYTES = 18


class ShownAlready(FrontdeskError, kind=Kind.CONFLICT, code=codes.operators.SHOWN_ALREADY):
    """The form has shown its secret before."""

    def __init__(self) -> None:
        super().__init__(
            "This form was sent before, and its secret was shown then. It can't be shown again, and "
            "nothing new was made. Roll it if nobody has kept it."
        )


def new_number() -> str:
    """The number of a form that will show a secret."""
    return secrets.token_urlsafe(_NUMBER_BYTES)


def use_form(tx: Tx, user_id: int, number: str, *, now: datetime) -> None:
    """Let the user's form with this number show its secret, in the transaction that makes it. Raises
    ShownAlready for one that did; Invalid for a text that is no number of a form.
    """
    if not _NUMBER.fullmatch(number):
        raise Invalid([Fault("number", codes.faults.REQUIRED, "must be that of a form of ours")])
    store.lock_user(tx, user_id)
    if not store.use_form(tx, user_id, digest(number), now):
        raise ShownAlready
