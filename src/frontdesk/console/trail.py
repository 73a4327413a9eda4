"""Trail: who did what, the newest first. An account's admin reads the own account's, an auditor every
one. Each page that is read is an entry itself.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk import access, codes
from frontdesk.audit.actions import Subject, subject_of
from frontdesk.audit.actors import user_id_of
from frontdesk.console import frame
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.rules import rules_text
from frontdesk.console.trail_words import Around, EntryWords, describe_entry
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.disclosures.looks import LAST, EntriesAbout
from frontdesk.disclosures.trail import (
    read_trail,
    read_trail_about_file,
    read_trail_about_person,
    read_trail_by_user,
)
from frontdesk.errors import Fault, Invalid, NotFound
from frontdesk.users.directory import find_users, list_home
from frontdesk.users.model import Right, User
from frontdesk.web.response import Response

PAGES = Pages()

MOST_USERS = 200  # to select from, the newest
_SUBJECTS = ("user", "person", "file")


class TrailSelection(NamedTuple):
    """Whose entries the address asks for: at most one of the three, and the page."""

    user: int | None
    person: int | None
    file: int | None
    before_id: int

    @property
    def query(self) -> str:
        """The selection without its page, for an address: "" or `user=12`."""
        of = zip(_SUBJECTS, self[:3], strict=True)
        return "".join(f"{name}={id_}" for name, id_ in of if id_ is not None)


_EVERYTHING = TrailSelection(None, None, None, LAST)
_NOTHING = "There is no user, person or file of this number here."


@PAGES.get("/console/accounts/{account_id}/trail", for_=Right.TRAIL)
async def show_account(visit: Visit) -> Response:
    """Show an account's entries: all, by one of its users, about a person, about a file."""
    return await _page(visit, f"/console/accounts/{visit.account}/trail")


@PAGES.get("/console/trail", for_=Right.TRAIL)
async def show_installation(visit: Visit) -> Response:
    """Show the entries of all accounts and of the installation, selected as those of an account."""
    return await _page(visit, "/console/trail")


async def _page(visit: Visit, path: str) -> Response:
    if visit.account_id is not None:  # the page is an entry of the account
        visit.app.refuse_used_up_trail(visit.account_id)
    try:
        selection = _read_selection(visit)
        return await _list_page(visit, path, selection)
    except Invalid as error:
        return await _empty_page(visit, path, rules_text(error), 422)
    except NotFound:
        return await _empty_page(visit, path, _NOTHING, 404)


async def _empty_page(visit: Visit, path: str, message: str, status: int) -> Response:
    """The forms, and why there are no entries."""
    users = await visit.app.ask(lambda tx: _users(tx, visit))
    return _show(visit, path, _EVERYTHING, users, status=status, message=message)


async def _list_page(visit: Visit, path: str, selection: TrailSelection) -> Response:
    def read(tx: Tx) -> tuple[list[EntryWords], int | None, Sequence[User]]:
        found = _entries(tx, visit, selection)
        users = _users(tx, visit)
        around = _around(tx, visit, path, found.entries)
        return [describe_entry(entry, around) for entry in found.entries], found.before_id, users

    rows, before_id, users = await visit.app.write(read)
    query = selection.query
    next_page = ""
    if before_id is not None:
        next_page = f"{path}?{query}&before={before_id}" if query else f"{path}?before={before_id}"
    is_first = selection.before_id == LAST
    first_page = "" if is_first else f"{path}?{query}" if query else path
    return _show(
        visit, path, selection, users, rows=rows, first_page=first_page, next_page=next_page
    )


def _show(
    visit: Visit, path: str, selection: TrailSelection, users: Sequence[User], **values: Any
) -> Response:
    """The page of a selection. `values`: its entries and the addresses of other pages; or the status
    and why there are none.
    """
    return frame.show(
        visit,
        _title(selection),
        "trail/list.html",
        users=users,
        most_users=MOST_USERS,
        path=path,
        selection=selection,
        last=LAST,
        **({"message": "", "rows": [], "first_page": "", "next_page": ""} | values),
    )


def _users(tx: Tx, visit: Visit) -> list[User]:
    """The users to choose from; ended ones too: what they did stays."""
    return list_home(tx, visit.account_id, with_ended=True, limit=MOST_USERS)


def _entries(tx: Tx, visit: Visit, selection: TrailSelection) -> EntriesAbout:
    who = visit.requester
    reach = visit.reach
    before_id = selection.before_id
    if selection.user is not None:
        return read_trail_by_user(tx, who, reach, selection.user, before_id=before_id)
    if selection.person is not None:
        return read_trail_about_person(tx, who, reach, selection.person, before_id=before_id)
    if selection.file is not None:
        return read_trail_about_file(tx, who, reach, selection.file, before_id=before_id)
    return read_trail(tx, who, reach, before_id=before_id)


def _around(tx: Tx, visit: Visit, path: str, entries: Collection[Mapping[str, Any]]) -> Around:
    actors = {str(entry["actor"]) for entry in entries}
    named = {id_ for id_ in map(user_id_of, actors) if id_ is not None}
    named |= {
        int(entry["subject_id"])
        for entry in entries
        if entry["subject_id"] is not None and subject_of(str(entry["action"])) is Subject.USER
    }
    users = find_users(tx, named)
    own = {id_ for id_, user in users.items() if visit.reach.covers(user.account_id)}
    is_of_all = visit.account_id is None
    account_ids = {entry["account_id"] for entry in entries} - {None}
    return Around(
        path=path,
        reader=visit.user,
        names=names_of(tx, actors, visit.reach, visit.user, users=users),
        shows_user=lambda user_id: is_of_all or user_id in own,
        accounts=access.find_account_names(tx, account_ids) if is_of_all else {},
    )


def _read_selection(visit: Visit) -> TrailSelection:
    """The selection in the address. Raises Invalid."""
    before_id = visit.number("before")
    selection = TrailSelection(
        user=visit.number("user"),
        person=visit.number("person"),
        file=visit.number("file"),
        before_id=LAST if before_id is None else before_id,
    )
    if len([id_ for id_ in selection[:3] if id_ is not None]) > 1:
        rule = "choose a user, a person or a file"
        raise Invalid([Fault("user", codes.faults.NOT_ALLOWED, rule)])
    return selection


def _title(selection: TrailSelection) -> str:
    if selection.user is not None:
        return f"Trail of user {selection.user}"
    if selection.person is not None:
        return f"Who looked at person {selection.person}"
    if selection.file is not None:
        return f"Trail of file {selection.file}"
    return "Trail"
