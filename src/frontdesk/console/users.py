"""Users of the console, of an account (for its admin) and of the installation (for operators): list,
roles, lost passwords and factors, sessions, the end.

The same handlers serve both homes: that of the path's account, else the installation.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from frontdesk import access, codes
from frontdesk.access.model import ApiClient
from frontdesk.console import frame
from frontdesk.console.account_parts import Shown, change, chosen, number_in_form, reveal
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.users import directory, links, sessions
from frontdesk.users.factors import count_recovery_codes
from frontdesk.users.model import Right, Role, Session, User
from frontdesk.users.once import new_number
from frontdesk.users.roles import MOST_NAMED_ACCOUNTS
from frontdesk.web.response import Response

PAGES = Pages()

_OF_ACCOUNT = "/console/accounts/{account_id}/account/users"
_OF_INSTALLATION = "/console/system/users"
ACCOUNT_ROLES = {
    Role.VIEWER: "sees files, their states and faults, and the waits",
    Role.EDITOR: "prepares files; finds, opens and corrects people; sends invitations again",
    Role.APPROVER: "approves held files; finds and opens people",
    Role.ADMIN: "looks after clients, webhooks and users, and reads the account's trail",
}
INSTALLATION_ROLES = {
    Role.SUPPORT: "finds and opens people, corrects e-mails, sends invitations again",
    Role.OPERATOR: "sees System and every account's files; looks after these users",
    Role.AUDITOR: "reads every trail; finds people",
}
_LONGEST_ID = 18


class UserView(NamedTuple):
    """A user with live sessions, the clients whose secret the user has seen, and the inviter's name."""

    user: User
    sessions: list[Session]
    codes_left: int
    seen: list[ApiClient]
    inviter: str


@PAGES.get(_OF_ACCOUNT, for_=Right.ACCOUNT_MANAGE)
@PAGES.get(_OF_INSTALLATION, for_=Right.SYSTEM)
async def show_users(visit: Visit) -> Response:
    """List the users of the account, or of the installation."""
    before_id = visit.number("before")

    def read(tx: Tx) -> tuple[list[User], Mapping[str, str]]:
        found = directory.list_home(
            tx, visit.account_id, before_id=before_id or directory.LAST, limit=directory.PAGE + 1
        )
        return found, names_of(tx, {each.invited_by for each in found}, visit.reach, visit.user)

    found, names = await visit.app.ask(read)
    page = found[: directory.PAGE]
    return frame.show(
        visit,
        "Users",
        "account/users.html",
        users=page,
        names=names,
        place=place_of(visit),
        first=place_of(visit) if before_id else None,
        next=f"{place_of(visit)}?before={page[-1].id}" if len(found) > len(page) else None,
    )


@PAGES.get(_OF_ACCOUNT + "/{user_id}", for_=Right.ACCOUNT_MANAGE)
@PAGES.get(_OF_INSTALLATION + "/{user_id}", for_=Right.SYSTEM)
async def show_user(visit: Visit) -> Response:
    """Show a user: roles and since when, the second factor, sessions, the secrets seen."""
    return await _user_page(visit)


async def _user_page(visit: Visit, message: str = "", status: int = 200) -> Response:
    user_id = _id(visit)

    def read(tx: Tx) -> UserView:
        user = directory.get_of_home(tx, visit.account_id, user_id)
        seen = set(directory.clients_seen(tx, user_id))
        known = access.list_live_clients(tx, visit.reach) if seen else []
        return UserView(
            user,
            sessions.list_sessions(tx, user_id, now=visit.now),
            count_recovery_codes(tx, user_id),
            [each for each in known if each.client_id in seen],
            names_of(tx, {user.invited_by}, visit.reach, visit.user)[user.invited_by],
        )

    view = await visit.app.ask(read)
    return frame.show(
        visit,
        f"User {view.user.id}",
        "account/user.html",
        status=status,
        view=view,
        roles=roles_of(visit),
        place=place_of(visit),
        message=message,
        typed=visit.form.fields,
        number=new_number(),
    )


@PAGES.post(_OF_ACCOUNT + "/{user_id}/roles", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/{user_id}/roles", for_=Right.SYSTEM)
async def change_roles(visit: Visit) -> Response:
    """Give the user exactly these roles; the user's sessions end."""

    def work(tx: Tx, user_id: int) -> object:
        return directory.change_roles(
            tx,
            visit.reach,
            user_id,
            typed_roles(visit),
            visit.requester,
            named_accounts=typed_accounts(visit),
        )

    return await _change(visit, work)


@PAGES.post(_OF_ACCOUNT + "/{user_id}/reset", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/{user_id}/reset", for_=Right.SYSTEM)
async def make_reset_link(visit: Visit) -> Response:
    """Make a link to another password, in this answer only. The second factor stays."""
    user_id = _id(visit)

    def make(tx: Tx) -> Shown:
        user = directory.get_of_home(tx, visit.account_id, user_id)
        link = links.make_reset_link(tx, visit.reach, user_id, visit.requester)
        until = frame.times_of(visit).minute(link.expires_at)
        return Shown(
            "A link to another password",
            {"For": user.email, "Link": link_text(visit, links.RESET_PATH, link.secret)},
            f"It works once, until {until}. Make sure that you talk to the user; give it to nobody "
            "else.",
            f"{place_of(visit)}/{user_id}",
        )

    return await reveal(visit, make, show=partial(_user_page, visit))


@PAGES.post(_OF_ACCOUNT + "/{user_id}/factor", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/{user_id}/factor", for_=Right.SYSTEM)
async def remove_factor(visit: Visit) -> Response:
    """Remove a lost second factor; the next sign-in says so."""
    return await _change(
        visit,
        lambda tx, user_id: directory.remove_factor(tx, visit.reach, user_id, visit.requester),
    )


@PAGES.post(_OF_ACCOUNT + "/{user_id}/end", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/{user_id}/end", for_=Right.SYSTEM)
async def end_user(visit: Visit) -> Response:
    """End the user for good. The page lists the clients whose secret the user has seen."""
    return await _change(
        visit, lambda tx, user_id: directory.end_user(tx, visit.reach, user_id, visit.requester)
    )


@PAGES.post(_OF_ACCOUNT + "/{user_id}/end-session", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/{user_id}/end-session", for_=Right.SYSTEM)
async def end_session(visit: Visit) -> Response:
    """End one session of the user."""
    session_id = number_in_form(visit, "session")
    return await _change(
        visit, lambda tx, user_id: sessions.end_session(tx, user_id, session_id, visit.requester)
    )


@PAGES.post(_OF_ACCOUNT + "/{user_id}/end-sessions", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/{user_id}/end-sessions", for_=Right.SYSTEM)
async def end_sessions(visit: Visit) -> Response:
    """End every session of the user."""
    return await _change(
        visit, lambda tx, user_id: sessions.end_sessions(tx, visit.reach, user_id, visit.requester)
    )


async def _change(visit: Visit, work: Callable[[Tx, int], object]) -> Response:
    """Change the user of the path, who is one of this home; say on the page why it can't be done."""
    user_id = _id(visit)

    def change_user(tx: Tx) -> None:
        directory.get_of_home(tx, visit.account_id, user_id)
        work(tx, user_id)

    show = partial(_user_page, visit)
    return await change(visit, change_user, show=show, after=f"{place_of(visit)}/{user_id}")


def roles_of(visit: Visit) -> Mapping[Role, str]:
    """The roles that users of this home can have, with what each does."""
    return INSTALLATION_ROLES if visit.account_id is None else ACCOUNT_ROLES


def typed_roles(visit: Visit) -> frozenset[Role]:
    """The roles of the form. Raises Invalid for a word that is no role; which ones fit the home is
    checked where they are given.
    """
    try:
        return frozenset(map(Role, chosen(visit, "role.")))
    except ValueError:
        rule = f"must be of: {', '.join(roles_of(visit))}"
        raise Invalid([Fault("roles", codes.operators.WRONG_ROLES, rule)]) from None


def typed_accounts(visit: Visit) -> list[int] | None:
    """The accounts of a support role, None for every one. Raises Invalid."""
    text = visit.form.text("accounts")
    if not text:
        return None
    words = text.replace(",", " ").split()
    # Commas alone name no account; they must not mean every one.
    is_good = bool(words) and all(
        word.isascii() and word.isdecimal() and len(word) <= _LONGEST_ID for word in words
    )
    if not is_good or len(words) > MOST_NAMED_ACCOUNTS:
        rule = f"must be up to {MOST_NAMED_ACCOUNTS} numbers of accounts, with commas between them"
        raise Invalid([Fault("accounts", codes.operators.WRONG_ROLES, rule)])
    return [int(word) for word in words]


def place_of(visit: Visit) -> str:
    """The list of the users of this home."""
    if visit.account_id is None:
        return _OF_INSTALLATION
    return f"/console/accounts/{visit.account_id}/account/users"


def link_text(visit: Visit, path: str, secret: str) -> str:
    """The whole address of a link, to copy."""
    return f"{visit.app.config.console_origin}{path}{secret}"


def _id(visit: Visit) -> int:
    return visit.id_of("user_id", of="user")
