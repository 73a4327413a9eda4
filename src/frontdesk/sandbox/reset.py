"""Takes an account of a sandbox back to its beginning, in small transactions.

Members can't be deleted, because the history and the audit trail keep their ids: they are erased
(docs/erasure.md). Their identifiers and addresses can be used again. Plans, clients, settings and
templates stay. So do webhook endpoints and events, since they are what happened: a program that
goes on after its last event misses none.
"""

from frontdesk import audit
from frontdesk.access.accounts import get_account
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.files import list_mappings
from frontdesk.files.actions import DEFAULT_NAME, cancel_file, delete_mapping, save_mapping
from frontdesk.files.model import FileKey, FileState, MappingName
from frontdesk.privacy import find_holds
from frontdesk.privacy.erasure import erase_all
from frontdesk.privacy.model import UnderLegalHold
from frontdesk.reach import Reach
from frontdesk.sandbox import ACCOUNT, SAMPLE_MAPPING, store


def begin(tx: Tx, account_id: int, requester: Requester) -> None:
    """Cancel the files that have not ended, restore the mappings, and forget the idempotency keys.
    Raises UnderLegalHold.
    """
    if holds := find_holds(tx, Reach.of(account_id)):
        raise UnderLegalHold(holds[0])
    store.delete_answers(tx, account_id)
    store.discard_drafts(tx, account_id)
    for file_id in store.unended_files(tx, account_id):
        cancel_file(tx, FileKey(file_id, Reach.of(account_id)), requester)
    for mapping in list_mappings(tx, account_id):
        delete_mapping(tx, MappingName(account_id, mapping.name), requester)
    if get_account(tx, account_id).name == ACCOUNT:
        save_mapping(
            tx, MappingName(account_id, DEFAULT_NAME), SAMPLE_MAPPING, requester, default=True
        )
    audit.record_action(tx, requester, "sandbox.reset", account_id, account_id)


def delete_files(tx: Tx, *, account_id: int, before_id: int) -> tuple[int | None, int]:
    """Delete some of the account's newest file below the id. Returns the id for the next call, None
    at the end, and how many files are gone. A file that is being uploaded stays.
    """
    found = store.file_before(tx, account_id, before_id)
    if found is None:
        return None, 0
    file_id, state = found
    if state is FileState.RECEIVING:
        return file_id, 0
    if store.delete_some_of_file(tx, file_id):
        return file_id, 1
    return before_id, 0


def erase_members(
    tx: Tx, *, plan_id: int, after_id: int, requester: Requester
) -> tuple[int | None, int]:
    """Erase a window of the plan's members after the id. Returns the id for the next call, None at
    the end, and how many were erased. Raises UnderLegalHold.
    """
    persons, last_id = store.members_after(tx, plan_id, after_id)
    if persons:
        store.delete_suppressions(
            tx, persons[0].account_id, [person.member_id for person in persons]
        )
        erase_all(tx, persons, requester)
    return last_id, len(persons)
