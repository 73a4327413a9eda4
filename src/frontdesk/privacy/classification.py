"""Every column of every table, by what it holds. Erasure, export and the documents follow from this
table alone.

A test compares it with the tables, and fails for a column that is not in it. A field of the
eligible member is a person's value unless it stands in ACCESS_DAYS.
"""

from collections.abc import Mapping, Sequence

from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.privacy.model import ColumnKind

ACCESS_DAYS = ("effective_date", "expiry_date", "expiry_before_absence")
_PERSONAL_FIELDS = [name for name in STORED_COLUMNS if name not in ACCESS_DAYS]


def _columns(**by_kind: Sequence[str]) -> Mapping[str, ColumnKind]:
    """The kind of each column of a table. Raises ValueError for a word that is no ColumnKind, so
    the program does not start.
    """
    return {name: ColumnKind(kind) for kind, names in by_kind.items() for name in names}


CLASSIFICATION: Mapping[str, Mapping[str, ColumnKind]] = {
    "accounts": _columns(
        id=["id"],
        account=["name"],
        fact=["state", "immediate_hourly_limit", "time_zone", "reopens_absent"],
        time=["created_at"],
    ),
    "api_clients": _columns(
        id=["id", "account_id"],
        account=["client_id", "name"],
        fact=["scopes", "requests_per_minute"],
        time=["created_at", "revoked_at"],
    ),
    "client_secrets": _columns(
        id=["id", "api_client_id"],
        proof=["secret_hash"],
        time=["created_at", "revoked_at", "expires_at", "last_used_on"],
    ),
    "access_tokens": _columns(
        id=["api_client_id"],
        fact=["scopes"],
        proof=["token_hash"],
        time=["created_at", "expires_at"],
    ),
    "account_usage": _columns(
        id=["account_id"], fact=["history_bytes", "answer_bytes", "file_bytes"], time=["day"]
    ),
    "request_costs": _columns(
        id=["client", "account_id"], fact=["requests", "loop_us", "database_us"], time=["slot"]
    ),
    "account_quotas": _columns(
        id=["account_id"], fact=["stored_bytes_per_day", "file_bytes_per_day"]
    ),
    "request_allowances": _columns(id=["api_client_id"], fact=["taken"], time=["minute"]),
    "uniqueness_probes": _columns(id=["account_id"], fact=["taken"], time=["day"]),
    "uniqueness_holders": _columns(id=["account_id", "holder_id"], fact=["taken"], time=["day"]),
    "failed_attempts": _columns(id=["id"], account=["subject_hash"], time=["failed_at"]),
    "users": _columns(
        id=["id", "account_id", "named_accounts"],
        account=["email", "name", "time_zone"],
        fact=["roles", "state", "is_demo"],
        proof=["password_hash", "factor_salt", "offered_salt", "factor_step"],
        reference=["invited_by", "factor_removed_by"],
        time=["created_at", "last_signed_in_at", "factor_removed_at", "ended_at"],
    ),
    "user_invitations": _columns(
        id=["id", "account_id", "named_accounts"],
        account=["email"],
        fact=["roles"],
        proof=["secret_hash"],
        reference=["invited_by"],
        time=["created_at", "expires_at"],
    ),
    "password_resets": _columns(
        id=["user_id"],
        reference=["made_by"],
        proof=["secret_hash"],
        time=["created_at", "expires_at"],
    ),
    "recovery_codes": _columns(id=["user_id"], proof=["code_hash"]),
    "sign_in_attempts": _columns(
        id=["user_id"],
        fact=["wrong_codes"],
        proof=["secret_hash"],
        time=["created_at", "expires_at"],
    ),
    "sessions": _columns(
        id=["id", "user_id"],
        fact=["wrong_codes"],
        proof=["secret_hash"],
        time=["created_at", "last_used_at", "ends_at", "factor_at"],
    ),
    "known_browsers": _columns(id=["user_id"], proof=["secret_hash"], time=["seen_at"]),
    "client_secrets_seen": _columns(id=["api_client_id", "user_id"], time=["seen_at"]),
    "used_forms": _columns(id=["user_id"], proof=["number_hash"], time=["used_at"]),
    "provider_groups": _columns(
        id=["id"],
        account=["external_id", "name"],
        fact=["duty_hours"],
        time=["created_at", "fed_at"],
    ),
    "plans": _columns(
        id=["id", "account_id", "provider_group_id"],
        account=["external_id", "name", "description"],
        fact=["accepting_patients", "version"],
        time=["created_at"],
    ),
    "members": _columns(
        id=["id", "account_id", "plan_id", "uniqueness_scope", "merged_into"],
        person=[*_PERSONAL_FIELDS, "row_digest", "family_digest", "person_digest"],
        time=[*ACCESS_DAYS, "created_at", "updated_at"],
    ),
    "member_history": _columns(
        id=["id", "member_id", "plan_id", "file_id"],
        person=["changes"],
        fact=["outcome"],
        reference=["client", "request_id"],
        time=["changed_at"],
    ),
    "disclosures": _columns(
        id=["id", "member_id", "session_id"],
        fact=["kind", "field", "answer"],
        reference=["actor"],
        time=["at"],
    ),
    "opened_names": _columns(id=["id", "file_id", "session_id"], reference=["actor"], time=["at"]),
    "people_searches": _columns(
        id=["id", "session_id", "account_id", "member_ids"],
        fact=["truncated"],
        proof=["number"],
        reference=["actor"],
        time=["at"],
    ),
    "distinct_members": _columns(id=["lower_id", "higher_id", "account_id"]),
    "installation": _columns(
        fact=["id", "uniqueness", "compatible_since", "written"], proof=["row_digest_key"]
    ),
    "deliverability": _columns(
        id=["account_id"],
        account=["sender_name", "sender_address", "registration_url"],
        fact=["enabled", "batch_size", "batch_interval_seconds", "hourly_limit"],
    ),
    "suppressions": _columns(
        id=["account_id", "only_account_id"],
        person=["address_folded"],
        fact=["reason"],
        time=["created_at"],
    ),
    "invitations": _columns(
        id=["id", "account_id", "plan_id", "member_id", "message_id"],
        person=["address", "address_folded", "relay_words", "mailbox_digest"],
        fact=["kind", "delivery", "state", "epoch", "attempts", "losses", "reason", "relay_code"],
        time=["created_at", "updated_at", "due_at", "offered_at", "settled_at", "mailbox_at"],
    ),
    "unproven_addresses": _columns(id=["member_id"], person=["address_folded"]),
    "invitation_links": _columns(
        id=["message_id", "invitation_id"],
        person=["registration_hash", "unsubscribe_hash"],
        time=["created_at"],
    ),
    "invitation_templates": _columns(
        id=["account_id"], account=["subject", "text", "html"], time=["updated_at"]
    ),
    "delivery_reports": _columns(
        id=["message_id", "invitation_id"], fact=["kind", "status"], time=["received_at"]
    ),
    "invitation_events": _columns(
        id=["id", "invitation_id"],
        fact=["from_state", "to_state", "reason", "code"],
        reference=["actor"],
        time=["at"],
    ),
    "delivery_windows": _columns(
        id=["account_id"],
        fact=["delivery", "version", "measured_us", "batch_us", "batch_left", "sent"],
        time=["wall_at"],
    ),
    "worker_status": _columns(
        fact=["id", "relay_up", "lag_seconds", "sent", "deferred", "failed", "ambiguous"],
        time=["seen_at"],
    ),
    "delivery_home": _columns(fact=["id", "home", "offers", "held_reason"]),
    "caught_messages": _columns(
        id=["id", "message_id"],
        person=["recipient", "content"],
        account=["sender"],
        fact=["outcome"],
        time=["caught_at"],
    ),
    "eligibility_files": _columns(
        id=["id", "account_id", "plan_id", "draft_id", "undoes_id"],
        persons=["sha256", "file_name", "ignored"],
        account=["mapping", "mapping_name", "sender"],
        fact=[
            "format",
            "encoding",
            "delimiter",
            "mode",
            "asked_mode",
            "dry_run",
            "state",
            "step",
            "approved",
            "size_bytes",
            "rows_total",
            "rows_checked",
            "rows_done",
            "chunks_done",
            "members_before",
            "members_missing",
            "counts",
            "codes",
            "problem",
            "shown",
            "epoch",
        ],
        reference=["client", "request_id", "decided_by"],
        time=[
            *("file_date", "created_at", "started_at", "finished_at", "lease_until", "decided_at")
        ],
    ),
    "eligibility_mappings": _columns(
        id=["account_id"], account=["name", "mapping"], fact=["is_default"], time=["changed_at"]
    ),
    "file_settings": _columns(
        id=["account_id"], fact=["second_approver", "most_members", "most_percent"]
    ),
    "file_turns": _columns(id=["account_id"], time=["taken_at"]),
    "file_drafts": _columns(
        id=["id", "account_id", "plan_id", "dry_run_id", "file_id"],
        persons=["sha256", "file_name"],
        account=["mapping", "suggestion"],
        fact=["state", "version", "format", "encoding", "size_bytes", "mode"],
        reference=["client"],
        time=["created_at", "changed_at"],
    ),
    "draft_parts": _columns(id=["draft_id"], persons=["content"], fact=["number"]),
    "file_parts": _columns(id=["file_id"], persons=["content"], fact=["number"]),
    "file_rows": _columns(
        id=["file_id", "member_id", "left_plan_id"],
        person=["external_id"],
        fact=[
            *("chunk", "position", "place", "transaction_number", "member_number"),
            *("outcome", "changed", "faults", "warnings", "access"),
        ],
    ),
    "file_lists": _columns(id=["file_id"], fact=["word", "chunk"]),
    "file_unchanged": _columns(id=["file_id", "content"], fact=["chunk"]),
    "queue_events": _columns(
        id=["provider_group_id", "plan_id", "plan_ids"],
        fact=["type", "capacity", "patient_class", "priority"],
        reference=["event_id", "doctor", "visit"],
        time=["at", "received_at", "not_before", "until"],
    ),
    "encounters": _columns(
        id=["id", "provider_group_id", "plan_id"],
        fact=["state", "patient_class", "priority"],
        reference=["visit", "doctor"],
        time=["joined_at", "started_at", "ended_at", "last_event_at"],
    ),
    "duties": _columns(
        id=["id", "provider_group_id", "plan_ids"],
        fact=["on_duty", "capacity"],
        reference=["doctor", "on_event"],
        time=["on_at", "off_at", "paused_at", "paused_until"],
    ),
    "queue_snapshots": _columns(
        id=["account_id"], fact=["queues", "records"], time=["taken_at", "expires_at"]
    ),
    "estimate_log": _columns(
        id=["id", "plan_id"],
        fact=["estimate_seconds", "low_seconds", "high_seconds", "basis", "classes"],
        time=["taken_at", "expires_at"],
    ),
    "stored_answers": _columns(
        id=["id", "account_id"],
        persons=["fingerprint", "headers", "body"],
        fact=["status"],
        reference=["key_hash"],
        time=["created_at"],
    ),
    "event_feeds": _columns(id=["account_id"], time=["since"]),
    "events": _columns(
        id=["id", "account_id", "endpoint_id"],
        fact=["xid", "type", "data", "replays"],
        reference=["request_id"],
        time=["at"],
    ),
    "webhook_endpoints": _columns(
        id=["id", "account_id"],
        account=["url", "event_types"],
        proof=["salt", "old_salts"],
        fact=["state", "paused_reason", "place_xid", "place_id", "epoch", "attempts", "last_error"],
        time=[
            "lease_until",
            "next_at",
            "turn_at",
            "head_failed_at",
            "failing_since",
            "delivered_at",
            "unverified_since",
            "created_at",
            "updated_at",
        ],
    ),
    "audit_entries": _columns(
        id=["id", "account_id", "subject_id"],
        fact=["action", "detail"],
        reference=["actor", "request_id"],
        time=["at"],
    ),
    "erasures": _columns(
        id=["member_id", "account_id"],
        fact=["cause"],
        reference=["actor", "request_id"],
        time=["erased_at"],
    ),
    "legal_holds": _columns(
        id=["member_id", "account_id"], reference=["reference", "actor"], time=["held_at"]
    ),
    "audit_prunings": _columns(id=["through_id"], fact=["chain"], time=["pruned_at"]),
    "retention_positions": _columns(id=["position"], fact=["kind"]),
}
