"""The SQL of erasures, legal holds, exports and retention, by the classification of the columns.

Retention goes through each table by windows of its key, so that no statement reads more than 1000
rows.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import unquote

import sqlalchemy as sa

from frontdesk.access.tables import access_tokens, failed_attempts, request_allowances
from frontdesk.audit import Requester
from frontdesk.audit.chain import TrailPruning
from frontdesk.audit.tables import audit_entries
from frontdesk.db import Tx
from frontdesk.db.schema import IsoDate
from frontdesk.db.sets import SameKey, find_pairs
from frontdesk.eligibility.tables import distinct_members, member_history, members
from frontdesk.events.tables import events
from frontdesk.files.tables import eligibility_files, file_lists, file_rows, file_unchanged
from frontdesk.idempotency.tables import stored_answers
from frontdesk.invitations.tables import (
    delivery_reports,
    invitation_events,
    invitation_links,
    invitations,
    suppressions,
    unproven_addresses,
)
from frontdesk.mailbox.tables import caught_messages
from frontdesk.privacy.classification import CLASSIFICATION
from frontdesk.privacy.model import (
    ColumnKind,
    Erasure,
    ErasureCause,
    LegalHold,
    Person,
    RetentionKind,
)
from frontdesk.privacy.naming import FIELDS_OF_ROW, NAMING_FIELDS, Names
from frontdesk.privacy.tables import audit_prunings, erasures, legal_holds, retention_positions
from frontdesk.reach import Reach
from frontdesk.text import SHOWN_LENGTH, fold_email
from frontdesk.usage.request_costs import slot_of
from frontdesk.usage.store import delete_request_costs
from frontdesk.usage.tables import account_usage
from frontdesk.users.tables import users

NO_DAY = "0001-01-01"  # stands for an erased day in a column that must hold one

# The same text as in the triggers (db/migrations/append_only.py), which allow no other change.
WITHOUT_VALUES = {
    "postgresql": "without_values(changes)",
    "sqlite": "(SELECT json_group_object(key, json(value)) FROM json_each(changes) "
    "WHERE key IN ('plan_id', 'effective_date', 'expiry_date', 'expiry_before_absence'))",
}

Rows = list[dict[str, Any]]


def persons_of(tx: Tx, member_ids: Collection[int]) -> list[Person]:
    query = sa.select(members.c.id, members.c.account_id).where(
        members.c.id.in_(sorted(member_ids))
    )
    return [Person(*row) for row in tx.execute(query.order_by(members.c.id))]


def with_merged(tx: Tx, persons: Sequence[Person]) -> list[Person]:
    """The members, and all that were merged with them, either way: they are one person, of one
    account.
    """
    ids = new = {person.member_id for person in persons}
    while new:
        survivors = find_pairs(tx, members, "id", new, pair=("id", "merged_into"))
        merged = find_pairs(tx, members, "merged_into", new, pair=("id", "merged_into"))
        new = {*survivors.values(), *merged} - ids - {None}
        ids = ids | new
    added = ids - {person.member_id for person in persons}
    return [*persons, *(Person(id_, persons[0].account_id) for id_ in sorted(added))]


def lock_members(tx: Tx, member_ids: Collection[int]) -> None:
    """Lock the members against writes, erasures and holds until the transaction ends."""
    query = (
        sa.select(members.c.id).where(members.c.id.in_(sorted(member_ids))).order_by(members.c.id)
    )
    tx.execute(query.with_for_update()).all()


def values_of(tx: Tx, member_ids: Collection[int], fields: Collection[str]) -> set[str]:
    """Every value of these fields that the members have, or had."""
    ids = sorted(member_ids)
    stored = sa.select(*(members.c[name] for name in fields)).where(members.c.id.in_(ids))
    values: set[str | None] = set()
    for row in tx.execute(stored):
        values.update(row)
    earlier = sa.select(member_history.c.changes).where(member_history.c.member_id.in_(ids))
    for changes in tx.execute(earlier).scalars():
        for name in fields:
            values.update(changes.get(name, ()))
    return {value for value in values if value}


def find_erasures(tx: Tx, member_ids: Collection[int]) -> list[Erasure]:
    columns = (erasures.c.member_id, erasures.c.account_id, erasures.c.erased_at, erasures.c.cause)
    query = sa.select(*columns).where(erasures.c.member_id.in_(sorted(member_ids)))
    return [Erasure(*row) for row in tx.execute(query)]


def insert_erasures(
    tx: Tx, persons: Sequence[Person], requester: Requester, cause: ErasureCause
) -> None:
    """After this the values in the members' history can be removed."""
    fact = {"erased_at": requester.now, "cause": cause}
    fact |= {"actor": requester.actor, "request_id": requester.request_id}
    tx.execute(sa.insert(erasures), [person._asdict() | fact for person in persons])


def empty_members(tx: Tx, member_ids: Collection[int]) -> None:
    """The members keep ids, plans, times and days of access. Like withdrawn members they are alone
    in the uniqueness scope -id.
    """
    changes = _emptied(members) | {"uniqueness_scope": -members.c.id, "merged_into": None}
    tx.execute(sa.update(members).where(members.c.id.in_(sorted(member_ids))).values(changes))


def drop_values(tx: Tx, column: str, ids: Collection[int]) -> None:
    """Remove the values from the entries of the history whose column has one of the ids."""
    emptied: sa.ColumnElement[Any] = sa.literal_column(WITHOUT_VALUES[tx.dialect.name])
    mine = member_history.c[column].in_(sorted(ids))
    tx.execute(sa.update(member_history).where(mine).values(changes=emptied))


def delete_answers(tx: Tx, account_id: int) -> None:
    """Delete all stored answers of the account: which of them hold a member's values is not looked
    up.
    """
    tx.execute(sa.delete(stored_answers).where(stored_answers.c.account_id == account_id))


def delete_distinct(tx: Tx, member_ids: Collection[int]) -> None:
    ids = sorted(member_ids)
    columns = distinct_members.c
    tx.execute(
        sa.delete(distinct_members).where(columns.lower_id.in_(ids) | columns.higher_id.in_(ids))
    )


def delete_unproven(tx: Tx, member_ids: Collection[int]) -> None:
    mine = unproven_addresses.c.member_id.in_(sorted(member_ids))
    tx.execute(sa.delete(unproven_addresses).where(mine))


def invitations_of(tx: Tx, member_ids: Collection[int]) -> list[int]:
    query = sa.select(invitations.c.id).where(invitations.c.member_id.in_(sorted(member_ids)))
    return list(tx.execute(query).scalars())


def empty_invitations(tx: Tx, ids: Collection[int]) -> None:
    """Take the address out of the invitations, so that none can be resent, and delete their links,
    the unproven addresses of their members, and the mails that a sandbox caught of them.
    """
    members_of = sa.select(invitations.c.member_id).where(invitations.c.id.in_(ids))
    delete_unproven(tx, tx.execute(members_of).scalars().all())
    mine = invitation_links.c.invitation_id.in_(ids)
    message_ids = set(tx.execute(sa.select(invitation_links.c.message_id).where(mine)).scalars())
    tx.execute(
        sa.delete(caught_messages).where(caught_messages.c.message_id.in_(sorted(message_ids)))
    )
    tx.execute(sa.delete(invitation_links).where(mine))
    tx.execute(
        sa.update(invitations).where(invitations.c.id.in_(ids)).values(_emptied(invitations))
    )


def _emptied(table: sa.Table) -> dict[str, Any]:
    """The values of a person's columns after an erasure."""
    kinds = CLASSIFICATION[table.name].items()
    columns = [table.c[name] for name, kind in kinds if kind is ColumnKind.PERSON]
    empty: dict[type, Any] = {sa.JSON: {}, IsoDate: NO_DAY}
    return {
        column.name: None if column.nullable else empty.get(type(column.type), "")
        for column in columns
    }


_OF_MEMBER = (member_history, invitations, unproven_addresses, erasures, legal_holds)
_OF_INVITATION = (invitation_events, invitation_links)


def rows_of(tx: Tx, member_id: int) -> dict[str, Rows]:
    """The rows of the member by table, without those of reports and the audit trail."""
    found = {members.name: _rows(tx, members, members.c.id, [member_id])}
    found |= {table.name: _rows(tx, table, table.c.member_id, [member_id]) for table in _OF_MEMBER}
    pairs = [_rows(tx, distinct_members, column, [member_id]) for column in distinct_members.c[:2]]
    found[distinct_members.name] = [*chain(*pairs)]
    invitation_ids = [row["id"] for row in found[invitations.name]]
    found |= {
        table.name: _rows(tx, table, table.c.invitation_id, invitation_ids)
        for table in _OF_INVITATION
    }
    mailed = (*found[invitation_links.name], *found[invitations.name])
    message_ids = {row["message_id"] for row in mailed} - {None}
    reports = _rows(tx, delivery_reports, delivery_reports.c.message_id, message_ids)
    found[delivery_reports.name] = reports
    caught = _rows(tx, caught_messages, caught_messages.c.message_id, message_ids)
    found[caught_messages.name] = [
        row | {"content": row["content"].decode("utf-8", "backslashreplace")} for row in caught
    ]
    addresses = {fold_email(address) for address in values_of(tx, [member_id], ["email"])}
    found[suppressions.name] = _rows(tx, suppressions, suppressions.c.address_folded, addresses)
    return {str(name): rows for name, rows in found.items()}  # of plain text, as sa.JSON wants it


def _rows(tx: Tx, table: sa.Table, column: sa.Column[Any], values: Collection[Any]) -> Rows:
    if not values:
        return []
    query = sa.select(table).where(column.in_(sorted(values))).order_by(*table.primary_key.columns)
    return [
        {str(name): value for name, value in row.items()} for row in tx.execute(query).mappings()
    ]


def find_holds(
    tx: Tx, reach: Reach, *, member_ids: Collection[int] | None = None
) -> list[LegalHold]:
    """The holds within reach by member, of these members or of all."""
    query = sa.select(legal_holds).order_by(legal_holds.c.member_id)
    if member_ids is not None:
        query = query.where(legal_holds.c.member_id.in_(sorted(member_ids)))
    if reach.account_id is not None:
        query = query.where(legal_holds.c.account_id == reach.account_id)
    return [LegalHold(*row) for row in tx.execute(query)]


def insert_hold(tx: Tx, hold: LegalHold) -> None:
    tx.execute(sa.insert(legal_holds).values(hold._asdict()))


def delete_hold(tx: Tx, member_id: int) -> None:
    tx.execute(sa.delete(legal_holds).where(legal_holds.c.member_id == member_id))


WINDOW = 1000  # ids
# Among the positions: the number of removals of values, and how many of them SQLite's log no longer
# holds.
EMPTIED = "emptied"
LOG_EMPTIED = "log_emptied"

_m = members.c
_h = member_history.c
_i = invitations.c
_f = eligibility_files.c


class RetentionSource(NamedTuple):
    """The rows of a kind: their table, the condition that they are due, and the rows kept by legal
    holds.
    """

    table: sa.Table
    age: sa.ColumnElement[Any]
    condition: sa.ColumnElement[bool] = sa.true()
    held_by: sa.Column[Any] | None = None


# Of the kinds with rows that are due by their age alone.
_AGES: dict[RetentionKind, sa.Column[Any]] = {
    RetentionKind.MAILBOX: caught_messages.c.caught_at,
    RetentionKind.ANSWERS: stored_answers.c.created_at,
    RetentionKind.EVENTS: events.c.at,
    RetentionKind.AUDIT: audit_entries.c.at,
    RetentionKind.USERS: users.c.ended_at,
    RetentionKind.COUNTERS: failed_attempts.c.failed_at,
}


def _source(kind: RetentionKind, dialect: str) -> RetentionSource:
    is_kept = _m.external_id != ""
    match kind:
        case RetentionKind.HISTORY:
            # Qualified by its table: in a subquery the bare column would be another table's.
            text = f"CAST(changes AS text) <> CAST({WITHOUT_VALUES[dialect]} AS text)"
            return RetentionSource(
                member_history, _h.changed_at, sa.literal_column(text), _h.member_id
            )
        case RetentionKind.WITHDRAWN:
            return RetentionSource(
                members, _m.updated_at, is_kept & (_m.uniqueness_scope < 0), _m.id
            )
        case RetentionKind.ENDED:
            is_there = is_kept & (_m.uniqueness_scope >= 0) & _m.merged_into.is_(None)
            return RetentionSource(members, _m.expiry_date, is_there, _m.id)
        case RetentionKind.INVITATIONS:
            return RetentionSource(invitations, _i.settled_at, _i.address != "", _i.member_id)
        case RetentionKind.REPORTS:
            has_report = _has_rows(file_rows) | _has_rows(file_unchanged)
            is_there = has_report | _f.file_name.is_not(None)
            return RetentionSource(eligibility_files, _f.finished_at, is_there, _f.account_id)
    age = _AGES[kind]
    return RetentionSource(age.table, age)


def _is_passed(limit: object) -> sa.ColumnElement[bool]:
    """Whether the event is of one endpoint, or the next one of its feed is due too: who has read
    the newest one goes on from its place, however long the feed is quiet.
    """
    later = events.alias("later")
    of_feed = SameKey(later.c.account_id, events.c.account_id), later.c.endpoint_id.is_(None)
    beyond = sa.tuple_(later.c.xid, later.c.id) > sa.tuple_(events.c.xid, events.c.id)
    next_at = sa.select(later.c.at).where(*of_feed, beyond).limit(1)
    in_order = next_at.order_by(later.c.account_id, later.c.xid, later.c.id)
    is_due = in_order.correlate(events).scalar_subquery() < limit
    return events.c.endpoint_id.is_not(None) | is_due


def ends_of_ids(tx: Tx, kind: RetentionKind) -> tuple[int, int]:
    """The lowest and the highest id of the kind's table; 1 and 0 while it is empty."""
    id_ = _source(kind, tx.dialect.name).table.c.id
    # Two questions: SQLite reads the whole table for both in one.
    lowest, highest = (
        tx.execute(sa.select(end(id_))).scalar() for end in (sa.func.min, sa.func.max)
    )
    return lowest or 1, highest or 0


def old_ids(tx: Tx, kind: RetentionKind, before: datetime, after_id: int) -> list[int]:
    """The ids of due rows without a hold in the window after this id, ascending."""
    source = _source(kind, tx.dialect.name)
    id_ = source.table.c.id
    return _matching(tx, source, before, (id_ > after_id) & (id_ <= after_id + WINDOW))


def still_old(tx: Tx, kind: RetentionKind, before: datetime, ids: Collection[int]) -> list[int]:
    source = _source(kind, tx.dialect.name)
    return _matching(tx, source, before, source.table.c.id.in_(sorted(ids)))


def _matching(
    tx: Tx, source: RetentionSource, before: datetime, place: sa.ColumnElement[bool]
) -> list[int]:
    limit: object = before.date().isoformat() if source.age is _m.expiry_date else before
    id_ = source.table.c.id
    query = sa.select(id_).where(place, source.age < limit, source.condition).order_by(id_)
    if source.table is events:
        query = query.where(_is_passed(limit))
    if source.held_by is not None:
        held = (
            legal_holds.c.account_id if source.held_by is _f.account_id else legal_holds.c.member_id
        )
        query = query.where(source.held_by.not_in(sa.select(held)))
    return list(tx.execute(query).scalars())


def newest_change(tx: Tx, after_id: int) -> datetime | None:
    """The time of the newest entry of the history in the window after this id."""
    window = (_h.id > after_id) & (_h.id <= after_id + WINDOW)
    return tx.execute(sa.select(sa.func.max(_h.changed_at)).where(window)).scalar()


def delete_report_chunk(tx: Tx, file_id: int) -> int:
    """Delete a chunk of the file's report, with the first one its lists of chunks; 0 when none is
    left: then the digest goes, and what the sender wrote beside the rows.
    """
    tx.execute(sa.delete(file_lists).where(file_lists.c.file_id == file_id))
    deleted = 0
    for table in (file_rows, file_unchanged):
        rows = table.alias()
        first = (
            sa.select(sa.func.min(rows.c.chunk)).where(rows.c.file_id == file_id).scalar_subquery()
        )
        mine = (table.c.file_id == file_id) & (table.c.chunk == first)
        deleted += tx.execute(sa.delete(table).where(mine)).rowcount
    if not deleted:
        of_sender: dict[str, Any] = {"sha256": None, "file_name": None, "ignored": []}
        tx.execute(sa.update(eligibility_files).where(_f.id == file_id).values(of_sender))
    return deleted


def report_rows_of(tx: Tx, person: Person) -> list[dict[str, Any]]:
    """The member's rows of all files, also refused ones with its external_id, without those that
    changed nothing, by column.
    """
    external_ids = values_of(tx, [person.member_id], ["external_id"])
    conditions = _report_rows_about([person.member_id], external_ids, person.account_id)
    found = chain(*(tx.execute(sa.select(file_rows).where(mine)).mappings() for mine in conditions))
    rows = ({str(name): value for name, value in row.items()} for row in found)
    return sorted(rows, key=itemgetter("file_id", "chunk", "position"))


def files_with_rows_of(tx: Tx, person: Person, *, limit: int) -> list[int]:
    """The newest files with a row about the member, as `report_rows_of` finds them."""
    external_ids = values_of(tx, [person.member_id], ["external_id"])
    found: set[int] = set()
    for mine in _report_rows_about([person.member_id], external_ids, person.account_id):
        query = sa.select(file_rows.c.file_id).where(mine).distinct()
        found.update(tx.execute(query).scalars())
    return sorted(found, reverse=True)[:limit]


def find_place_of(tx: Tx, member_id: int, *, file_id: int) -> int | None:
    """The number of the member's row in the file; None if the report has none."""
    mine = (file_rows.c.member_id == member_id) & (file_rows.c.file_id + 0 == file_id)
    return tx.execute(sa.select(file_rows.c.place).where(mine).limit(1)).scalar()


def plans_of(tx: Tx, member_ids: Collection[int]) -> set[int]:
    """The plans under which the members are, or were."""
    ids = sorted(member_ids)
    stored = sa.select(members.c.plan_id).where(members.c.id.in_(ids))
    earlier = sa.select(member_history.c.plan_id).where(member_history.c.member_id.in_(ids))
    return {*tx.execute(stored).scalars(), *tx.execute(earlier.distinct()).scalars()}


def forget_in_reports(
    tx: Tx,
    member_ids: Collection[int],
    external_ids: Collection[str],
    *,
    account_id: int,
    packed: bool,
) -> None:
    """Remove the identifiers from the account's reports: from the members' rows, and from rows with
    an identifier but without a member. Removes the digests of these files, since the digest of a
    small file could be guessed; with `packed`, also those of all files with packed rows, whose
    members are not looked up.
    """
    found: set[int] = set()
    for mine in _report_rows_about(member_ids, external_ids, account_id):
        forgotten = (
            sa.update(file_rows).where(mine).values(external_id=None).returning(file_rows.c.file_id)
        )
        found.update(tx.execute(forgotten).scalars())
    own: list[sa.ColumnElement[bool]] = [_f.id.in_(sorted(found))]
    if packed:
        own.append((_f.account_id == account_id) & _has_rows(file_unchanged))
    for files in own:
        tx.execute(sa.update(eligibility_files).where(files).values(sha256=None))


def forget_in_files(tx: Tx, member_ids: Collection[int], *, account_id: int) -> None:
    """Take the members out of what the senders of the account's files wrote beside the rows: empty
    each file name that names one of them, and the ignored columns of a file whose header was a row
    of theirs.
    """
    values = values_of(tx, member_ids, NAMING_FIELDS)
    names = Names(values)
    of_row = Names(values | values_of(tx, member_ids, FIELDS_OF_ROW))
    has_text = _f.file_name.is_not(None) | (sa.cast(_f.ignored, sa.Text) != "[]")
    query = sa.select(_f.id, _f.file_name, _f.ignored).where(_f.account_id == account_id, has_text)
    for file_id, file_name, ignored in tx.execute(query).all():
        changes: dict[str, Any] = {}
        if file_name is not None and names.are_in(file_name):
            changes["file_name"] = None
        # Stored percent-encoded, as a log may show them.
        if of_row.are_among([unquote(name) for name in ignored], cut_to=SHOWN_LENGTH):
            changes["ignored"] = []
        if changes:
            tx.execute(sa.update(eligibility_files).where(_f.id == file_id).values(changes))


def _report_rows_about(
    member_ids: Collection[int], external_ids: Collection[str], account_id: int
) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """Conditions, one for each index: the members' rows, and the account's rows with an identifier
    but without a member.
    """
    rows = file_rows.c
    account = sa.select(_f.account_id).where(_f.id == rows.file_id).scalar_subquery()
    without_member = rows.member_id.is_(None) & rows.external_id.is_not(None)
    named = without_member & rows.external_id.in_(sorted(external_ids)) & (account == account_id)
    return rows.member_id.in_(sorted(member_ids)), named


def _has_rows(table: sa.Table) -> sa.ColumnElement[bool]:
    """The condition that a file has a row in the table. PostgreSQL would read all of the table for
    an EXISTS beside another condition.
    """
    first = sa.select(sa.func.min(table.c.chunk)).where(table.c.file_id == _f.id)
    return first.scalar_subquery().is_not(None)


def delete_rows(tx: Tx, kind: RetentionKind, ids: Collection[int]) -> None:
    table = _source(kind, tx.dialect.name).table
    tx.execute(sa.delete(table).where(table.c.id.in_(sorted(ids))))


USAGE_DAYS = 400  # of an account's bytes by day, beside the retention of counters


def delete_counters(tx: Tx, before: datetime) -> int:
    """Delete old tokens, usage, costs of requests, and request counters of inactive clients;
    requests of active clients delete their own.
    """
    tokens = (
        sa.select(access_tokens.c.token_hash)
        .where(access_tokens.c.expires_at < before)
        .limit(WINDOW)
    )
    old = access_tokens.c.token_hash.in_(tx.execute(tokens).scalars().all())
    count = tx.execute(sa.delete(access_tokens).where(old)).rowcount
    past = request_allowances.c.minute < int(before.timestamp()) // 60
    count += tx.execute(sa.delete(request_allowances).where(past)).rowcount
    oldest_day = (before - timedelta(days=USAGE_DAYS)).date().isoformat()
    count += delete_request_costs(tx, slot_of(before))
    return (
        count
        + tx.execute(sa.delete(account_usage).where(account_usage.c.day < oldest_day)).rowcount
    )


def has_holds(tx: Tx) -> bool:
    return tx.execute(sa.select(legal_holds.c.member_id).limit(1)).first() is not None


def last_pruning(tx: Tx) -> TrailPruning | None:
    columns = audit_prunings.c
    query = (
        sa.select(columns.through_id, columns.chain).order_by(columns.through_id.desc()).limit(1)
    )
    row = tx.execute(query).first()
    return row and TrailPruning(*row)


def has_pruned(tx: Tx, pruning: TrailPruning) -> bool:
    columns = audit_prunings.c
    query = sa.select(columns.chain).where(columns.through_id == pruning.pruned_through)
    return tx.execute(query).scalar() == pruning.pruned_chain


def prune_audit(tx: Tx, after_id: int, through_id: int, chain: str, *, now: datetime) -> int:
    """Delete the entries up to `through_id`, after storing their chain, which the trigger requires."""
    tx.execute(sa.insert(audit_prunings).values(through_id=through_id, chain=chain, pruned_at=now))
    columns = audit_entries.c
    pruned = (columns.id > after_id) & (columns.id <= through_id)
    return tx.execute(sa.delete(audit_entries).where(pruned)).rowcount


def get_position(tx: Tx, kind: str) -> int:
    columns = retention_positions.c
    return tx.execute(sa.select(columns.position).where(columns.kind == kind)).scalar() or 0


def move_position(tx: Tx, kind: str, position: int, *, only_below: int | None = None) -> bool:
    """Set the position; with `only_below`, only if it is below that. False if it was not set."""
    columns = retention_positions.c
    mine: list[sa.ColumnElement[bool]] = [columns.kind == kind]
    if only_below is not None:
        mine.append(columns.position < only_below)
    if tx.execute(sa.update(retention_positions).where(*mine).values(position=position)).rowcount:
        return True
    if tx.execute(sa.select(columns.kind).where(columns.kind == kind)).first() is not None:
        return False
    tx.execute(sa.insert(retention_positions).values(kind=kind, position=position))
    return True


def first_history_id(tx: Tx, member_id: int) -> int:
    query = sa.select(_h.id).where(_h.member_id == member_id).order_by(_h.member_id, _h.id).limit(1)
    return tx.execute(query).scalar() or 0


def note_emptied(tx: Tx) -> None:
    """Note that values were removed: SQLite's write-ahead log has to be emptied after this
    transaction (retention.LogEmptier).
    """
    if tx.dialect.name == "sqlite":
        move_position(tx, EMPTIED, get_position(tx, EMPTIED) + 1)
