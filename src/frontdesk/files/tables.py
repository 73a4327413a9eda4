"""The tables of eligibility files: the files, their content in parts, what happened to their rows, mappings, settings."""

from typing import Any

import sqlalchemy as sa

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, metadata, words
from frontdesk.files.model import FileState, FileStep
from frontdesk.formats.model import FileMode, Format


def _where(condition: str) -> dict[str, Any]:
    """For the rows of an index that is partial."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


eligibility_files = sa.Table(
    "eligibility_files",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("account_id", Id, nullable=False),
    sa.Column("plan_id", Id, nullable=False),
    # An undo is a file without content that takes back what another one did.
    sa.Column("undoes_id", Id, sa.ForeignKey("eligibility_files.id"), nullable=True),
    sa.Column("format", words(Format, 8), nullable=True),
    sa.Column("encoding", sa.String(32), nullable=True),
    sa.Column("delimiter", sa.String(1), nullable=True),
    sa.Column("file_name", sa.String(255), nullable=True),
    sa.Column("mapping", Json, nullable=True),
    sa.Column("mapping_name", sa.String(64), nullable=True),  # of the account's mapping that was copied
    sa.Column("mode", words(FileMode, 7), nullable=False, default=FileMode.CHANGE),
    sa.Column("asked_mode", words(FileMode, 7), nullable=True),
    sa.Column("dry_run", sa.Boolean, nullable=False, default=False),
    sa.Column("state", words(FileState, 9), nullable=False),
    sa.Column("step", words(FileStep, 5), nullable=False, default=FileStep.CHECK),
    sa.Column("approved", sa.Boolean, nullable=False, default=False),
    sa.Column("size_bytes", Id, nullable=False, default=0),
    sa.Column("sha256", sa.String(64), nullable=True),
    sa.Column("file_date", IsoDate, nullable=True),
    sa.Column("rows_total", sa.Integer, nullable=True),
    sa.Column("rows_done", sa.Integer, nullable=False, default=0),
    sa.Column("chunks_done", sa.Integer, nullable=False, default=0),
    # The plan's members before a full file was applied, and how many of them it omits.
    sa.Column("members_before", sa.Integer, nullable=True),
    sa.Column("members_missing", sa.Integer, nullable=True),
    sa.Column("counts", Json, nullable=False, default=dict),
    sa.Column("codes", Json, nullable=False, default=dict, server_default="{}"),
    sa.Column("ignored", Json, nullable=False, default=list),
    sa.Column("problem", Json, nullable=True),
    sa.Column("client", sa.String(64), nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("started_at", UtcTime, nullable=True),
    sa.Column("finished_at", UtcTime, nullable=True),
    # The claim of a worker counts the epoch up, and every later write is `WHERE epoch = mine`.
    sa.Column("epoch", sa.Integer, nullable=False, default=0),
    sa.Column("lease_until", UtcTime, nullable=True),
    # The caller's name for an upload, by which a retry finds the file.
    sa.Column("idempotency_key", sa.String(255), nullable=True),
    sa.Column("idempotency_digest", sa.String(64), nullable=True),
    sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    sa.Index("ix_eligibility_files_state_id", "state", "id"),
    sa.Index("ix_eligibility_files_account_id_id", "account_id", "id"),
    sa.Index("ix_eligibility_files_account_id_state_id", "account_id", "state", "id"),
    sa.Index("ix_eligibility_files_account_id_sha256_id", "account_id", "sha256", "id"),
    sa.Index("ix_eligibility_files_plan_id_id", "plan_id", "id"),
    sa.Index("uq_eligibility_files_account_id_idempotency_key", "account_id", "idempotency_key", unique=True),
    sa.Index("ix_eligibility_files_undoes_id", "undoes_id"),
    # One file at a time per account.
    sa.Index("uq_eligibility_files_account_id", "account_id", unique=True, **_where("state = 'running'")),
)

# The mappings of accounts by name. The default is for files that come without a mapping.
eligibility_mappings = sa.Table(
    "eligibility_mappings",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("mapping", Json, nullable=False),
    sa.Column("is_default", sa.Boolean, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
    sa.Index("uq_eligibility_mappings_account_id", "account_id", unique=True, **_where("is_default")),
)

# How files of an account are treated; the defaults of FileSettings count where there is no row.
file_settings = sa.Table(
    "file_settings",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("reopen_absent", sa.Boolean, nullable=False),
    sa.Column("second_approver", sa.Boolean, nullable=False, default=False, server_default=sa.false()),
)

# When a worker last took a file of the account in hand: accounts take turns.
file_turns = sa.Table(
    "file_turns",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("taken_at", UtcTime, nullable=False),
)

# The content in parts of 1 MiB (each deflated), so that any worker on any host can read it.
file_parts = sa.Table(
    "file_parts",
    metadata,
    sa.Column("file_id", Id, sa.ForeignKey("eligibility_files.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

# What happened to each row, in the order of the report; written in the transaction that applied the chunk. No foreign keys: their
# checks would cost as much as the row, and neither files with rows nor members are deleted.
file_rows = sa.Table(
    "file_rows",
    metadata,
    sa.Column("file_id", Id, primary_key=True, autoincrement=False),
    sa.Column("chunk", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column(
        "place", sa.Integer, nullable=True
    ),  # of the row in the file; null for a member that the file omits
    sa.Column("member_id", Id, nullable=True),
    sa.Column("external_id", sa.String(255), nullable=True),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("changed", Json, nullable=True),  # names of fields
    sa.Column("faults", Json, nullable=True),  # [field, code, message]
    sa.Column("warnings", Json, nullable=True),  # [field, code, message or nothing]
    sa.Column("left_plan_id", Id, nullable=True),  # the plan that a moved member left
    sa.Index("ix_file_rows_member_id", "member_id"),
    # For the erasure of a person: of rows without a member, which are few.
    sa.Index(
        "ix_file_rows_external_id", "external_id", **_where("member_id IS NULL AND external_id IS NOT NULL")
    ),
    sqlite_with_rowid=False,
)

# The rows of a chunk that changed nothing, as packed numbers: 3 bytes a row, where a row of a table takes 150.
file_unchanged = sa.Table(
    "file_unchanged",
    metadata,
    sa.Column("file_id", Id, primary_key=True, autoincrement=False),
    sa.Column("chunk", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
