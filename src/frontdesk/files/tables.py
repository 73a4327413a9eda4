"""The tables of eligibility files: the files, their content in parts, what happened to their rows,
mappings, settings.
"""

from typing import Any

import sqlalchemy as sa

from frontdesk.db.schema import (
    NEVER_REUSED,
    Id,
    IsoDate,
    Json,
    UtcTime,
    key,
    metadata,
    optional,
    required,
    words,
)
from frontdesk.files.model import DraftState, FileState, FileStep
from frontdesk.formats.model import FileMode, Format


def _where(condition: str) -> dict[str, Any]:
    """For the rows of an index that is partial."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


eligibility_files = sa.Table(
    "eligibility_files",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", "plan_id"),
    # Its content is that of a draft.
    *optional(Id, "draft_id"),
    # An undo is a file without content that takes back what another one did.
    *optional(Id, "undoes_id", to="eligibility_files.id"),
    *optional(words(Format, 8), "format"),
    *optional(sa.String(32), "encoding"),
    *optional(sa.String(1), "delimiter"),
    *optional(sa.String(255), "file_name"),
    *optional(Json, "mapping"),
    *optional(sa.String(64), "mapping_name"),  # of the account's mapping that was copied
    *required(words(FileMode, 7), "mode", default=FileMode.CHANGE),
    *optional(words(FileMode, 7), "asked_mode"),
    *required(sa.Boolean(), "dry_run", "approved", default=False),
    *required(words(FileState, 9), "state"),
    *required(words(FileStep, 5), "step", default=FileStep.CHECK),
    *required(Id, "size_bytes", default=0),
    *optional(sa.String(64), "sha256"),
    *optional(IsoDate(), "file_date"),
    *optional(sa.String(15), "sender"),  # GS02 of an 834
    # `members_before`, `members_missing`: the plan's members before a full file was applied, and
    # how many of them it omits.
    # `rows_checked`: the rows that the check, or the decision of what the file would do, has read at
    # the last renewal of the lease.
    *optional(sa.Integer(), "rows_total", "rows_checked", "members_before", "members_missing"),
    *required(Json, "counts", "codes", default=dict),
    *required(Json, "ignored", default=list),
    # `shown`: by code the numbers for which the file was held.
    *optional(Json, "problem", "shown"),
    *required(sa.String(64), "client", "request_id"),
    *required(UtcTime(), "created_at"),
    *optional(UtcTime(), "started_at", "finished_at", "lease_until"),
    # The person or client that last approved or cancelled the file, or accepted its mapping.
    *optional(sa.String(64), "decided_by"),
    *optional(UtcTime(), "decided_at"),
    # The claim of a worker counts the epoch up, and every later write is `WHERE epoch = mine`.
    *required(sa.Integer(), "rows_done", "chunks_done", "epoch", default=0),
    sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    sa.Index("ix_eligibility_files_state_id", "state", "id"),
    sa.Index("ix_eligibility_files_account_id_id", "account_id", "id"),
    sa.Index("ix_eligibility_files_account_id_state_id", "account_id", "state", "id"),
    sa.Index("ix_eligibility_files_account_id_sha256_id", "account_id", "sha256", "id"),
    sa.Index("ix_eligibility_files_plan_id_id", "plan_id", "id"),
    sa.Index("ix_eligibility_files_plan_id_state_id", "plan_id", "state", "id"),
    sa.Index("ix_eligibility_files_undoes_id", "undoes_id"),
    sa.Index("ix_eligibility_files_draft_id", "draft_id", **_where("draft_id IS NOT NULL")),
    # One file at a time per account.
    sa.Index(
        "uq_eligibility_files_account_id", "account_id", unique=True, **_where("state = 'running'")
    ),
    **NEVER_REUSED,
)

# The mappings of accounts by name. The default is for files that come without a mapping.
eligibility_mappings = sa.Table(
    "eligibility_mappings",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *key(sa.String(64), "name"),
    *required(Json, "mapping"),
    *required(sa.Boolean(), "is_default"),
    *required(UtcTime(), "changed_at"),
    sa.Index(
        "uq_eligibility_mappings_account_id", "account_id", unique=True, **_where("is_default")
    ),
)

# How files of an account are treated; the defaults of FileSettings count where there is no row.
file_settings = sa.Table(
    "file_settings",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *required(sa.Boolean(), "second_approver"),
    *required(sa.Integer(), "most_members", "most_percent"),
)

# When a worker last took a file of the account in hand: accounts take turns.
file_turns = sa.Table(
    "file_turns",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *required(UtcTime(), "taken_at"),
)

# Uploads on their way through the steps of files.drafts, and their content in parts, as that of files.
file_drafts = sa.Table(
    "file_drafts",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", to="accounts.id"),
    *required(words(DraftState, 9), "state"),
    *required(sa.Integer(), "version", default=1),
    *optional(sa.String(255), "file_name"),
    *optional(words(Format, 8), "format"),
    *required(sa.String(32), "encoding"),
    *required(Id, "size_bytes", default=0),
    *optional(sa.String(64), "sha256"),
    *optional(Id, "plan_id"),
    *optional(words(FileMode, 7), "mode"),
    *optional(Json, "suggestion", "mapping"),
    *optional(Id, "dry_run_id", "file_id"),
    *required(sa.String(64), "client"),
    *required(UtcTime(), "created_at", "changed_at"),
    sa.Index("ix_file_drafts_account_id_id", "account_id", "id"),
    sa.Index("ix_file_drafts_changed_at", "changed_at"),
    sa.Index("ix_file_drafts_state_id", "state", "id"),
    **NEVER_REUSED,
)

draft_parts = sa.Table(
    "draft_parts",
    metadata,
    *key(Id, "draft_id", to="file_drafts.id"),
    *key(sa.Integer(), "number"),
    *required(sa.LargeBinary(), "content"),
)

# The content in parts of 1 MiB (each deflated), so that any worker on any host can read it.
file_parts = sa.Table(
    "file_parts",
    metadata,
    *key(Id, "file_id", to="eligibility_files.id"),
    *key(sa.Integer(), "number"),
    *required(sa.LargeBinary(), "content"),
)

# What happened to each row, in the order of the report; written in the transaction that applied the
# chunk. No foreign keys: their checks would cost as much as the row, and neither files with rows
# nor members are deleted.
file_rows = sa.Table(
    "file_rows",
    metadata,
    *key(Id, "file_id"),
    *key(sa.Integer(), "chunk", "position"),
    *optional(
        sa.Integer(), "place"
    ),  # of the row in the file; null for a member that the file omits
    *optional(Id, "member_id"),
    *optional(sa.String(255), "external_id"),
    *required(sa.String(16), "outcome"),
    # Names of fields; [field, code, message]; [field, code, message or nothing]; the access before
    # and after, and whether some of it is lost and gained.
    *optional(Json, "changed", "faults", "warnings", "access"),
    *optional(Id, "left_plan_id"),  # the plan that a moved member left
    # Of an 834: which ST of the file, and which INS of that.
    *optional(sa.Integer(), "transaction_number", "member_number"),
    sa.Index("ix_file_rows_member_id", "member_id"),
    # For the erasure of a person: of rows without a member, which are few.
    sa.Index(
        "ix_file_rows_external_id",
        "external_id",
        **_where("member_id IS NULL AND external_id IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)

# Which chunks of a report have lines with an outcome or a code, so that a page of a few lines among a
# million reads no other chunk. A row for each chunk costs a load less than an entry of an index for
# each row does, and knows codes, too (docs/decisions/0173).
file_lists = sa.Table(
    "file_lists",
    metadata,
    *key(Id, "file_id"),
    *key(sa.String(64), "word"),
    *key(sa.Integer(), "chunk"),
    sqlite_with_rowid=False,
)

# The rows of a chunk that changed nothing, as packed numbers: 3 bytes a row, where a row of a table
# takes 150.
file_unchanged = sa.Table(
    "file_unchanged",
    metadata,
    *key(Id, "file_id"),
    *key(sa.Integer(), "chunk"),
    *required(sa.LargeBinary(), "content"),
)
