"""The tables of erasures, legal holds and retention."""

from sqlalchemy import String, Table

from frontdesk.db.schema import Id, UtcTime, key, metadata, required, words
from frontdesk.privacy.model import ErasureCause

# The fact that a member was erased. Rows are only ever added. The triggers of `member_history` look
# here.
erasures = Table(
    "erasures",
    metadata,
    *key(Id, "member_id", to="members.id"),
    *required(Id, "account_id"),
    *required(UtcTime(), "erased_at"),
    *required(words(ErasureCause, 9), "cause"),
    *required(String(64), "actor", "request_id"),
)

legal_holds = Table(
    "legal_holds",
    metadata,
    *key(Id, "member_id", to="members.id"),
    *required(Id, "account_id", index=True),
    *required(String(100), "reference"),
    *required(UtcTime(), "held_at"),
    *required(String(64), "actor"),
)

# Up to which entry the audit trail was pruned, with the chain of its export at that entry
# (audit.chain). Rows are only ever added. The trigger of `audit_entries` looks here.
audit_prunings = Table(
    "audit_prunings",
    metadata,
    *required(Id, "through_id", primary_key=True, autoincrement=False),
    *required(String(64), "chain"),
    *required(UtcTime(), "pruned_at"),
)

# How far retention has read a table that it goes through by id.
retention_positions = Table(
    "retention_positions", metadata, *key(String(32), "kind"), *required(Id, "position")
)
