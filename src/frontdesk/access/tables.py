"""The tables of accounts, API clients, their secrets and their tokens (hashes only)."""

from sqlalchemy import Boolean, Index, Integer, LargeBinary, String, Table

from frontdesk.access.model import IMMEDIATE_HOURLY_LIMIT, AccountState
from frontdesk.db.schema import Id, IsoDate, UtcTime, key, metadata, optional, required, words

accounts = Table(
    "accounts",
    metadata,
    *key(Id, "id"),
    *required(String(255), "name"),
    *required(UtcTime(), "created_at"),
    *required(words(AccountState, 16), "state"),
    # The most immediate invitations in any 60 minutes; the account's deliverability settings don't
    # touch it.
    *required(Integer(), "immediate_hourly_limit", server_default=str(IMMEDIATE_HOURLY_LIMIT)),
    *optional(String(64), "time_zone"),  # where the members' days begin and end
    *required(Boolean(), "reopens_absent"),
)

api_clients = Table(
    "api_clients",
    metadata,
    *key(Id, "id"),
    *optional(Id, "account_id", to="accounts.id"),  # null for an operator's
    *required(String(64), "client_id", unique=True),
    *required(String(255), "name", "scopes"),
    *optional(Integer(), "requests_per_minute"),
    *required(UtcTime(), "created_at"),
    *optional(UtcTime(), "revoked_at"),
    Index("ix_api_clients_account_id_id", "account_id", "id"),
    # An account has 100 live clients at most, and any number of revoked ones. Not partial: PostgreSQL
    # read an empty table by it to check a token.
    Index("ix_api_clients_account_id_revoked_at_id", "account_id", "revoked_at", "id"),
)

client_secrets = Table(
    "client_secrets",
    metadata,
    *key(Id, "id"),
    *required(Id, "api_client_id", to="api_clients.id", index=True),
    *required(LargeBinary(32), "secret_hash"),
    *required(UtcTime(), "created_at"),
    *optional(UtcTime(), "revoked_at", "expires_at"),
    *optional(IsoDate(), "last_used_on"),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    *key(LargeBinary(32), "token_hash"),
    *required(Id, "api_client_id", to="api_clients.id"),
    *required(String(255), "scopes"),
    *required(UtcTime(), "created_at", "expires_at"),
    Index("ix_access_tokens_expires_at", "expires_at"),
    Index("ix_access_tokens_api_client_id_expires_at", "api_client_id", "expires_at"),
)

# One row per client and minute: the requests that processes have taken (callers.py).
request_allowances = Table(
    "request_allowances",
    metadata,
    *key(Id, "api_client_id", to="api_clients.id"),
    *key(Id, "minute"),
    *required(Integer(), "taken"),
)

# Failed client authentications, by client or by address (hashed: an address can be a person's).
failed_attempts = Table(
    "failed_attempts",
    metadata,
    *key(Id, "id"),
    *required(LargeBinary(32), "subject_hash"),
    *required(UtcTime(), "failed_at"),
    Index("ix_failed_attempts_subject_hash_failed_at", "subject_hash", "failed_at"),
)
