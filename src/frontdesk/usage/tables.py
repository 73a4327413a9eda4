"""The tables of usage: bytes by day and account, and the quotas of accounts."""

from sqlalchemy import BigInteger, String, Table

from frontdesk.db.schema import Id, key, metadata, required

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
