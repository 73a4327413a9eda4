"""Erases, holds and exports members: an erasure leaves ids, times and the fact of the erasure
(docs/erasure.md).

During a legal hold no data of the member is erased or pruned, and the audit trail is not pruned at
all.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from frontdesk import audit, codes, events
from frontdesk.audit import Requester
from frontdesk.clock import Clock, system_clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.eligibility.people import get_members_named
from frontdesk.errors import FrontdeskError, NotFound, Unavailable
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.files import unfinished_files
from frontdesk.files.drafts import unfinished_drafts
from frontdesk.invitations import hash_suppressions
from frontdesk.invitations.model import InvitationStep
from frontdesk.invitations.protocol import cancel_of_members
from frontdesk.privacy import store
from frontdesk.privacy.model import (
    Erasure,
    ErasureCause,
    FilesUnfinished,
    LegalHold,
    Person,
    RetentionKind,
    UnderLegalHold,
)
from frontdesk.reach import EVERY, Reach
from frontdesk.text import fold_email


def find_persons(tx: Tx, reach: Reach, external_id: str) -> list[Person]:
    """The records with the identifier, withdrawn ones included, and the records merged with them.

    Raises NotFound, also for an identifier out of reach, and FrontdeskError `several_accounts`.
    """
    found = get_members_named(tx, reach, external_id, withdrawn=True)
    return store.with_merged(tx, [Person(member["id"], member["account_id"]) for member in found])


def get_person(tx: Tx, reach: Reach, member_id: int) -> Person:
    """The member with this id, erased or not. Raises NotFound, also for one out of reach."""
    for person in store.persons_of(tx, [member_id]):
        if reach.covers(person.account_id):
            return person
    raise NotFound("eligible member")


def find_persons_of(tx: Tx, reach: Reach, member_id: int) -> list[Person]:
    """The member with this id, erased or not, and those that were merged with it. Raises NotFound,
    also for one out of reach.
    """
    return store.with_merged(tx, [get_person(tx, reach, member_id)])


def erase_person(
    db: Database, persons: Sequence[Person], requester: Requester, clock: Clock = system_clock
) -> list[Erasure]:
    """Erase the records of one person in one account, and those merged with them, in one
    transaction. An erased record stays as it is.

    Raises UnderLegalHold, FilesUnfinished, Unavailable.
    """
    with_merged = db.ask(lambda tx: store.with_merged(tx, persons))
    done = write_alone(db, lambda tx: _erase(tx, with_merged, requester._replace(now=clock())))
    if any(erasure.is_new for erasure in done):
        with suppress(Unavailable):  # then a worker empties it
            db.empty_log()
    return done


def erase_old(tx: Tx, persons: Sequence[Person], requester: Requester) -> None:
    """Erase members by retention, in the caller's transaction. None of them is erased or under
    legal hold.
    """
    persons = [person for each in persons for person in store.with_merged(tx, [each])]
    store.lock_members(tx, [person.member_id for person in persons])
    _erase_rows(tx, persons, requester, ErasureCause.RETENTION)


def erase_all(tx: Tx, persons: Sequence[Person], requester: Requester) -> None:
    """Erase members of an account whose members are all erased, in the caller's transaction: those
    that were merged with them are erased by other calls. None of them is erased. Raises
    UnderLegalHold.
    """
    require_not_held(tx, [person.member_id for person in persons])
    _erase_rows(tx, persons, requester, ErasureCause.REQUEST)


def _erase(tx: Tx, persons: Sequence[Person], requester: Requester) -> list[Erasure]:
    """Erase the records that are not erased yet. Raises UnderLegalHold, FilesUnfinished."""
    ids = [person.member_id for person in persons]
    store.lock_members(tx, ids)
    erased = store.find_erasures(tx, ids)
    before = {erasure.member_id for erasure in erased}
    if left := [person for person in persons if person.member_id not in before]:
        if holds := store.find_holds(tx, EVERY, member_ids=ids):
            raise UnderLegalHold(holds[0])
        unfinished = unfinished_files(tx, persons[0].account_id)
        drafts = unfinished_drafts(tx, persons[0].account_id)
        if unfinished or drafts:
            raise FilesUnfinished(unfinished, drafts)
        _erase_rows(tx, left, requester, ErasureCause.REQUEST)
    made = [Erasure(*person, requester.now, ErasureCause.REQUEST, is_new=True) for person in left]
    return [*erased, *made]


def _erase_rows(
    tx: Tx, persons: Sequence[Person], requester: Requester, cause: ErasureCause
) -> None:
    ids = [person.member_id for person in persons]
    hash_suppressions(tx, {fold_email(address) for address in store.values_of(tx, ids, ["email"])})
    for account_id in {person.account_id for person in persons}:
        own = [person.member_id for person in persons if person.account_id == account_id]
        packed = cause is ErasureCause.REQUEST
        external_ids = store.values_of(tx, own, ["external_id"])
        store.forget_in_reports(tx, own, external_ids, account_id=account_id, packed=packed)
        store.forget_in_files(tx, own, account_id=account_id)
        store.delete_answers(tx, account_id)
    cancel_of_members(tx, ids, now=requester.now, reason=InvitationStep.ERASED)
    store.insert_erasures(tx, persons, requester, cause)  # lets the history lose its values
    store.drop_values(tx, "member_id", ids)
    store.empty_invitations(tx, store.invitations_of(tx, ids))
    store.delete_unproven(tx, ids)
    store.empty_members(tx, ids)
    store.delete_distinct(tx, ids)
    store.note_emptied(tx)
    entries = [
        requester.entry("member.erased", person.account_id, person.member_id, cause=cause)
        for person in persons
    ]
    audit.record(tx, entries, now=requester.now)
    erased = [
        NewEvent(
            person.account_id,
            AccountEventType.MEMBER_ERASED,
            {"eligibility_id": person.member_id},
            requester.request_id,
        )
        for person in persons
    ]
    events.publish(tx, erased, now=requester.now)


def place_hold(tx: Tx, person: Person, reference: str, requester: Requester) -> bool:
    """Hold the member. False if it is held already; the earlier reference stays. Raises
    FrontdeskError `erased`.
    """
    store.lock_members(tx, [person.member_id])  # an erasure under way comes first
    if store.find_erasures(tx, [person.member_id]):
        raise FrontdeskError(
            "The member is erased: there is nothing left to hold.", code=codes.operators.ERASED
        )
    if store.find_holds(tx, EVERY, member_ids=[person.member_id]):
        return False
    store.insert_hold(tx, LegalHold(*person, reference, requester.now, requester.actor))
    audit.record_action(
        tx, requester, "member.held", person.account_id, person.member_id, reference=reference
    )
    return True


def release_hold(tx: Tx, person: Person, requester: Requester) -> bool:
    """End the hold. False if there is none."""
    store.lock_members(tx, [person.member_id])
    holds = store.find_holds(tx, EVERY, member_ids=[person.member_id])
    if not holds:
        return False
    store.delete_hold(tx, person.member_id)
    # Retention starts over, for rows that it skipped during the hold.
    if first := store.first_history_id(tx, person.member_id):
        position = store.get_position(tx, RetentionKind.HISTORY)
        store.move_position(tx, RetentionKind.HISTORY, min(position, first - 1))
    audit.record_action(
        tx,
        requester,
        "member.released",
        person.account_id,
        person.member_id,
        reference=holds[0].reference,
    )
    return True


def require_not_held(tx: Tx, member_ids: Collection[int]) -> None:
    """Lock the members, so that no hold comes until the transaction ends. Raises UnderLegalHold."""
    store.lock_members(tx, member_ids)
    if holds := store.find_holds(tx, EVERY, member_ids=member_ids):
        raise UnderLegalHold(holds[0])


def export_person(db: Database, person: Person, requester: Requester) -> dict[str, Any]:
    """`member_id`, `account_id`, and in `tables` all rows of the member by table, by id. The audit
    trail records the export.
    """
    member_id, account_id = person
    tables = db.ask(lambda tx: store.rows_of(tx, member_id))
    tables["file_rows"] = db.ask(lambda tx: store.report_rows_of(tx, person))
    tables["audit_entries"] = db.ask(lambda tx: audit.entries_about(tx, member_id))
    write_alone(
        db, lambda tx: audit.record_action(tx, requester, "member.exported", account_id, member_id)
    )
    return {"member_id": member_id, "account_id": account_id, "tables": tables}
