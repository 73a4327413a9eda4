"""Everything that is kept about one member, by table (docs/erasure.md)."""

from collections.abc import Callable
from typing import Any

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.files.mentions import find_mentions, list_mentions
from frontdesk.privacy import store
from frontdesk.privacy.model import Person, PersonalData, Places

AUDIT_IDS_TOGETHER = 1000


def find_places(db: Database, person: Person, *, go_on: Callable[[], None] = lambda: None) -> Places:
    """Where reports and the audit trail name the member. `go_on` is called between two pages of the search, and may raise."""
    member_id, account_id = person
    external_ids = db.ask(lambda tx: store.identifiers(tx, [member_id]))[0]
    parts = [*find_mentions(db.ask, account_id, external_ids, go_on=go_on)] if external_ids else []
    entry_ids = []
    # By pages of ids: no index leads from a member to its entries, and few ask for them.
    for after in range(0, db.ask(audit.last_entry_id), AUDIT_IDS_TOGETHER):
        entry_ids += [entry["id"] for entry in _entries(db, member_id, after, after + AUDIT_IDS_TOGETHER)]
        go_on()
    return Places(parts, entry_ids)


def export_person(db: Database, person: Person, requester: Requester, places: Places) -> PersonalData:
    """All rows of the member by table, in the order of their ids; of reports the lines, each with its file.

    The audit trail keeps that it was exported.
    """
    member_id, account_id = person
    tables = db.ask(lambda tx: store.rows_of(tx, member_id))
    external_ids = db.ask(lambda tx: store.identifiers(tx, [member_id]))[0]
    tables["file_outcomes"] = [
        {
            "file_id": file_id,
            "row": line.place,
            "external_id": line.external_id,
            "outcome": line.outcome,
            "faults": [*map(list, line.faults)],
            "warnings": [*map(list, line.warnings)],
        }
        for file_id, line in list_mentions(db.ask, places.parts, external_ids)
    ]
    tables["audit_entries"] = [
        entry for id_ in places.entry_ids for entry in _entries(db, member_id, id_ - 1, id_)
    ]
    write_alone(db, lambda tx: audit.record_action(tx, requester, "member.exported", account_id, member_id))
    return PersonalData(member_id, account_id, tables)


def _entries(db: Database, member_id: int, after: int, until: int) -> list[dict[str, Any]]:
    return db.ask(lambda tx: audit.entries_about(tx, member_id, after, until))
