"""What stands around each page of the console: the places that the user may see, the account, the
user, the time zone; and the headers that every page has.
"""

from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import Any, NamedTuple

from markupsafe import Markup

from frontdesk.clock import find_time_zone
from frontdesk.config import Environment
from frontdesk.console.assets import ICON_PATH, SCRIPT_PATH
from frontdesk.console.times import Times
from frontdesk.console.visit import Visit
from frontdesk.users.model import Right
from frontdesk.web.page import Frame, page_response, page_template
from frontdesk.web.response import NO_STORE, Header, Response

PACKAGE = "frontdesk.console"
_HEADERS: tuple[Header, ...] = (
    NO_STORE,
    (b"referrer-policy", b"same-origin"),  # with no-referrer our own forms would have no Origin
    (b"x-robots-tag", b"noindex"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Place(NamedTuple):
    """A link of the rail."""

    name: str
    path: str
    is_current: bool


ACCOUNTS = "/console/accounts"
ACCOUNTS_OF_ALL = "/console/system/accounts"
# Name, right and path of the places of the installation.
_OF_INSTALLATION = (
    ("System", Right.SYSTEM, "/console/system"),
    ("Users", Right.SYSTEM, "/console/system/users"),
    ("Trail of all", Right.TRAIL, "/console/trail"),
)
# Name, right and path of the places of an account.
_OF_ACCOUNT = (
    ("Files", Right.FILES_READ, "files"),
    ("People", Right.PEOPLE_FIND, "people"),
    ("Now", Right.FILES_READ, "now"),
    ("Account", Right.ACCOUNT_MANAGE, "account"),
    ("Trail", Right.TRAIL, "trail"),
)


def page(
    visit: Visit,
    title: str,
    content: Markup,
    *,
    status: int = 200,
    headers: tuple[Header, ...] = (),
) -> Response:
    """A page of the console with its frame. The title has no value of a person."""
    return page_response(
        f"{title} · frontdesk",
        content,
        status=status,
        frame=Frame(_around(visit), SCRIPT_PATH, ICON_PATH, (*_HEADERS, *headers)),
    )


def show(
    visit: Visit,
    title: str,
    template: str,
    *,
    status: int = 200,
    headers: tuple[Header, ...] = (),
    **values: Any,
) -> Response:
    """A page of a template in `console/pages`. It gets `visit`, `times` and `title` besides its
    values.
    """
    content = page_template(PACKAGE, template).render(
        visit=visit, times=times_of(visit), title=title, **values
    )
    return page(visit, title, Markup(content), status=status, headers=headers)  # noqa: S704 # rendered with autoescape


def go_to(path: str, *headers: Header) -> Response:
    """Lead the browser on by GET, after a form has done its work."""
    return Response(303, b"", ((b"location", path.encode("ascii")), *_HEADERS, *headers))


def times_of(visit: Visit) -> Times:
    """Times as this user reads them."""
    named = None if visit.session is None else visit.session.user.time_zone
    zone = None if named is None else find_time_zone(named)
    return Times(zone or UTC, visit.now)


def _around(visit: Visit) -> Markup:
    session = visit.session
    config = visit.app.config
    text = page_template(PACKAGE, "frame.html").render(
        places=list(_places(visit)) if session is not None else [],
        session=session,
        account_text=visit.account_text,
        form_token=visit.form_token,
        zone=times_of(visit).zone_text,
        seconds_left=0 if session is None else _seconds(session.idle_until - visit.now),
        is_sandbox=config.environment is Environment.SANDBOX,
    )
    return Markup(text)  # noqa: S704 # rendered with autoescape


def _seconds(span: timedelta) -> int:
    return max(0, int(span.total_seconds()))


def _places(visit: Visit) -> Iterator[Place]:
    """The places that a role of the user allows. The one that holds this page is current; where
    places hold each other, the innermost.
    """
    here = visit.request.path
    allowed = list(_allowed(visit))
    holding = (path for _, path in allowed if here == path or here.startswith(path + "/"))
    current = max(holding, key=len, default="")
    for name, path in allowed:
        yield Place(name, path, path == current)


def _allowed(visit: Visit) -> Iterator[tuple[str, str]]:
    """Name and path of the places of the account of this page, or of the user's own; for a user of
    the installation also of those of the installation.
    """
    user = visit.user
    account_id = visit.account_id if visit.account_id is not None else user.account_id
    if account_id is not None:
        for name, right, place in _OF_ACCOUNT:
            if user.may(right, account_id):
                yield name, f"{ACCOUNTS}/{account_id}/{place}"
    if user.is_of_installation:
        # Operators see what each account has; the others the accounts that they reach.
        yield "Accounts", ACCOUNTS_OF_ALL if user.may(Right.SYSTEM, None) else ACCOUNTS
        for name, right, path in _OF_INSTALLATION:
            if user.may(right, None):
                yield name, path
