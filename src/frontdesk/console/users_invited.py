"""Invitations of users into an account, or into the installation: make one, list those that wait,
withdraw. That an e-mail is taken is said to the holder of the link only.
"""

from collections.abc import Mapping
from functools import partial

from frontdesk.console import frame
from frontdesk.console.account_parts import Shown, change, number_in_form, reveal
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.users import link_text, roles_of, typed_accounts, typed_roles
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.users import directory, links
from frontdesk.users.model import NewUser, Right, UserInvitation
from frontdesk.users.once import new_number
from frontdesk.web.response import Response

PAGES = Pages()

_OF_ACCOUNT = "/console/accounts/{account_id}/account/invitations"
_OF_INSTALLATION = "/console/system/invitations"
PAGE = 50
_LONGEST_EMAIL = 254


@PAGES.get(_OF_ACCOUNT, for_=Right.ACCOUNT_MANAGE)
@PAGES.get(_OF_INSTALLATION, for_=Right.SYSTEM)
async def show_invitations(visit: Visit) -> Response:
    """Show the form of an invitation, and those that wait to be used."""
    return await _page(visit)


async def _page(visit: Visit, message: str = "", status: int = 200) -> Response:
    before_id = visit.number("before")

    def read(tx: Tx) -> tuple[list[UserInvitation], Mapping[str, str]]:
        found = links.list_invitations_of_home(
            tx,
            visit.account_id,
            now=visit.now,
            before_id=before_id or directory.LAST,
            limit=PAGE + 1,
        )
        return found, names_of(tx, {each.invited_by for each in found}, visit.reach, visit.user)

    found, names = await visit.app.ask(read)
    page = found[:PAGE]
    place = _place(visit)
    return frame.show(
        visit,
        "Invitations of users",
        "account/invitations.html",
        status=status,
        invitations=page,
        names=names,
        roles=roles_of(visit),
        place=place,
        first=None if before_id is None else place,
        next=f"{place}?before={page[-1].id}" if len(found) > len(page) else None,
        message=message,
        typed=visit.form.fields,
        number=new_number(),
    )


@PAGES.post(_OF_ACCOUNT, for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION, for_=Right.SYSTEM)
async def invite(visit: Visit) -> Response:
    """Make an invitation. Its link is in this answer only."""

    def make(tx: Tx) -> Shown:
        email = visit.form.text("email", longest=_LONGEST_EMAIL)
        named = typed_accounts(visit) if visit.account_id is None else None
        accounts = None if named is None else frozenset(named)
        new = NewUser(email, visit.account_id, typed_roles(visit), accounts)
        link = links.invite_user(tx, new, visit.requester)
        until = frame.times_of(visit).minute(link.expires_at)
        return Shown(
            "An invitation",
            {"For": email, "Link": link_text(visit, links.INVITATION_PATH, link.secret)},
            f"It works once, until {until}. Give it to this person alone: whoever has it becomes the "
            "user.",
            _place(visit),
        )

    return await reveal(visit, make, show=partial(_page, visit))


@PAGES.post(_OF_ACCOUNT + "/withdraw", for_=Right.ACCOUNT_MANAGE)
@PAGES.post(_OF_INSTALLATION + "/withdraw", for_=Right.SYSTEM)
async def withdraw(visit: Visit) -> Response:
    """End an invitation that waits."""
    invitation_id = number_in_form(visit, "invitation")

    def work(tx: Tx) -> None:
        links.get_of_home(tx, visit.account_id, invitation_id)
        links.withdraw_invitation(tx, visit.reach, invitation_id, visit.requester)

    return await change(visit, work, show=partial(_page, visit), after=_place(visit))


def _place(visit: Visit) -> str:
    if visit.account_id is None:
        return _OF_INSTALLATION
    return f"/console/accounts/{visit.account_id}/account/invitations"
