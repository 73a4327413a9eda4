"""The tables of eligibility files: the files, their content in parts, what happened to their rows, mappings, settings."""

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    false,
    text,
)

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, metadata, words
from frontdesk.files.model import FileState, FileStep
from frontdesk.formats.model import FileMode, Format


def _where(condition: str) -> dict[str, Any]:
    """For the rows of an index that is partial."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


eligibility_files = Table(
    "eligibility_files",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("plan_id", Id, nullable=False),
    # An undo is a file without content that takes back what another one did.
    Column("undoes_id", Id, ForeignKey("eligibility_files.id"), nullable=True),
    Column("format", words(Format, 8), nullable=True),
    Column("encoding", String(32), nullable=True),
    Column("delimiter", String(1), nullable=True),
    Column("file_name", String(255), nullable=True),
    Column("mapping", Json, nullable=True),
    Column("mapping_name", String(64), nullable=True),  # of the account's mapping that was copied
    Column("mode", words(FileMode, 7), nullable=False, default=FileMode.CHANGE),
    Column("asked_mode", words(FileMode, 7), nullable=True),
    Column("dry_run", Boolean, nullable=False, default=False),
    Column("state", words(FileState, 9), nullable=False),
    Column("step", words(FileStep, 5), nullable=False, default=FileStep.CHECK),
    Column("approved", Boolean, nullable=False, default=False),
    Column("size_bytes", Id, nullable=False, default=0),
    Column("sha256", String(64), nullable=True),
    Column("file_date", IsoDate, nullable=True),
    Column("rows_total", Integer, nullable=True),
    Column("rows_done", Integer, nullable=False, default=0),
    Column("chunks_done", Integer, nullable=False, default=0),
    # The plan's members before a full file was applied, and how many of them it omits.
    Column("members_before", Integer, nullable=True),
    Column("members_missing", Integer, nullable=True),
    Column("counts", Json, nullable=False, default=dict),
    Column("codes", Json, nullable=False, default=dict, server_default="{}"),
    Column("ignored", Json, nullable=False, default=list),
    Column("problem", Json, nullable=True),
    Column("client", String(64), nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime, nullable=True),
    Column("finished_at", UtcTime, nullable=True),
    # The claim of a worker counts the epoch up, and every later write is `WHERE epoch = mine`.
    Column("epoch", Integer, nullable=False, default=0),
    Column("lease_until", UtcTime, nullable=True),
    # The caller's name for an upload, by which a retry finds the file.
    Column("idempotency_key", String(255), nullable=True),
    Column("idempotency_digest", String(64), nullable=True),
    ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    Index("ix_eligibility_files_state_id", "state", "id"),
    Index("ix_eligibility_files_account_id_id", "account_id", "id"),
    Index("ix_eligibility_files_account_id_state_id", "account_id", "state", "id"),
    Index("ix_eligibility_files_account_id_sha256_id", "account_id", "sha256", "id"),
    Index("ix_eligibility_files_plan_id_id", "plan_id", "id"),
    Index("uq_eligibility_files_account_id_idempotency_key", "account_id", "idempotency_key", unique=True),
    Index("ix_eligibility_files_undoes_id", "undoes_id"),
    # One file at a time per account.
    Index("uq_eligibility_files_account_id", "account_id", unique=True, **_where("state = 'running'")),
)

# The mappings of accounts by name. The default is for files that come without a mapping.
eligibility_mappings = Table(
    "eligibility_mappings",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("mapping", Json, nullable=False),
    Column("is_default", Boolean, nullable=False),
    Column("changed_at", UtcTime, nullable=False),
    Index("uq_eligibility_mappings_account_id", "account_id", unique=True, **_where("is_default")),
)

# How files of an account are treated; the defaults of FileSettings count where there is no row.
file_settings = Table(
    "file_settings",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("reopen_absent", Boolean, nullable=False),
    Column("second_approver", Boolean, nullable=False, default=False, server_default=false()),
)

# When a worker last took a file of the account in hand: accounts take turns.
file_turns = Table(
    "file_turns",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("taken_at", UtcTime, nullable=False),
)

# The content in parts of 1 MiB (each deflated), so that any worker on any host can read it.
file_parts = Table(
    "file_parts",
    metadata,
    Column("file_id", Id, ForeignKey("eligibility_files.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

# What happened to each row, in the order of the report; written in the transaction that applied the chunk. No foreign keys: their
# checks would cost as much as the row, and neither files with rows nor members are deleted.
file_rows = Table(
    "file_rows",
    metadata,
    Column("file_id", Id, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, nullable=True),  # of the row in the file; null for a member that the file omits
    Column("member_id", Id, nullable=True),
    Column("external_id", String(255), nullable=True),
    Column("outcome", String(16), nullable=False),
    Column("changed", Json, nullable=True),  # names of fields
    Column("faults", Json, nullable=True),  # [field, code, message]
    Column("warnings", Json, nullable=True),  # [field, code, message or nothing]
    Column("left_plan_id", Id, nullable=True),  # the plan that a moved member left
    Index("ix_file_rows_member_id", "member_id"),
    # For the erasure of a person: of rows without a member, which are few.
    Index(
        "ix_file_rows_external_id", "external_id", **_where("member_id IS NULL AND external_id IS NOT NULL")
    ),
    sqlite_with_rowid=False,
)

# The rows of a chunk that changed nothing, as packed numbers: 3 bytes a row, where a row of a table takes 150.
file_unchanged = Table(
    "file_unchanged",
    metadata,
    Column("file_id", Id, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)
