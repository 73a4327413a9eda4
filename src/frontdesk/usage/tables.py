"""The tables of usage: bytes by day and account, the quotas of accounts, the costs of requests."""

from sqlalchemy import BigInteger, String, Table

from frontdesk.db.schema import Id, key, metadata, optional, required

# One row per day (YYYY-MM-DD, UTC) and account that added something. Retention deletes it after 400
# days.
account_usage = Table(
    "account_usage",
    metadata,
    *key(String(10), "day"),
    *key(Id, "account_id", to="accounts.id"),
    *required(BigInteger(), "history_bytes", "answer_bytes", "file_bytes"),
)

# The defaults of `model.Quota` count where there is no row.
account_quotas = Table(
    "account_quotas",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *required(BigInteger(), "stored_bytes_per_day", "file_bytes_per_day"),
)

# One row per ten minutes (their beginning, UTC) and client that sent requests; the client is 0 for
# requests of none. Retention deletes it after two days. No foreign keys: it is written while
# requests wait.
request_costs = Table(
    "request_costs",
    metadata,
    *key(String(16), "slot"),
    *key(Id, "client"),
    *optional(Id, "account_id"),
    *required(BigInteger(), "requests", "loop_us", "database_us"),
)
