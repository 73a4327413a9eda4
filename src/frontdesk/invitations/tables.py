"""The tables of invitations and their delivery: settings, links, templates, reports, timelines, windows, suppressed addresses."""

import sqlalchemy as sa

from frontdesk.db.schema import Id, Json, UtcTime, metadata, words
from frontdesk.invitations.model import (
    Delivery,
    InvitationState,
    InvitationStep,
    ReportEvent,
    SuppressionReason,
)

deliverability = sa.Table(
    "deliverability",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("batch_size", sa.Integer, nullable=False),
    sa.Column("batch_interval_seconds", sa.Integer, nullable=False),
    sa.Column("hourly_limit", sa.Integer, nullable=False),
    sa.Column("sender_name", sa.String(255), nullable=True),
    sa.Column("sender_address", sa.String(254), nullable=True),
    sa.Column("registration_url", sa.String(2000), nullable=True),
)

suppressions = sa.Table(
    "suppressions",
    metadata,
    sa.Column("address_folded", sa.String(508), primary_key=True),
    sa.Column("reason", words(SuppressionReason, 32), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    # The account that mailed the address; null for an operator's. Only this account is told.
    sa.Column("account_id", Id, nullable=True),
)

NEXT = ("delivery", "account_id", "plan_id", "due_at", "id")
IS_PENDING = sa.text("state = 'pending'")
LAPSES = sa.text("state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL")
OFFERED = sa.text("offered_at IS NOT NULL")
IN_HAND = sa.text("state IN ('claimed', 'offered') AND delivery = 'batched'")

invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("account_id", Id, nullable=False),
    sa.Column("plan_id", Id, nullable=False),
    sa.Column("member_id", Id, sa.ForeignKey("members.id"), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("delivery", words(Delivery, 9), nullable=False),
    sa.Column("state", words(InvitationState, 9), nullable=False),
    sa.Column("address", sa.String(254), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    # When a worker has to process it next: to claim it, or because a lease or a hold has run out. NULL: never.
    sa.Column("due_at", UtcTime, nullable=True),
    # The number of the claim: a write of an older claim is void.
    sa.Column("epoch", sa.Integer, nullable=False, server_default="0"),
    # Attempts that the relay refused for now.
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column(
        "losses", sa.Integer, nullable=False, server_default="0"
    ),  # how often the relay's answer was lost
    sa.Column("message_id", sa.String(255), nullable=True),
    sa.Column("offered_at", UtcTime, nullable=True),
    sa.Column("settled_at", UtcTime, nullable=True),
    sa.Column("reason", words(InvitationStep, 32), nullable=True),
    sa.Column("relay_code", sa.Integer, nullable=True),
    sa.Column("address_folded", sa.String(508), nullable=True),  # null once the member is erased
    sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    sa.UniqueConstraint("member_id", "kind"),
    sa.UniqueConstraint("message_id"),
    sa.Index("ix_invitations_state_account_id_id", "state", "account_id", "id"),
    # Finds the next batch in the same time with any number of rows. The queries repeat the conditions word for word.
    sa.Index("ix_invitations_next", *NEXT, sqlite_where=IS_PENDING, postgresql_where=IS_PENDING),
    sa.Index("ix_invitations_lapsing", "due_at", sqlite_where=LAPSES, postgresql_where=LAPSES),
    sa.Index("ix_invitations_in_hand", "account_id", sqlite_where=IN_HAND, postgresql_where=IN_HAND),
    # Messages to an address, from the first offer on, so that enqueueing does not pay for this index.
    sa.Index("ix_invitations_mailed", "address_folded", sqlite_where=OFFERED, postgresql_where=OFFERED),
)

# Each Message-ID that an invitation ever had, with the SHA-256 of the tokens in its links.
invitation_links = sa.Table(
    "invitation_links",
    metadata,
    sa.Column("registration_hash", sa.String(64), primary_key=True),
    sa.Column("unsubscribe_hash", sa.String(64), nullable=False),
    sa.Column("message_id", sa.String(255), nullable=False, index=True),
    sa.Column("invitation_id", Id, sa.ForeignKey("invitations.id"), nullable=False, index=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("unsubscribe_hash"),
)

# An account's own templates; NULL is the product's.
invitation_templates = sa.Table(
    "invitation_templates",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("subject", sa.String(500), nullable=True),
    sa.Column("text", sa.Text, nullable=True),
    sa.Column("html", sa.Text, nullable=True),
    sa.Column("updated_at", UtcTime, nullable=False),
)

# Delivery reports: what happened to a message after the relay took it. Each kind counts once per message.
delivery_reports = sa.Table(
    "delivery_reports",
    metadata,
    sa.Column("message_id", sa.String(255), primary_key=True),
    sa.Column("kind", words(ReportEvent, 16), primary_key=True),
    sa.Column("invitation_id", Id, sa.ForeignKey("invitations.id"), nullable=False),
    sa.Column("status", sa.String(11), nullable=True),
    sa.Column("received_at", UtcTime, nullable=False),
)

# Every step of every invitation. No foreign key: the check would cost as much as the entry, and no invitation is deleted.
invitation_events = sa.Table(
    "invitation_events",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("invitation_id", Id, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("from_state", words(InvitationState, 9), nullable=False),
    sa.Column("to_state", words(InvitationState, 9), nullable=False),
    sa.Column("reason", words(InvitationStep, 32), nullable=False),
    sa.Column("code", sa.Integer, nullable=True),
    sa.Index("ix_invitation_events_invitation_id_id", "invitation_id", "id"),
)

# One row per account that has batched invitations: its measured time (`hourly_window`), and its present batch.
delivery_windows = sa.Table(
    "delivery_windows",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("measured_us", sa.BigInteger, nullable=False),
    sa.Column("wall_at", UtcTime, nullable=False),
    sa.Column("batch_us", sa.BigInteger, nullable=True),
    sa.Column("batch_left", sa.Integer, nullable=False),
    sa.Column(
        "sent", Json, nullable=False
    ),  # [slice of measured time, how many left in it], the oldest first
)

# One row: the home that this database had when it last delivered, how often it did, and why delivery is held (`protocol`).
delivery_home = sa.Table(
    "delivery_home",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("home", sa.String(255), nullable=True),
    sa.Column("offers", sa.BigInteger, nullable=False),
    sa.Column("held_reason", sa.String(32), nullable=True),
    sa.Column("held_at", UtcTime, nullable=True),
)
