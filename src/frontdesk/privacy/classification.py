"""Every column of every table, by what it holds. Erasure, export and the documents follow from this table alone.

A test compares it with the tables, and fails for a column that is not in it. A field of the eligible member is a person's value
unless it stands in ACCESS_DAYS.
"""

from collections.abc import Mapping
from enum import StrEnum

from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.privacy.model import ColumnKind

ACCESS_DAYS = ("effective_date", "expiry_date", "expiry_before_absence")
_OF_FIELDS = " ".join(name for name in STORED_COLUMNS if name not in ACCESS_DAYS)


def _table(**names: str) -> Mapping[str, ColumnKind]:
    """The columns of a table: of each kind their names, with spaces between them."""
    return {name: ColumnKind(kind) for kind, of_kind in names.items() for name in of_kind.split()}


CLASSIFICATION: Mapping[str, Mapping[str, ColumnKind]] = {
    "accounts": _table(id="id", account="name", time="created_at", fact="state"),
    "api_clients": _table(
        id="id account_id",
        account="client_id name",
        fact="scopes requests_per_minute",
        time="created_at revoked_at",
    ),
    "client_secrets": _table(
        id="id api_client_id", proof="secret_hash", time="created_at revoked_at expires_at last_used_on"
    ),
    "access_tokens": _table(
        proof="token_hash", id="api_client_id", fact="scopes", time="created_at expires_at"
    ),
    "request_allowances": _table(id="api_client_id", time="minute", fact="taken"),
    "uniqueness_probes": _table(id="client account_id", time="day", fact="taken"),
    "failed_attempts": _table(id="id", account="subject_hash", time="failed_at"),
    "provider_groups": _table(id="id", account="external_id name", time="created_at"),
    "plans": _table(
        id="id account_id provider_group_id",
        account="external_id name description",
        fact="accepting_patients version",
        time="created_at",
    ),
    "members": _table(
        id="id account_id plan_id uniqueness_scope merged_into",
        person=f"{_OF_FIELDS} row_digest family_digest person_digest",
        time=" ".join((*ACCESS_DAYS, "created_at", "updated_at")),
    ),
    "member_history": _table(
        id="id member_id plan_id file_id",
        person="changes",
        fact="outcome",
        reference="client request_id",
        time="changed_at",
    ),
    "distinct_members": _table(id="lower_id higher_id account_id"),
    "installation": _table(fact="id uniqueness written", proof="row_digest_key"),
    "deliverability": _table(
        id="account_id",
        fact="enabled batch_size batch_interval_seconds hourly_limit",
        account="sender_name sender_address registration_url",
    ),
    "suppressions": _table(id="account_id", person="address_folded", fact="reason", time="created_at"),
    "invitations": _table(
        id="id account_id plan_id member_id message_id",
        person="address address_folded",
        fact="kind delivery state epoch attempts losses reason relay_code",
        time="created_at updated_at due_at offered_at settled_at",
    ),
    "invitation_links": _table(
        person="registration_hash unsubscribe_hash", id="message_id invitation_id", time="created_at"
    ),
    "invitation_templates": _table(id="account_id", account="subject text html", time="updated_at"),
    "delivery_reports": _table(id="message_id invitation_id", fact="kind status", time="received_at"),
    "invitation_events": _table(id="id invitation_id", time="at", fact="from_state to_state reason code"),
    "delivery_windows": _table(
        id="account_id", fact="version measured_us batch_us batch_left", time="wall_at"
    ),
    "delivery_counts": _table(id="account_id", time="slice", fact="sent"),
    "delivery_home": _table(fact="id home offers held_reason", time="held_at"),
    "caught_messages": _table(
        id="id message_id", account="sender", person="recipient content", fact="outcome", time="caught_at"
    ),
    "eligibility_files": _table(
        id="id account_id plan_id undoes_id",
        fact=(
            "format encoding delimiter mode asked_mode dry_run state step approved "
            "size_bytes rows_total rows_done chunks_done members_before members_missing counts codes problem epoch"
        ),
        account="mapping mapping_name ignored",
        persons="sha256 idempotency_digest",
        reference="client request_id idempotency_key file_name",
        time="file_date created_at started_at finished_at lease_until",
    ),
    "eligibility_mappings": _table(
        id="account_id", account="name mapping", fact="is_default", time="changed_at"
    ),
    "file_settings": _table(id="account_id", fact="reopen_absent second_approver"),
    "file_turns": _table(id="account_id", time="taken_at"),
    "file_parts": _table(id="file_id", fact="number", persons="content"),
    "file_rows": _table(
        id="file_id member_id left_plan_id",
        person="external_id",
        fact="chunk position place outcome changed faults warnings",
    ),
    "file_unchanged": _table(id="file_id content", fact="chunk"),
    "queue_events": _table(
        reference="event_id doctor visit",
        id="provider_group_id plan_id plan_ids",
        fact="type capacity",
        time="at received_at",
    ),
    "encounters": _table(
        id="id provider_group_id plan_id",
        reference="visit doctor",
        fact="state",
        time="joined_at started_at ended_at last_event_at",
    ),
    "duties": _table(
        id="id provider_group_id plan_ids",
        reference="doctor on_event",
        fact="on_duty capacity",
        time="on_at off_at",
    ),
    "queue_snapshots": _table(id="account_id", time="taken_at expires_at", fact="queues records"),
    "estimate_log": _table(
        id="id plan_id", time="taken_at expires_at", fact="estimate_seconds low_seconds high_seconds"
    ),
    "audit_entries": _table(
        id="id account_id subject_id", reference="actor request_id", fact="action detail", time="at"
    ),
    "erasures": _table(
        id="member_id account_id", time="erased_at", fact="cause", reference="actor request_id"
    ),
    "legal_holds": _table(id="member_id account_id", reference="reference actor", time="held_at"),
    "audit_prunings": _table(id="through_id", fact="chain", time="pruned_at"),
    "retention_positions": _table(fact="kind", id="position"),
}


class ErasingWay(StrEnum):
    """How a person's values leave a table."""

    EMPTIED = "The columns are emptied."
    WITHOUT_VALUES = "Each entry keeps the plan and the days of access."
    HASHED = "The address becomes a keyed hash, and is still never mailed."
    DELETED = "The rows are deleted."
    ENDS = "An erasure waits until no file of the account is left unfinished or has content; an ended file loses it."


# Of every table with a person's values.
ERASING: Mapping[str, ErasingWay] = {
    "members": ErasingWay.EMPTIED,
    "member_history": ErasingWay.WITHOUT_VALUES,
    "invitations": ErasingWay.EMPTIED,
    "invitation_links": ErasingWay.DELETED,
    "caught_messages": ErasingWay.DELETED,
    "suppressions": ErasingWay.HASHED,
    "file_rows": ErasingWay.EMPTIED,
    "eligibility_files": ErasingWay.EMPTIED,
    "file_parts": ErasingWay.ENDS,
}


def columns_of(table: str, *kinds: ColumnKind) -> tuple[str, ...]:
    """The columns of these kinds."""
    return tuple(name for name, kind in CLASSIFICATION[table].items() if kind in kinds)
