"""The tables of users, the links that make them, their factors, sessions and browsers. Secrets are
stored as hashes only.
"""

from sqlalchemy import Boolean, Index, Integer, LargeBinary, String, Table, text

from frontdesk.db.schema import (
    NEVER_REUSED,
    Id,
    Json,
    UtcTime,
    key,
    metadata,
    optional,
    required,
    words,
)
from frontdesk.users.model import NAME_LENGTH, UserState

EMAIL_LENGTH = 254
_IS_ACTIVE = "state = 'active'"

# `roles`: since when each is held, as a JSON object; `named_accounts`: those of a support role, null
# for every one. The seed of a second factor is derived from `factor_salt`; `offered_salt` is that of
# one that is being set up. `factor_step`: the last step of 30 s whose code was used.
users = Table(
    "users",
    metadata,
    *key(Id, "id"),
    *optional(Id, "account_id", to="accounts.id", index=True),  # null: of the installation
    *required(String(EMAIL_LENGTH), "email"),
    *required(String(NAME_LENGTH), "name"),
    *required(Json, "roles"),
    *optional(Json, "named_accounts"),
    *optional(String(64), "time_zone"),
    *required(words(UserState, 8), "state"),
    *required(Boolean(), "is_demo"),
    *optional(String(255), "password_hash"),
    *optional(String(64), "factor_salt", "offered_salt"),
    *optional(Id, "factor_step"),
    *required(String(64), "invited_by"),
    *optional(String(64), "factor_removed_by"),
    *required(UtcTime(), "created_at"),
    *optional(UtcTime(), "last_signed_in_at", "factor_removed_at", "ended_at"),
    Index(
        "uq_users_email",
        "email",
        unique=True,
        sqlite_where=text(_IS_ACTIVE),
        postgresql_where=text(_IS_ACTIVE),
    ),
    **NEVER_REUSED,
)

user_invitations = Table(
    "user_invitations",
    metadata,
    *key(Id, "id"),
    *required(LargeBinary(32), "secret_hash", unique=True),
    *optional(Id, "account_id", to="accounts.id", index=True),
    *required(String(EMAIL_LENGTH), "email"),
    *required(Json, "roles"),  # a list
    *optional(Json, "named_accounts"),
    *required(String(64), "invited_by"),
    *required(UtcTime(), "created_at", "expires_at"),
    Index("ix_user_invitations_expires_at", "expires_at"),
    Index("ix_user_invitations_invited_by", "invited_by"),
    **NEVER_REUSED,
)

# One for each user at most: a newer link ends the older.
password_resets = Table(
    "password_resets",
    metadata,
    *key(Id, "user_id", to="users.id"),
    *required(LargeBinary(32), "secret_hash", unique=True),
    *required(String(64), "made_by"),
    *required(UtcTime(), "created_at", "expires_at"),
    Index("ix_password_resets_expires_at", "expires_at"),
    Index("ix_password_resets_made_by", "made_by"),
)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    *key(Id, "user_id", to="users.id"),
    *key(LargeBinary(32), "code_hash"),
)

# Sign-ins whose password was right.
sign_in_attempts = Table(
    "sign_in_attempts",
    metadata,
    *key(LargeBinary(32), "secret_hash"),
    *required(Id, "user_id", to="users.id", index=True),
    *required(Integer(), "wrong_codes", default=0),
    *required(UtcTime(), "created_at", "expires_at"),
    Index("ix_sign_in_attempts_expires_at", "expires_at"),
)

sessions = Table(
    "sessions",
    metadata,
    *key(Id, "id"),
    *required(LargeBinary(32), "secret_hash", unique=True),
    *required(Id, "user_id", to="users.id"),
    *required(Integer(), "wrong_codes", default=0),
    *required(UtcTime(), "created_at", "last_used_at", "ends_at"),
    *optional(UtcTime(), "factor_at"),
    Index("ix_sessions_ends_at", "ends_at"),
    Index("ix_sessions_user_id_id", "user_id", "id"),
    **NEVER_REUSED,
)

# Browsers that have signed the user in before. One browser has one secret for all its users.
known_browsers = Table(
    "known_browsers",
    metadata,
    *key(LargeBinary(32), "secret_hash"),
    *key(Id, "user_id", to="users.id"),
    *required(UtcTime(), "seen_at"),
    Index("ix_known_browsers_user_id_seen_at", "user_id", "seen_at"),
    Index("ix_known_browsers_seen_at", "seen_at"),
)

# Which secrets of API clients a user was shown, and when last.
client_secrets_seen = Table(
    "client_secrets_seen",
    metadata,
    *key(Id, "api_client_id", to="api_clients.id"),
    *key(Id, "user_id", to="users.id"),
    *required(UtcTime(), "seen_at"),
    Index("ix_client_secrets_seen_user_id", "user_id"),
)

# The forms of a user that have shown a secret: each shows one once (once.py).
used_forms = Table(
    "used_forms",
    metadata,
    *key(Id, "user_id", to="users.id"),
    *key(LargeBinary(32), "number_hash"),
    *required(UtcTime(), "used_at"),
    Index("ix_used_forms_used_at", "used_at"),
)
