"""Legal holds: while one lasts, nothing of the member is erased or pruned, and the audit trail is not pruned at all."""

from collections.abc import Collection

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError
from frontdesk.privacy import retention_store, store
from frontdesk.privacy.model import LegalHold, Person, RetentionKind, UnderLegalHold


def place_hold(tx: Tx, person: Person, reference: str, requester: Requester) -> bool:
    """Hold the member. False if it is held already, with the reference that it had. Raises FrontdeskError `erased`."""
    store.lock_members(tx, [person.member_id])  # an erasure under way comes first
    if store.find_erasures(tx, [person.member_id]):
        raise FrontdeskError("The member is erased: there is nothing left to hold.", code="erased")
    if store.find_holds(tx, [person.member_id]):
        return False
    store.insert_hold(tx, LegalHold(*person, reference, requester.now, requester.actor))
    audit.record_action(
        tx, requester, "member.held", person.account_id, person.member_id, reference=reference
    )
    return True


def release_hold(tx: Tx, person: Person, requester: Requester) -> bool:
    """End the hold. False if there is none."""
    store.lock_members(tx, [person.member_id])
    holds = store.find_holds(tx, [person.member_id])
    if not holds:
        return False
    store.delete_hold(tx, person.member_id)
    # What retention went past meanwhile is looked at again.
    if first := retention_store.first_history_id(tx, person.member_id):
        position = retention_store.get_position(tx, RetentionKind.HISTORY)
        retention_store.move_position(tx, RetentionKind.HISTORY, min(position, first - 1))
    audit.record_action(
        tx, requester, "member.released", person.account_id, person.member_id, reference=holds[0].reference
    )
    return True


def require_not_held(tx: Tx, member_ids: Collection[int]) -> None:
    """Lock the members, so that no hold comes until the transaction ends. Raises UnderLegalHold."""
    store.lock_members(tx, member_ids)
    if holds := store.find_holds(tx, member_ids):
        raise UnderLegalHold(holds[0])


def list_holds(tx: Tx, account_id: int | None) -> list[LegalHold]:
    """The holds, of one account or of all, by member."""
    return store.list_holds(tx, account_id)
