"""The table of audit entries; rows are only ever added (the database refuses to change or delete
one).
"""

from sqlalchemy import Index, String, Table, text

from frontdesk.db.schema import Id, Json, UtcTime, key, metadata, optional, required

# Requests for records write most entries, and an index of them all would make a POST 2 to 4 % slower.
# What is about members is found by the member, or by the user.
NOT_ABOUT_MEMBERS = text(
    "substr(action, 1, 6) <> 'member' AND substr(action, 1, 12) <> 'eligibility.'"
)
BY_USERS = text("substr(actor, 1, 5) = 'user:'")

# Ids of members, files, plans and clients are equal, and a client alone may have a million entries of
# tokens: with one index of all subjects the page about member 7 took 10 s (at 10^7 entries).
OF_A_MEMBER = text("(substr(action, 1, 7) = 'member.' OR substr(action, 1, 12) = 'eligibility.')")
OF_ANOTHER = text("substr(action, 1, 7) <> 'member.' AND substr(action, 1, 12) <> 'eligibility.'")

# What a user of the console does to learn of a person; what programs do has other names. Nothing else
# is in the index, so it costs a request for a record nothing.
LOOKS = text(
    "action IN ('file.names_opened', 'member.checked', 'member.opened', 'people.searched')"
)

audit_entries = Table(
    "audit_entries",
    metadata,
    *key(Id, "id"),
    *required(UtcTime(), "at"),
    *optional(Id, "account_id"),
    *required(String(64), "actor"),
    *required(String(40), "action"),
    *optional(Id, "subject_id"),
    *required(String(64), "request_id"),
    *optional(Json, "detail"),
    Index(
        "ix_audit_entries_member",
        "subject_id",
        "id",
        sqlite_where=OF_A_MEMBER,
        postgresql_where=OF_A_MEMBER,
    ),
    Index(
        "ix_audit_entries_subject_id_action_id",
        "subject_id",
        "action",
        "id",
        sqlite_where=OF_ANOTHER,
        postgresql_where=OF_ANOTHER,
    ),
    Index(
        "ix_audit_entries_account_id_id",
        "account_id",
        "id",
        sqlite_where=NOT_ABOUT_MEMBERS,
        postgresql_where=NOT_ABOUT_MEMBERS,
    ),
    Index(
        "ix_audit_entries_actor_id", "actor", "id", sqlite_where=BY_USERS, postgresql_where=BY_USERS
    ),
    Index(
        "ix_audit_entries_looks",
        "account_id",
        "action",
        "at",
        "actor",
        sqlite_where=LOOKS,
        postgresql_where=LOOKS,
    ),
    # PostgreSQL counts in an index alone where autovacuum has been. By default it comes when a fifth of
    # the entries is new; it skips the pages that it has seen.
    postgresql_with={
        "autovacuum_vacuum_insert_scale_factor": 0,
        "autovacuum_vacuum_insert_threshold": 100_000,
    },
)
