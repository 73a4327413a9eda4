"""The words of the trail: who did what, about what, and the parts of an entry's detail that are numbers
and words of our own.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from frontdesk.audit.actions import Subject, subject_of, words_of
from frontdesk.audit.actors import user_id_of
from frontdesk.users.model import Right, User

MOST_SHOWN = 10  # of a list in a detail
LONGEST_SHOWN = 64  # letters
NETWORK_LETTERS = 8  # of the keyed hash: enough to see that two entries are of one network

# The parts of a detail that are shown, with their words. Others are not: an account is told nothing of
# other accounts (`held_by`), and what an operator has typed may be anything (`reference`).
_SHOWN: Mapping[str, str] = {
    "fields": "fields",
    "reason": "reason",
    "reasons": "reasons",
    "case": "case",
    "field": "asked for",
    "result": "it",
    "count": "how many",
    "people": "people",
    "found": "found",
    "dry_run": "only tried:",
    "counts": "result",
    "roles": "roles",
    "before": "before",
    "accounts": "accounts",
    "leaked": "every other secret ended:",
    "left": "codes left",
    "step": "step",
    "undoes": "undo of file",
    "size_bytes": "bytes",
    "client_id": "client_id",
    "client_ids": "client_ids",
    "scopes": "scopes",
    "tokens": "tokens",
    "secret_id": "secret",
    "sessions": "sessions",
    "other_id": "other person",
    "cause": "cause",
    "immediate": "an hour",
    "time_zone": "time zone",
    "second_approver": "second approver",
    "most_members": "most members",
    "most_percent": "most percent",
    "stored_bytes_per_day": "stored bytes a day",
    "file_bytes_per_day": "bytes of files a day",
    "taken_today": "values today",
    "event_id": "event",
    "entries": "entries",
    "days": "days",
    "person": "of person",
    "user": "of user",
    "file": "of file",
    "network": "network",
}


class Link(NamedTuple):
    """A text, and where it leads; "" for nowhere."""

    text: str
    path: str = ""


class EntryWords(NamedTuple):
    """An entry of the trail as a person reads it. `account` is there where entries of several accounts
    are.
    """

    at: datetime
    actor: Link
    action: str
    subject: Link
    account: Link
    detail: str
    request_id: str


class Around(NamedTuple):
    """What a page of entries is read in: its own address, the reader, the names of the actors, and
    whether the page of what a user did can be opened here.
    """

    path: str
    reader: User
    names: Mapping[str, str]
    shows_user: Callable[[int], bool]
    accounts: Mapping[int, str]


def describe_entry(entry: Mapping[str, Any], around: Around) -> EntryWords:
    """The words of a row of the trail by column."""
    account_id = entry["account_id"]
    name = around.accounts.get(account_id, "")
    of_account = f"/console/accounts/{account_id}/trail" if name else ""
    return EntryWords(
        at=entry["at"],
        actor=_actor(str(entry["actor"]), around),
        action=words_of(str(entry["action"])),
        subject=_subject(entry, around),
        account=Link(name, of_account),
        detail=describe_detail(entry["detail"]),
        request_id=str(entry["request_id"]),
    )


def _actor(actor: str, around: Around) -> Link:
    user_id = user_id_of(actor)
    if user_id is not None and around.shows_user(user_id):
        return Link(around.names.get(actor, actor), f"{around.path}?user={user_id}")
    login = actor.removeprefix("cli:")
    if login != actor and around.reader.is_of_installation:
        return Link(f"{login}, at the command line")
    return Link(around.names.get(actor, actor))


def _subject(entry: Mapping[str, Any], around: Around) -> Link:
    """The subject, leading to its page where the reader may go there, else to what the trail has of
    it.
    """
    kind = subject_of(str(entry["action"]))
    id_ = entry["subject_id"]
    if kind is None or id_ is None:
        return Link("")
    account_id = entry["account_id"]
    return Link(f"{kind.value} {id_}", _path_of(kind, id_, account_id, around))


def _path_of(kind: Subject, id_: int, account_id: int | None, around: Around) -> str:
    place = f"/console/accounts/{account_id}"
    may = around.reader.may
    if kind is Subject.USER:
        return f"{around.path}?user={id_}" if around.shows_user(id_) else ""
    if account_id is None:
        return ""
    if kind is Subject.PERSON:
        if may(Right.PEOPLE_CHECK, account_id):
            return f"{place}/people/{id_}"
        return f"{around.path}?person={id_}"
    if kind is Subject.FILE:
        is_reader = may(Right.FILES_READ, account_id)
        return f"{place}/files/{id_}" if is_reader else f"{around.path}?file={id_}"
    if kind is Subject.PLAN and may(Right.FILES_READ, account_id):
        return f"{place}/now/{id_}"
    return ""


def describe_detail(detail: Mapping[str, Any] | None) -> str:
    """The parts that are shown: `reason caller, case 4711`. "" without any."""
    if not detail:
        return ""
    parts = ((label, _value_text(name, detail.get(name))) for name, label in _SHOWN.items())
    return ", ".join(f"{label} {text}" for label, text in parts if text)


def _value_text(name: str, value: object) -> str:
    if isinstance(value, Mapping):
        numbers = ((word, count) for word, count in value.items() if isinstance(count, int))
        return ", ".join(f"{count:,} {word}" for word, count in list(numbers)[:MOST_SHOWN] if count)
    if isinstance(value, list):
        more = ", …" if len(value) > MOST_SHOWN else ""
        return " ".join(str(each)[:LONGEST_SHOWN] for each in value[:MOST_SHOWN]) + more
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    length = NETWORK_LETTERS if name == "network" else LONGEST_SHOWN
    return str(value)[:length]
