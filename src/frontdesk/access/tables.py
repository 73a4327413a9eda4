"""The tables of accounts, API clients, their secrets and their tokens (hashes only)."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, String, Table, UniqueConstraint

from frontdesk.access.model import AccountState
from frontdesk.db.schema import Id, IsoDate, UtcTime, metadata, words

accounts = Table(
    "accounts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", String(255), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("state", words(AccountState, 16), nullable=False),
)

api_clients = Table(
    "api_clients",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, ForeignKey("accounts.id"), nullable=True, index=True),  # null for an operator's
    Column("client_id", String(64), nullable=False),
    Column("name", String(255), nullable=False),
    Column("scopes", String(255), nullable=False),
    Column("requests_per_minute", Integer, nullable=True),
    Column("created_at", UtcTime, nullable=False),
    Column("revoked_at", UtcTime, nullable=True),
    UniqueConstraint("client_id"),
)

client_secrets = Table(
    "client_secrets",
    metadata,
    Column("id", Id, primary_key=True),
    Column("api_client_id", Id, ForeignKey("api_clients.id"), nullable=False, index=True),
    Column("secret_hash", LargeBinary(32), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("revoked_at", UtcTime, nullable=True),
    Column("expires_at", UtcTime, nullable=True),
    Column("last_used_on", IsoDate, nullable=True),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("token_hash", LargeBinary(32), primary_key=True),
    Column("api_client_id", Id, ForeignKey("api_clients.id"), nullable=False),
    Column("scopes", String(255), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Index("ix_access_tokens_expires_at", "expires_at"),
    Index("ix_access_tokens_api_client_id_expires_at", "api_client_id", "expires_at"),
)

# One row per client and minute: the requests that processes have taken (callers.py).
request_allowances = Table(
    "request_allowances",
    metadata,
    Column("api_client_id", Id, ForeignKey("api_clients.id"), primary_key=True),
    Column("minute", Id, primary_key=True),
    Column("taken", Integer, nullable=False),
)

# Failed client authentications, by client or by address (hashed: an address can be a person's).
failed_attempts = Table(
    "failed_attempts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("subject_hash", LargeBinary(32), nullable=False),
    Column("failed_at", UtcTime, nullable=False),
    Index("ix_failed_attempts_subject_hash_failed_at", "subject_hash", "failed_at"),
)
