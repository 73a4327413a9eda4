"""The tables of invitations and their delivery: settings, links, templates, reports, timelines,
windows, suppressed addresses.
"""

import sqlalchemy as sa

from frontdesk.db.schema import Id, Json, UtcTime, key, metadata, optional, required, words
from frontdesk.invitations import model
from frontdesk.mail.model import RELAY_WORDS

deliverability = sa.Table(
    "deliverability",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *required(sa.Boolean(), "enabled"),
    *required(sa.Integer(), "batch_size", "batch_interval_seconds", "hourly_limit"),
    *optional(sa.String(255), "sender_name"),
    *optional(sa.String(254), "sender_address"),
    *optional(sa.String(2000), "registration_url"),
)

suppressions = sa.Table(
    "suppressions",
    metadata,
    *key(sa.String(508), "address_folded"),
    # Who must not mail it: 0 is everybody, else the account that its reader unsubscribed from.
    *key(Id, "only_account_id"),
    # Each reason by itself: lifting a bounce leaves a complaint.
    *key(words(model.SuppressionReason, 32), "reason"),
    *required(UtcTime(), "created_at"),
    # The account that mailed the address; null for an operator's. Only this account is told.
    *optional(Id, "account_id"),
)

NEXT = ("delivery", "account_id", "plan_id", "due_at", "id")
IS_PENDING = sa.text("state = 'pending'")
LAPSES = sa.text("state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL")
OFFERED = sa.text("offered_at IS NOT NULL")
BOUNCED = sa.text("kind = 'bounced'")
IN_HAND = sa.text("state IN ('claimed', 'offered')")
HAS_MAILBOX_TIME = sa.text("mailbox_at IS NOT NULL")

invitations = sa.Table(
    "invitations",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", "plan_id"),
    *required(Id, "member_id", to="members.id"),
    *required(sa.String(16), "kind"),
    *required(words(model.Delivery, 9), "delivery"),
    *required(words(model.InvitationState, 9), "state"),
    *required(sa.String(254), "address"),
    *required(UtcTime(), "created_at", "updated_at"),
    # `due_at`: when a worker has to process it next: to claim it, or because a lease or a hold has
    # run out. NULL: never.
    *optional(UtcTime(), "due_at", "offered_at", "settled_at"),
    # The number of the claim: a write of an older claim is void. Attempts that the relay refused
    # for now, and answers lost.
    *required(sa.Integer(), "epoch", "attempts", "losses", server_default="0"),
    *optional(sa.String(255), "message_id"),
    *optional(words(model.InvitationStep, 32), "reason"),
    *optional(sa.Integer(), "relay_code"),
    *optional(sa.String(508), "address_folded"),  # null once the member is erased
    *optional(sa.String(RELAY_WORDS), "relay_words"),
    # The mailbox behind the address (`daily_limit`), and when a mail to it counts: when this one
    # was last claimed, or will be.
    *optional(sa.String(32), "mailbox_digest"),
    *optional(UtcTime(), "mailbox_at"),
    sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    sa.UniqueConstraint("member_id", "kind"),
    sa.UniqueConstraint("message_id"),
    sa.Index("ix_invitations_state_account_id_id", "state", "account_id", "id"),
    # Finds the next batch in the same time with any number of rows. The queries repeat the
    # conditions word for word.
    sa.Index("ix_invitations_next", *NEXT, sqlite_where=IS_PENDING, postgresql_where=IS_PENDING),
    sa.Index("ix_invitations_lapsing", "due_at", sqlite_where=LAPSES, postgresql_where=LAPSES),
    sa.Index(
        "ix_invitations_in_hand",
        "account_id",
        "delivery",
        sqlite_where=IN_HAND,
        postgresql_where=IN_HAND,
    ),
    # From the first claim on, for the same reason as the next one.
    sa.Index(
        "ix_invitations_mailbox",
        "mailbox_digest",
        "mailbox_at",
        sqlite_where=HAS_MAILBOX_TIME,
        postgresql_where=HAS_MAILBOX_TIME,
    ),
    # Messages to an address, from the first offer on, so that enqueueing does not pay for this
    # index.
    sa.Index(
        "ix_invitations_mailed", "address_folded", sqlite_where=OFFERED, postgresql_where=OFFERED
    ),
)

# Addresses that support entered for a member without proof: no invitation goes to one before
# somebody vouches for it, however it comes back to the member (docs/decisions/0179).
unproven_addresses = sa.Table(
    "unproven_addresses",
    metadata,
    *key(Id, "member_id", to="members.id"),
    *key(sa.String(508), "address_folded"),
)

# Each Message-ID that an invitation ever had, with the SHA-256 of the tokens in its links.
invitation_links = sa.Table(
    "invitation_links",
    metadata,
    *key(sa.String(64), "registration_hash"),
    *required(sa.String(64), "unsubscribe_hash"),
    *required(sa.String(255), "message_id", index=True),
    *required(Id, "invitation_id", to="invitations.id", index=True),
    *required(UtcTime(), "created_at"),
    sa.UniqueConstraint("unsubscribe_hash"),
)

# An account's own templates; NULL is the product's.
invitation_templates = sa.Table(
    "invitation_templates",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *optional(sa.String(500), "subject"),
    *optional(sa.Text(), "text", "html"),
    *required(UtcTime(), "updated_at"),
)

# Delivery reports: what happened to a message after the relay took it. Each kind counts once per
# message.
delivery_reports = sa.Table(
    "delivery_reports",
    metadata,
    *key(sa.String(255), "message_id"),
    *key(words(model.ReportEvent, 16), "kind"),
    *required(Id, "invitation_id", to="invitations.id"),
    *optional(sa.String(11), "status"),
    *required(UtcTime(), "received_at"),
    sa.Index(
        "ix_delivery_reports_bounced", "message_id", sqlite_where=BOUNCED, postgresql_where=BOUNCED
    ),
)

# Every step of every invitation. No foreign key: the check would cost as much as the entry, and no
# invitation is deleted.
invitation_events = sa.Table(
    "invitation_events",
    metadata,
    *key(Id, "id"),
    *required(Id, "invitation_id"),
    *required(UtcTime(), "at"),
    *required(words(model.InvitationState, 9), "from_state", "to_state"),
    *required(words(model.InvitationStep, 32), "reason"),
    *optional(sa.Integer(), "code"),
    *optional(sa.String(64), "actor"),  # who took the step, where a person or their program did
    sa.Index("ix_invitation_events_invitation_id_id", "invitation_id", "id"),
)

# One row per account and kind of delivery: its measured time (`hourly_window`), and its present
# batch.
delivery_windows = sa.Table(
    "delivery_windows",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *key(words(model.Delivery, 9), "delivery"),
    *required(sa.BigInteger(), "version", "measured_us"),
    *required(UtcTime(), "wall_at"),
    *optional(sa.BigInteger(), "batch_us"),
    *required(sa.Integer(), "batch_left"),
    *required(Json, "sent"),  # [slice of measured time, how many left in it], the oldest first
)

# One row: the latest sign of life of a worker, what it knows of the relay, and how many attempts
# have ended how.
worker_status = sa.Table(
    "worker_status",
    metadata,
    *key(sa.Integer(), "id"),
    *required(UtcTime(), "seen_at"),
    *optional(sa.Boolean(), "relay_up"),
    *optional(sa.Float(), "lag_seconds"),
    *required(sa.BigInteger(), *model.ATTEMPT_ENDS.values(), server_default="0"),
)

# One row: the home that this database had when it last delivered, how often it did, and why
# delivery is held (`protocol`).
delivery_home = sa.Table(
    "delivery_home",
    metadata,
    *key(sa.Integer(), "id"),
    *optional(sa.String(255), "home"),
    *required(sa.BigInteger(), "offers"),
    *optional(sa.String(32), "held_reason"),
)
