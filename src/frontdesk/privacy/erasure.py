"""Erases members: every value that is theirs leaves the database, and their ids, times and the fact stay (docs/erasure.md)."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.clock import Clock, system_clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import Conflict, FrontdeskError, NotFound, Unavailable
from frontdesk.files import newest_file, unfinished_files
from frontdesk.files.mentions import ReportPart, erase_mentions, find_mentions
from frontdesk.invitations import hash_suppressions
from frontdesk.invitations.delivery import cancel_of_members
from frontdesk.invitations.model import InvitationStep
from frontdesk.privacy import request_store, store
from frontdesk.privacy.leftovers import note_emptied
from frontdesk.privacy.model import (
    Erasure,
    ErasureCause,
    FilesUnfinished,
    Person,
    UnderLegalHold,
)
from frontdesk.text import fold_email

SEARCHES = 3  # of reports; a member that gets another identifier meanwhile needs another one


class _Mentions:
    """The parts of an account's reports that name one of the identifiers, up to the file that was the newest then."""

    def __init__(self, external_ids: set[str], last_file: int, parts: Sequence[ReportPart]) -> None:
        self.external_ids, self.last_file, self.parts = external_ids, last_file, parts


def find_persons(tx: Tx, external_id: str, account_id: int | None) -> list[Person]:
    """The records with the identifier, those too that an undo withdrew, and those that were merged with them.

    Raises NotFound, and FrontdeskError `several_accounts`.
    """
    found = store.find_by_external_id(tx, external_id, account_id)
    if not found:
        detail = (
            "There is no such eligible member. The external_id counts upper and lower case too, and an erased member has none: "
            "name it by its id."
        )
        raise NotFound("eligible member", detail)
    if len(accounts := {person.account_id for person in found}) > 1:
        named = ", ".join(map(str, sorted(accounts)))
        detail = f"Several accounts have such a member: {named}. Say which with --account."
        raise FrontdeskError(detail, code="several_accounts")
    return store.with_merged(tx, found)


def get_person(tx: Tx, member_id: int) -> Person:
    """The member with this id, erased or not. Raises NotFound."""
    if (person := store.find_person(tx, member_id)) is None:
        raise NotFound("eligible member")
    return person


def find_persons_of(tx: Tx, member_id: int) -> list[Person]:
    """The member with this id, erased or not, and those that were merged with it. Raises NotFound."""
    return store.with_merged(tx, [get_person(tx, member_id)])


def erase_person(
    db: Database,
    persons: Sequence[Person],
    requester: Requester,
    clock: Clock = system_clock,
    *,
    go_on: Callable[[], None] = lambda: None,
) -> list[Erasure]:
    """Erase the records of one person, all of one account, and those merged with them, in one transaction. One that is erased
    already stays as it is.

    The account's reports are searched before that transaction; `go_on` is called between two pages of them and may raise.
    Raises UnderLegalHold, FilesUnfinished, Unavailable, and Conflict when the records keep changing meanwhile.
    """
    persons = db.ask(lambda tx: store.with_merged(tx, persons))
    erased, left = db.ask(lambda tx: _unerased(tx, persons))  # refused before the search, not after it
    if not left:
        return erased
    ids, account_id = {person.member_id for person in persons}, persons[0].account_id
    for _ in range(SEARCHES):
        mentions = _search(db, ids, account_id, go_on)
        # With the present time: an entry that is minutes old when it is added could be missed by an export (0105).
        by = requester._replace(now=clock())
        done = write_alone(db, partial(_erase, persons=persons, requester=by, mentions=mentions))
        if done is not None:
            with suppress(Unavailable):  # then a worker empties it
                db.empty_log()
            return done
    raise Conflict("The member keeps changing. Try again.")


def erase_old(tx: Tx, persons: Sequence[Person], requester: Requester) -> None:
    """Erase members by retention, in the caller's transaction. Their lines in reports stay until those go by themselves.

    None of the members is erased or under legal hold.
    """
    persons = [person for each in persons for person in store.with_merged(tx, [each])]
    store.lock_members(tx, [person.member_id for person in persons])
    _erase_rows(tx, persons, requester, ErasureCause.RETENTION)


def _search(db: Database, ids: Collection[int], account_id: int, go_on: Callable[[], None]) -> _Mentions:
    external_ids = db.ask(lambda tx: store.identifiers(tx, ids))[0]
    last_file = db.ask(lambda tx: newest_file(tx, account_id))
    if not external_ids:
        return _Mentions(external_ids, last_file, ())
    found = find_mentions(db.ask, account_id, external_ids, go_on=go_on)
    return _Mentions(external_ids, last_file, [*found])


def _erase(
    tx: Tx, persons: Sequence[Person], requester: Requester, mentions: _Mentions
) -> list[Erasure] | None:
    """None when the members have got other identifiers since the search."""
    ids, account_id = [person.member_id for person in persons], persons[0].account_id
    store.lock_members(tx, ids)
    erased, left = _unerased(tx, persons)
    if not left:
        return erased
    if not store.identifiers(tx, ids)[0] <= mentions.external_ids:
        return None
    newer = find_mentions(
        lambda question: question(tx), account_id, mentions.external_ids, after_file=mentions.last_file
    )
    erase_mentions(tx, {*mentions.parts, *newer}, mentions.external_ids)
    _erase_rows(tx, left, requester, ErasureCause.REQUEST)
    made = [Erasure(*person, requester.now, ErasureCause.REQUEST, is_new=True) for person in left]
    return [*erased, *made]


def _unerased(tx: Tx, persons: Sequence[Person]) -> tuple[list[Erasure], list[Person]]:
    """The erasures that were before, and the persons that are left. Raises UnderLegalHold, FilesUnfinished."""
    ids = [person.member_id for person in persons]
    erased = store.find_erasures(tx, ids)
    before = {erasure.member_id for erasure in erased}
    left = [person for person in persons if person.member_id not in before]
    if left and (holds := store.find_holds(tx, ids)):
        raise UnderLegalHold(holds[0])
    if left and (unfinished := unfinished_files(tx, persons[0].account_id)):
        raise FilesUnfinished(unfinished)
    return erased, left


def _erase_rows(tx: Tx, persons: Sequence[Person], requester: Requester, cause: ErasureCause) -> None:
    ids = [person.member_id for person in persons]
    hash_suppressions(tx, {fold_email(address) for address in store.identifiers(tx, ids)[1]})
    cancel_of_members(tx, ids, now=requester.now, reason=InvitationStep.ERASED)
    store.insert_erasures(tx, persons, requester, cause)  # lets the history lose its values
    store.empty_histories(tx, ids)
    store.empty_invitations(tx, store.invitations_of(tx, ids))
    store.empty_members(tx, ids)
    store.delete_distinct(tx, ids)
    request_store.delete_erasure_requests(tx, ids)
    request_store.delete_export_requests(tx, ids)
    note_emptied(tx)
    entries = [
        requester.entry("member.erased", person.account_id, person.member_id, cause=cause)
        for person in persons
    ]
    audit.record(tx, entries, now=requester.now)
