"""What the pages of an account's admin share: a fresh second factor, secrets that are shown once, and
errors of a form as sentences.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from frontdesk import codes
from frontdesk.console import frame
from frontdesk.console.rules import rules_text
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Conflict, Fault, FrontdeskError, Invalid, NotFound
from frontdesk.users.once import ShownAlready, use_form
from frontdesk.users.sessions import refuse_unless_fresh
from frontdesk.web.response import Response

LONGEST_NAME = 100
_OVERTAKEN = "This has ended while the page was open. Nothing was changed."
_NO_ACCOUNT = codes.operators.NO_SUCH["account"]  # of those that are named for support
LONGEST_DAYS = 3650  # of a secret, as at the command line

# Shows a page again with what is wrong, and the status.
Show = Callable[[str, int], Awaitable[Response]]


class Shown(NamedTuple):
    """What an answer shows once: a title without a value of a person, the texts by their labels, what
    they are good for, and the page to go on to.
    """

    title: str
    texts: Mapping[str, str]
    sentence: str
    after: str


async def reveal(visit: Visit, make: Callable[[Tx], Shown], *, show: Show) -> Response:
    """Make a secret and show it in this answer only. The same form again makes nothing; `show` as for
    `change`. Raises NotFresh, and NotFound if there is no such thing at all.
    """
    refuse_unless_fresh(visit.own_session, now=visit.now)
    number = visit.form.text("number")
    user_id = visit.user.id

    def work(tx: Tx) -> Shown:
        use_form(tx, user_id, number, now=visit.now)
        return make(tx)

    try:
        shown = await visit.app.write(work)
    except ShownAlready as error:
        return frame.show(
            visit, "Shown already", "account/shown.html", status=409, sentence=error.detail
        )
    except (Invalid, NotFound, Conflict) as error:
        return await _refused(error, show)
    return frame.show(visit, shown.title, "account/secret.html", shown=shown)


async def change(visit: Visit, work: Callable[[Tx], object], *, show: Show, after: str) -> Response:
    """Do what a form asks for and lead on; `show` shows the page again with what is wrong, and raises
    NotFound if there is no such thing at all. Raises NotFresh.
    """
    refuse_unless_fresh(visit.own_session, now=visit.now)
    try:
        await visit.app.write(work)
    except (Invalid, NotFound, Conflict) as error:
        return await _refused(error, show)
    return frame.go_to(after)


async def _refused(error: FrontdeskError, show: Show) -> Response:
    if isinstance(error, Invalid) or error.code == _NO_ACCOUNT:
        return await show(rules_text(error), 422)
    return await show(_OVERTAKEN if isinstance(error, NotFound) else rules_text(error), 409)


def days_of(visit: Visit) -> timedelta | None:
    """After how many days a new secret ends; None for never. Raises Invalid."""
    text = visit.form.text("days", longest=4)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= LONGEST_DAYS):
        rule = f"must be a number of days from 1 to {LONGEST_DAYS}, or empty"
        raise Invalid([Fault("days", codes.faults.NOT_ALLOWED, rule)])
    return timedelta(days=int(text))


def number_in_form(visit: Visit, name: str) -> int:
    """The id in a hidden field; 0, which nothing has, for a text that is none."""
    return visit.form.number(name, longest=18) or 0


def chosen(visit: Visit, prefix: str) -> list[str]:
    """The words whose check boxes are on: the boxes are named by the prefix and the word."""
    names = visit.form.fields
    return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))
