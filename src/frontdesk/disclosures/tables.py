"""The tables of disclosures and of searches."""

import sqlalchemy as sa

from frontdesk.db.schema import Id, UtcTime, key, metadata, optional, required, words
from frontdesk.disclosures.model import CheckAnswer, CheckedField, DisclosureKind
from frontdesk.eligibility.search import Truncation

# Of the last hour; the audit trail keeps them for good. Each new row deletes old ones.
disclosures = sa.Table(
    "disclosures",
    metadata,
    *key(Id, "id"),
    *required(Id, "member_id"),
    *required(sa.String(64), "actor"),
    *required(words(DisclosureKind, 16), "kind"),
    *optional(Id, "session_id"),
    # Of a check: which field was asked, and whether the words agreed; not the words.
    *optional(words(CheckedField, 16), "field"),
    *optional(words(CheckAnswer, 16), "answer"),
    *required(UtcTime(), "at"),
    sa.Index("ix_disclosures_member_id_at", "member_id", "at"),
    sa.Index("ix_disclosures_actor_at", "actor", "at"),
)

# Of the last 15 minutes; the audit trail keeps them for good. Each new row deletes old ones.
opened_names = sa.Table(
    "opened_names",
    metadata,
    *key(Id, "id"),
    *required(Id, "file_id", "session_id"),
    *required(sa.String(64), "actor"),
    *required(UtcTime(), "at"),
    sa.Index("ix_opened_names_file_id_session_id", "file_id", "session_id"),
)

# Who was found by the searches of the last hour, for the session that searched. What was searched for
# is kept nowhere. Each new row deletes old ones.
people_searches = sa.Table(
    "people_searches",
    metadata,
    *key(Id, "id"),
    *required(sa.String(64), "number", unique=True),
    *required(sa.String(64), "actor"),
    *required(Id, "session_id", "account_id"),
    *required(sa.Text(), "member_ids"),
    *optional(words(Truncation, 16), "truncated"),
    *required(UtcTime(), "at"),
    sa.Index("ix_people_searches_actor_at", "actor", "at"),
)
