"""The tables of eligible members and their history."""

from typing import Any

from sqlalchemy import (
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    text,
)

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, metadata
from frontdesk.eligibility.fields import EMAIL_LENGTH, FIELDS, UNIQUE, Field, Storage

_TYPES: dict[Storage, Any] = {Storage.DATE: IsoDate, Storage.JSON: Json}


def _column(field: Field) -> Column[Any]:
    kind = field.kind
    column_type = _TYPES.get(kind.storage) or String(kind.length)
    # A JSON object is empty where nothing was given.
    return Column(field.name, column_type, nullable=not field.required and kind.storage is not Storage.JSON)


def _index_of_some(column: str) -> Index:
    there = text(f"{column} IS NOT NULL")
    return Index(f"ix_members_{column}", column, sqlite_where=there, postgresql_where=there)


members = Table(
    "members",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("plan_id", Id, nullable=False),
    # 0 where the three keys are unique over the whole service, else the account's id: one set of indexes for both.
    # A record that an undo withdrew is alone in the scope -id, so its keys are free again.
    Column("uniqueness_scope", Id, nullable=False),
    *(_column(field) for field in FIELDS.values() if field.kind.storage is not Storage.NONE),
    Column("email_folded", String(2 * EMAIL_LENGTH), nullable=True),
    # Only of a member that a full file ended by omitting it; 9999-12-31 stands for none (eligibility.decide).
    Column("expiry_before_absence", IsoDate, nullable=True),
    # The digest of the file's row that says what the record says (docs/decisions/0075). Every write sets or clears it.
    Column("row_digest", String(32), nullable=True),
    # Stands for the account and REF*0F of an 834: the members that belong together (docs/834.md).
    Column("family_digest", String(32), nullable=True),
    # A keyed digest of account, folded names and dob (eligibility.persons). Every write that changes one of them renews it.
    Column("person_digest", String(32), nullable=True),
    # The member that this one's external_id leads to, after `member merge`.
    Column("merged_into", Id, nullable=True),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    *(UniqueConstraint(column, "uniqueness_scope") for column in UNIQUE.values()),
    # A plan's members in order, for the comparison with a full eligibility file.
    Index("ix_members_plan_id_id", "plan_id", "id"),
    *map(_index_of_some, ("family_digest", "person_digest", "merged_into")),
    # Room on each page, so that an update need not touch the indexes (PostgreSQL's HOT updates).
    postgresql_with={"fillfactor": 80},
)

# The changes of each accepted request to a record: {"field": [from, to], ...}. Rows are added and never changed.
member_history = Table(
    "member_history",
    metadata,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("outcome", String(9), nullable=False),
    Column("plan_id", Id, nullable=False),
    Column("changes", Json, nullable=False),
    Column("client", String(64), nullable=False),
    Column("request_id", String(64), nullable=False),
    # The eligibility file that did it; null for a POST. An undo goes by this, never by a request id, which callers choose.
    Column("file_id", Id, nullable=True),
    Column("changed_at", UtcTime, nullable=False),
    Index("ix_member_history_member_id_id", "member_id", "id"),
)

# Pairs of members that a person called two people, although they look like one (`member distinct`).
distinct_members = Table(
    "distinct_members",
    metadata,
    Column("lower_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("higher_id", Id, ForeignKey("members.id"), primary_key=True, index=True),
    Column("account_id", Id, nullable=False),
)

# How many records of a client told it that another account has their value, on the last day (UTC) that had any.
uniqueness_probes = Table(
    "uniqueness_probes",
    metadata,
    Column("client", String(64), primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("day", String(10), nullable=False),
    Column("taken", Integer, nullable=False),
)

# One row: the uniqueness rule that this database was made with (a server with another rule refuses to start on it), the key of
# the digests of files' rows, and what `db.write_probe` writes.
installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uniqueness", String(7), nullable=False),
    Column("row_digest_key", String(64), nullable=False),
    Column("written", LargeBinary, nullable=True),
)
