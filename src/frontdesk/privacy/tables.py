"""The tables of erasures, legal holds and retention."""

from sqlalchemy import Column, ForeignKey, String, Table

from frontdesk.db.schema import Id, UtcTime, metadata, words
from frontdesk.privacy.model import ErasureCause

# The fact that a member was erased. Rows are only ever added. The triggers of `member_history` look here.
erasures = Table(
    "erasures",
    metadata,
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("erased_at", UtcTime, nullable=False),
    Column("cause", words(ErasureCause, 9), nullable=False),
    Column("actor", String(64), nullable=False),
    Column("request_id", String(64), nullable=False),
)

legal_holds = Table(
    "legal_holds",
    metadata,
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("account_id", Id, nullable=False, index=True),
    Column("reference", String(100), nullable=False),
    Column("held_at", UtcTime, nullable=False),
    Column("actor", String(64), nullable=False),
)

# Up to which entry the audit trail was pruned, with the chain of its export at that entry (audit.chain). Rows are only ever
# added. The trigger of `audit_entries` looks here.
audit_prunings = Table(
    "audit_prunings",
    metadata,
    Column("through_id", Id, primary_key=True, autoincrement=False),
    Column("chain", String(64), nullable=False),
    Column("pruned_at", UtcTime, nullable=False),
)

# How far retention has read a table that it goes through by id.
retention_positions = Table(
    "retention_positions",
    metadata,
    Column("kind", String(32), primary_key=True),
    Column("position", Id, nullable=False),
)
