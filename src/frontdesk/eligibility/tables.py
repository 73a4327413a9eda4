"""The tables of eligible members and their history."""

from typing import Any

import sqlalchemy as sa

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, metadata
from frontdesk.eligibility.fields import EMAIL_LENGTH, FIELDS, UNIQUE, Field, Storage

_TYPES: dict[Storage, Any] = {Storage.DATE: IsoDate, Storage.JSON: Json}


def _column(field: Field) -> sa.Column[Any]:
    kind = field.kind
    column_type = _TYPES.get(kind.storage) or sa.String(kind.length)
    # A JSON object is empty where nothing was given.
    return sa.Column(
        field.name, column_type, nullable=not field.required and kind.storage is not Storage.JSON
    )


def _index_of_some(column: str) -> sa.Index:
    there = sa.text(f"{column} IS NOT NULL")
    return sa.Index(f"ix_members_{column}", column, sqlite_where=there, postgresql_where=there)


members = sa.Table(
    "members",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("account_id", Id, nullable=False),
    sa.Column("plan_id", Id, nullable=False),
    # 0 where the three keys are unique over the whole service, else the account's id: one set of indexes for both.
    # A withdrawn record is alone in the scope -id, so its keys are free again.
    sa.Column("uniqueness_scope", Id, nullable=False),
    *(_column(field) for field in FIELDS.values() if field.kind.storage is not Storage.NONE),
    sa.Column("email_folded", sa.String(2 * EMAIL_LENGTH), nullable=True),
    # Only of a member that was ended by absence: its earlier expiry_date; 9999-12-31 stands for none (eligibility.decide).
    sa.Column("expiry_before_absence", IsoDate, nullable=True),
    # The digest of a file's row that agrees with the record (docs/decisions/0075). Every write sets or clears it.
    sa.Column("row_digest", sa.String(32), nullable=True),
    # A digest of the account and REF*0F of an 834, shared by the members of a family (docs/834.md).
    sa.Column("family_digest", sa.String(32), nullable=True),
    # A keyed digest of account, folded names and dob (eligibility.persons). Every write that changes one of them renews it.
    sa.Column("person_digest", sa.String(32), nullable=True),
    # The kept member, after `member merge`.
    sa.Column("merged_into", Id, nullable=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    *(sa.UniqueConstraint(column, "uniqueness_scope") for column in UNIQUE.values()),
    # A plan's members in order, for the comparison with a full eligibility file.
    sa.Index("ix_members_plan_id_id", "plan_id", "id"),
    *map(_index_of_some, ("family_digest", "person_digest", "merged_into")),
    # Room on each page, so that an update need not touch the indexes (PostgreSQL's HOT updates).
    postgresql_with={"fillfactor": 80},
)

# The changes of each accepted request to a record: {"field": [from, to], ...}. Rows are added and never changed.
member_history = sa.Table(
    "member_history",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("member_id", Id, sa.ForeignKey("members.id"), nullable=False),
    sa.Column("outcome", sa.String(9), nullable=False),
    sa.Column("plan_id", Id, nullable=False),
    sa.Column("changes", Json, nullable=False),
    sa.Column("client", sa.String(64), nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False),
    # The eligibility file; null for a POST. An undo uses this, never a request id, which callers choose.
    sa.Column("file_id", Id, nullable=True),
    sa.Column("changed_at", UtcTime, nullable=False),
    sa.Index("ix_member_history_member_id_id", "member_id", "id"),
)

# Pairs of similar members that a person has marked as two people (`member distinct`).
distinct_members = sa.Table(
    "distinct_members",
    metadata,
    sa.Column("lower_id", Id, sa.ForeignKey("members.id"), primary_key=True),
    sa.Column("higher_id", Id, sa.ForeignKey("members.id"), primary_key=True, index=True),
    sa.Column("account_id", Id, nullable=False),
)

# The client's cross-account collisions on its last day (UTC) with any.
uniqueness_probes = sa.Table(
    "uniqueness_probes",
    metadata,
    sa.Column("client", sa.String(64), primary_key=True),
    sa.Column("account_id", Id, nullable=False),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("taken", sa.Integer, nullable=False),
)

# One row: the uniqueness rule of this database (a server with another rule refuses to start on it), the key of
# the digests of files' rows, and what `db.write_probe` writes.
installation = sa.Table(
    "installation",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uniqueness", sa.String(7), nullable=False),
    sa.Column("row_digest_key", sa.String(64), nullable=False),
    sa.Column("written", sa.LargeBinary, nullable=True),
)
