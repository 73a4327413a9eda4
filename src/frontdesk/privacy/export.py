"""Everything that is kept about one member, by table (docs/erasure.md)."""

from collections.abc import Callable
from typing import Any

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.files.mentions import find_mentions, list_mentions
from frontdesk.privacy import store
from frontdesk.privacy.model import Person, PersonalData

AUDIT_IDS_TOGETHER = 1000


def export_person(
    db: Database, person: Person, requester: Requester, *, go_on: Callable[[], None] = lambda: None
) -> PersonalData:
    """All rows of the member by table, in the order of their ids; of reports the lines, each with its file.

    The audit trail keeps that it was exported. `go_on` is called between two pages of what is searched, and may raise.
    """
    member_id, account_id = person
    tables = db.ask(lambda tx: store.rows_of(tx, member_id))
    external_ids = db.ask(lambda tx: store.identifiers(tx, [member_id]))[0]
    parts = [*find_mentions(db.ask, account_id, external_ids, go_on=go_on)] if external_ids else []
    tables["file_outcomes"] = [
        {
            "file_id": file_id,
            "row": line.place,
            "external_id": line.external_id,
            "outcome": line.outcome,
            "faults": [*map(list, line.faults)],
            "warnings": [*map(list, line.warnings)],
        }
        for file_id, line in list_mentions(db.ask, parts, external_ids)
    ]
    tables["audit_entries"] = _audit_entries(db, member_id, go_on)
    write_alone(db, lambda tx: audit.record_action(tx, requester, "member.exported", account_id, member_id))
    return PersonalData(member_id, account_id, tables)


def _audit_entries(db: Database, member_id: int, go_on: Callable[[], None]) -> list[dict[str, Any]]:
    """By pages of ids: no index leads from a member to its entries, and few ask for them."""
    found: list[dict[str, Any]] = []
    for after in range(0, db.ask(audit.last_entry_id), AUDIT_IDS_TOGETHER):
        until = after + AUDIT_IDS_TOGETHER
        found += db.ask(lambda tx, after=after, until=until: audit.entries_about(tx, member_id, after, until))  # type: ignore[misc]
        go_on()
    return found
