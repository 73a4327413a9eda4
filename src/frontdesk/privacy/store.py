"""The SQL of erasures, legal holds and exports: what belongs to a member, by the classification of the columns."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import JSON, Column, ColumnElement, Table, delete, insert, literal_column, select, update

from frontdesk.audit.model import Requester
from frontdesk.db import Tx
from frontdesk.db.schema import IsoDate
from frontdesk.eligibility import merged_with
from frontdesk.eligibility.tables import distinct_members, member_history, members
from frontdesk.invitations.tables import (
    delivery_reports,
    invitation_events,
    invitation_links,
    invitations,
    suppressions,
)
from frontdesk.mailbox.tables import caught_messages
from frontdesk.privacy.classification import columns_of
from frontdesk.privacy.model import ColumnKind, Erasure, ErasureCause, LegalHold, Person
from frontdesk.privacy.tables import erasures, legal_holds
from frontdesk.text import fold_email

NO_DAY = "0001-01-01"  # stands for an erased day in a column that must hold one

# The same text as in the triggers (db/migrations/append_only.py), which let nothing else through.
WITHOUT_VALUES = {
    "postgresql": "without_values(changes)",
    "sqlite": "(SELECT json_group_object(key, json(value)) FROM json_each(changes) "
    "WHERE key IN ('plan_id', 'effective_date', 'expiry_date', 'expiry_before_absence'))",
}

Rows = list[dict[str, Any]]


def find_by_external_id(tx: Tx, external_id: str, account_id: int | None) -> list[Person]:
    """The members that have the identifier, those too that an undo withdrew, in id order."""
    query = select(members.c.id, members.c.account_id).where(members.c.external_id == external_id)
    if account_id is not None:
        query = query.where(members.c.account_id == account_id)
    return [Person(*row) for row in tx.execute(query.order_by(members.c.id))]


def find_person(tx: Tx, member_id: int) -> Person | None:
    row = tx.execute(select(members.c.id, members.c.account_id).where(members.c.id == member_id)).first()
    return Person(*row) if row else None


def with_merged(tx: Tx, persons: Sequence[Person]) -> list[Person]:
    """The members, and those that were merged with them: they are one person, of one account."""
    ids = merged_with(tx, [person.member_id for person in persons])
    added = ids - {person.member_id for person in persons}
    return [*persons, *(Person(id_, persons[0].account_id) for id_ in sorted(added))]


def lock_members(tx: Tx, member_ids: Collection[int]) -> None:
    """Nobody writes, erases or holds the members until the transaction ends."""
    query = select(members.c.id).where(members.c.id.in_(sorted(member_ids))).order_by(members.c.id)
    tx.execute(query.with_for_update()).all()


def identifiers(tx: Tx, member_ids: Collection[int]) -> tuple[set[str], set[str]]:
    """Every external_id and every e-mail address that the members have, or had."""
    of_members = select(members.c.external_id, members.c.email).where(members.c.id.in_(sorted(member_ids)))
    external_ids, addresses = set(), set()
    for external_id, email in tx.execute(of_members):
        external_ids.add(external_id)
        addresses.add(email)
    of_history = select(member_history.c.changes).where(member_history.c.member_id.in_(sorted(member_ids)))
    for changes in tx.execute(of_history).scalars():
        external_ids.update(changes.get("external_id", ()))
        addresses.update(changes.get("email", ()))
    return external_ids - {None, ""}, addresses - {None, ""}


def find_erasures(tx: Tx, member_ids: Collection[int]) -> list[Erasure]:
    columns = (erasures.c.member_id, erasures.c.account_id, erasures.c.erased_at, erasures.c.cause)
    query = select(*columns).where(erasures.c.member_id.in_(sorted(member_ids)))
    return [Erasure(*row) for row in tx.execute(query)]


def insert_erasures(tx: Tx, persons: Sequence[Person], requester: Requester, cause: ErasureCause) -> None:
    """From here on the history of the members can lose its values."""
    fact = {
        "erased_at": requester.now,
        "cause": cause,
        "actor": requester.actor,
        "request_id": requester.request_id,
    }
    tx.execute(insert(erasures), [person._asdict() | fact for person in persons])


def empty_members(tx: Tx, member_ids: Collection[int]) -> None:
    """The members keep ids, plans, times and days of access. As withdrawn ones they are alone in the uniqueness scope -id."""
    changes = _emptied(members) | {"uniqueness_scope": -members.c.id, "merged_into": None}
    tx.execute(update(members).where(members.c.id.in_(sorted(member_ids))).values(changes))


def empty_histories(tx: Tx, member_ids: Collection[int]) -> int:
    """How many entries there are."""
    changes: ColumnElement[Any] = literal_column(WITHOUT_VALUES[tx.dialect.name])
    mine = member_history.c.member_id.in_(sorted(member_ids))
    return tx.execute(update(member_history).where(mine).values(changes=changes)).rowcount


def delete_distinct(tx: Tx, member_ids: Collection[int]) -> None:
    ids, columns = sorted(member_ids), distinct_members.c
    tx.execute(delete(distinct_members).where(columns.lower_id.in_(ids) | columns.higher_id.in_(ids)))


def invitations_of(tx: Tx, member_ids: Collection[int]) -> list[int]:
    query = select(invitations.c.id).where(invitations.c.member_id.in_(sorted(member_ids)))
    return list(tx.execute(query).scalars())


def empty_invitations(tx: Tx, ids: Collection[int]) -> int:
    """Take the address out of the invitations, and delete their links and the mails that a sandbox caught of them."""
    mine = invitation_links.c.invitation_id.in_(ids)
    message_ids = set(tx.execute(select(invitation_links.c.message_id).where(mine)).scalars())
    tx.execute(delete(caught_messages).where(caught_messages.c.message_id.in_(sorted(message_ids))))
    tx.execute(delete(invitation_links).where(mine))
    tx.execute(update(invitations).where(invitations.c.id.in_(ids)).values(_emptied(invitations)))
    return len(ids)


def _emptied(table: Table) -> dict[str, Any]:
    """What the columns with a person's values hold after an erasure."""
    names = columns_of(table.name, ColumnKind.PERSON)
    return {name: _nothing(table.c[name]) for name in names}


def _nothing(column: Column[Any]) -> Any:
    if column.nullable:
        return None
    if isinstance(column.type, JSON):
        return {}
    return NO_DAY if isinstance(column.type, IsoDate) else ""


_OF_MEMBER = (member_history, invitations, erasures, legal_holds)
_OF_INVITATION = (invitation_events, invitation_links)


def rows_of(tx: Tx, member_id: int) -> dict[str, Rows]:
    """The rows of the member by table, without those of reports and the audit trail."""
    found = {members.name: _rows(tx, members, members.c.id, [member_id])}
    found |= {table.name: _rows(tx, table, table.c.member_id, [member_id]) for table in _OF_MEMBER}
    pairs = [_rows(tx, distinct_members, column, [member_id]) for column in distinct_members.c[:2]]
    found[distinct_members.name] = [*chain(*pairs)]
    invitation_ids = [row["id"] for row in found[invitations.name]]
    found |= {table.name: _rows(tx, table, table.c.invitation_id, invitation_ids) for table in _OF_INVITATION}
    mailed = (*found[invitation_links.name], *found[invitations.name])
    message_ids = {row["message_id"] for row in mailed} - {None}
    reports = _rows(tx, delivery_reports, delivery_reports.c.message_id, message_ids)
    found[delivery_reports.name] = reports
    caught = _rows(tx, caught_messages, caught_messages.c.message_id, message_ids)
    found[caught_messages.name] = [row | {"content": _as_text(row["content"])} for row in caught]
    addresses = {fold_email(address) for address in identifiers(tx, [member_id])[1]}
    found[suppressions.name] = _rows(tx, suppressions, suppressions.c.address_folded, addresses)
    return {str(name): rows for name, rows in found.items()}  # of plain text, as JSON wants it


def _rows(tx: Tx, table: Table, column: Column[Any], values: Collection[Any]) -> Rows:
    if not values:
        return []
    query = select(table).where(column.in_(sorted(values))).order_by(*table.primary_key.columns)
    return [{str(name): value for name, value in row.items()} for row in tx.execute(query).mappings()]


def _as_text(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")


def find_holds(tx: Tx, member_ids: Collection[int]) -> list[LegalHold]:
    query = select(legal_holds).where(legal_holds.c.member_id.in_(sorted(member_ids)))
    return [LegalHold(*row) for row in tx.execute(query.order_by(legal_holds.c.member_id))]


def list_holds(tx: Tx, account_id: int | None) -> list[LegalHold]:
    query = select(legal_holds).order_by(legal_holds.c.member_id)
    if account_id is not None:
        query = query.where(legal_holds.c.account_id == account_id)
    return [LegalHold(*row) for row in tx.execute(query)]


def insert_hold(tx: Tx, hold: LegalHold) -> None:
    tx.execute(insert(legal_holds).values(hold._asdict()))


def delete_hold(tx: Tx, member_id: int) -> None:
    tx.execute(delete(legal_holds).where(legal_holds.c.member_id == member_id))
