"""The tables of eligible members and their history."""

from typing import Any

import sqlalchemy as sa

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, key, metadata, optional, required
from frontdesk.eligibility.field_kinds import EMAIL_LENGTH, Storage
from frontdesk.eligibility.fields import FIELDS, UNIQUE, Field

_TYPES: dict[Storage, Any] = {Storage.DATE: IsoDate, Storage.JSON: Json}


def _column(field: Field) -> sa.Column[Any]:
    kind = field.kind
    column_type = _TYPES.get(kind.storage) or sa.String(kind.length)
    # A JSON object is empty where nothing was given.
    is_nullable = not field.required and kind.storage is not Storage.JSON
    return sa.Column(field.name, column_type, nullable=is_nullable)


def _index_of_some(column: str) -> sa.Index:
    there = sa.text(f"{column} IS NOT NULL")
    return sa.Index(f"ix_members_{column}", column, sqlite_where=there, postgresql_where=there)


members = sa.Table(
    "members",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", "plan_id"),
    # 0 where the three keys are unique over the whole service, else the account's id: one set of
    # indexes for both. A withdrawn record is alone in the scope -id, so its keys are free again.
    *required(Id, "uniqueness_scope"),
    *(_column(field) for field in FIELDS.values() if field.kind.storage is not Storage.NONE),
    *optional(sa.String(2 * EMAIL_LENGTH), "email_folded"),
    # Only of a member that was ended by absence: its earlier expiry_date; 9999-12-31 stands for
    # none (eligibility.decide).
    *optional(IsoDate(), "expiry_before_absence"),
    # The coverages that count; null where the dates and the plan say all (eligibility.coverages).
    *optional(Json, "coverages"),
    # The day on which the record has to be derived from the coverages again.
    *optional(IsoDate(), "derive_on"),
    # True for a dependent whose address was taken from its subscriber; a record with an address of
    # its own clears the mark.
    *optional(sa.Boolean(), "shares_home"),
    # The digest of a file's row that agrees with the record (docs/decisions/0075). Every write sets
    # or clears it.
    *optional(sa.String(32), "row_digest"),
    # A digest of the account and REF*0F of an 834, shared by the members of a family (docs/834.md).
    *optional(sa.String(32), "family_digest"),
    # A keyed digest of account, folded names and dob (eligibility.persons). Every write that
    # changes one of them renews it.
    *optional(sa.String(32), "person_digest"),
    # The kept member, after `member merge`.
    *optional(Id, "merged_into"),
    *required(UtcTime(), "created_at", "updated_at"),
    sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    *(sa.UniqueConstraint(column, "uniqueness_scope") for column in UNIQUE.values()),
    # A plan's members in order, for the comparison with a full eligibility file.
    sa.Index("ix_members_plan_id_id", "plan_id", "id"),
    # The people of an account who were born on a day, for the search by last name. Every other
    # statement with the account says `account_id + 0`, so that no planner takes this index for it.
    sa.Index("ix_members_account_id_dob_id", "account_id", "dob", "id"),
    *map(_index_of_some, ("family_digest", "person_digest", "merged_into", "derive_on")),
    # Room on each page, so that an update need not touch the indexes (PostgreSQL's HOT updates).
    postgresql_with={"fillfactor": 80},
)

# The changes of each accepted request to a record: {"field": [from, to], ...}. Rows are added and
# never changed.
member_history = sa.Table(
    "member_history",
    metadata,
    *key(Id, "id"),
    *required(Id, "member_id", to="members.id"),
    *required(sa.String(9), "outcome"),
    *required(Id, "plan_id"),
    *required(Json, "changes"),
    *required(sa.String(64), "client", "request_id"),
    # The eligibility file; null for a POST. An undo uses this, never a request id, which callers
    # choose.
    *optional(Id, "file_id"),
    *required(UtcTime(), "changed_at"),
    sa.Index("ix_member_history_member_id_id", "member_id", "id"),
)

# Pairs of similar members that a person has marked as two people (`member distinct`).
distinct_members = sa.Table(
    "distinct_members",
    metadata,
    *key(Id, "lower_id", to="members.id"),
    *key(Id, "higher_id", to="members.id"),
    *required(Id, "account_id"),
    sa.Index("ix_distinct_members_higher_id", "higher_id"),
)

# The account's answers about values of other accounts, on its last day (UTC) with any.
uniqueness_probes = sa.Table(
    "uniqueness_probes",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *required(sa.String(10), "day"),
    *required(sa.Integer(), "taken"),
)

# The account's records that had a value of another account, the holder, on their last day (UTC)
# with any.
uniqueness_holders = sa.Table(
    "uniqueness_holders",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *key(Id, "holder_id", to="accounts.id"),
    *required(sa.String(10), "day"),
    *required(sa.Integer(), "taken"),
)
