"""Everything that is kept about one member, by table (docs/erasure.md)."""

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.privacy import store
from frontdesk.privacy.model import Person, PersonalData


def export_person(db: Database, person: Person, requester: Requester) -> PersonalData:
    """All rows of the member by table, in the order of their ids. The audit trail keeps that it was exported."""
    member_id, account_id = person
    tables = db.ask(lambda tx: store.rows_of(tx, member_id))
    external_ids = db.ask(lambda tx: store.identifiers(tx, [member_id]))[0]
    tables["file_rows"] = db.ask(lambda tx: store.report_rows_of(tx, person, external_ids))
    tables["audit_entries"] = db.ask(lambda tx: audit.entries_about(tx, member_id))
    write_alone(db, lambda tx: audit.record_action(tx, requester, "member.exported", account_id, member_id))
    return PersonalData(member_id, account_id, tables)
