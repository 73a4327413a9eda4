"""The tables of provider groups and plans."""

from sqlalchemy import Boolean, Integer, String, Table, Text, UniqueConstraint

from frontdesk.db.schema import Id, UtcTime, key, metadata, optional, required
from frontdesk.plans.model import DUTY_HOURS

provider_groups = Table(
    "provider_groups",
    metadata,
    *key(Id, "id"),
    *optional(String(255), "external_id", unique=True),
    *required(String(255), "name"),
    *required(UtcTime(), "created_at"),
    *optional(UtcTime(), "fed_at"),  # when queue events last came
    *required(Integer(), "duty_hours", server_default=str(DUTY_HOURS)),
)

plans = Table(
    "plans",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", to="accounts.id"),
    *required(Id, "provider_group_id", to="provider_groups.id", index=True),
    *required(String(255), "external_id", "name"),
    *optional(Text(), "description"),
    *required(Boolean(), "accepting_patients"),
    *required(Integer(), "version"),
    *required(UtcTime(), "created_at"),
    UniqueConstraint("account_id", "external_id"),
    UniqueConstraint(
        "account_id", "id"
    ),  # what composite foreign keys point at: a plan of THIS account
)
