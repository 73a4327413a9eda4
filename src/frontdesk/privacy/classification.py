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

_K = ColumnKind
# By table and kind, the columns with spaces between them.
_COLUMNS: Mapping[str, Mapping[ColumnKind, str]] = {
    "accounts": {_K.ID: "id", _K.ACCOUNT: "name", _K.TIME: "created_at", _K.FACT: "state"},
    "api_clients": {
        _K.ID: "id account_id",
        _K.ACCOUNT: "client_id name",
        _K.FACT: "scopes requests_per_minute",
        _K.TIME: "created_at revoked_at",
    },
    "client_secrets": {
        _K.ID: "id api_client_id",
        _K.PROOF: "secret_hash",
        _K.TIME: "created_at revoked_at expires_at last_used_on",
    },
    "access_tokens": {
        _K.PROOF: "token_hash",
        _K.ID: "api_client_id",
        _K.FACT: "scopes",
        _K.TIME: "created_at expires_at",
    },
    "request_allowances": {_K.ID: "api_client_id", _K.TIME: "minute", _K.FACT: "taken"},
    "uniqueness_probes": {_K.ID: "client account_id", _K.TIME: "day", _K.FACT: "taken"},
    "failed_attempts": {_K.ID: "id", _K.ACCOUNT: "subject_hash", _K.TIME: "failed_at"},
    "provider_groups": {_K.ID: "id", _K.ACCOUNT: "external_id name", _K.TIME: "created_at"},
    "plans": {
        _K.ID: "id account_id provider_group_id",
        _K.ACCOUNT: "external_id name description",
        _K.FACT: "accepting_patients version",
        _K.TIME: "created_at",
    },
    "members": {
        _K.ID: "id account_id plan_id uniqueness_scope merged_into",
        _K.PERSON: f"{_OF_FIELDS} row_digest family_digest person_digest",
        _K.TIME: " ".join((*ACCESS_DAYS, "created_at", "updated_at")),
    },
    "member_history": {
        _K.ID: "id member_id plan_id file_id",
        _K.PERSON: "changes",
        _K.FACT: "outcome",
        _K.REFERENCE: "client request_id",
        _K.TIME: "changed_at",
    },
    "distinct_members": {_K.ID: "lower_id higher_id account_id"},
    "installation": {_K.FACT: "id uniqueness written", _K.PROOF: "row_digest_key"},
    "deliverability": {
        _K.ID: "account_id",
        _K.FACT: "enabled batch_size batch_interval_seconds hourly_limit",
        _K.ACCOUNT: "sender_name sender_address registration_url",
    },
    "suppressions": {
        _K.ID: "account_id",
        _K.PERSON: "address_folded",
        _K.FACT: "reason",
        _K.TIME: "created_at",
    },
    "invitations": {
        _K.ID: "id account_id plan_id member_id message_id",
        _K.PERSON: "address address_folded",
        _K.FACT: "kind delivery state epoch attempts losses reason relay_code",
        _K.TIME: "created_at updated_at due_at offered_at settled_at",
    },
    "invitation_links": {
        _K.PERSON: "registration_hash unsubscribe_hash",
        _K.ID: "message_id invitation_id",
        _K.TIME: "created_at",
    },
    "invitation_templates": {
        _K.ID: "account_id",
        _K.ACCOUNT: "subject text html",
        _K.TIME: "updated_at",
    },
    "delivery_reports": {
        _K.ID: "message_id invitation_id",
        _K.FACT: "kind status",
        _K.TIME: "received_at",
    },
    "invitation_events": {
        _K.ID: "id invitation_id",
        _K.TIME: "at",
        _K.FACT: "from_state to_state reason code",
    },
    "delivery_windows": {
        _K.ID: "account_id",
        _K.FACT: "version measured_us batch_us batch_left",
        _K.TIME: "wall_at",
    },
    "delivery_counts": {_K.ID: "account_id", _K.TIME: "slice", _K.FACT: "sent"},
    "delivery_home": {_K.FACT: "id home offers held_reason", _K.TIME: "held_at"},
    "caught_messages": {
        _K.ID: "id message_id",
        _K.ACCOUNT: "sender",
        _K.PERSON: "recipient content",
        _K.FACT: "outcome",
        _K.TIME: "caught_at",
    },
    "eligibility_files": {
        _K.ID: "id account_id plan_id undoes_id",
        _K.FACT: "format encoding delimiter mode asked_mode dry_run state step approved size_bytes rows_total rows_done "
        "chunks_done members_before members_missing counts codes problem epoch",
        _K.ACCOUNT: "mapping mapping_name ignored",
        _K.PERSONS: "sha256 idempotency_digest",
        _K.REFERENCE: "client request_id idempotency_key file_name",
        _K.TIME: "file_date created_at started_at finished_at lease_until",
    },
    "eligibility_mappings": {
        _K.ID: "account_id",
        _K.ACCOUNT: "name mapping",
        _K.FACT: "is_default",
        _K.TIME: "changed_at",
    },
    "file_settings": {_K.ID: "account_id", _K.FACT: "reopen_absent second_approver"},
    "file_turns": {_K.ID: "account_id", _K.TIME: "taken_at"},
    "file_parts": {_K.ID: "file_id", _K.FACT: "number", _K.PERSONS: "content"},
    "file_rows": {
        _K.ID: "file_id member_id left_plan_id",
        _K.PERSON: "external_id",
        _K.FACT: "chunk position place outcome changed notes",
    },
    "file_unchanged": {_K.ID: "file_id content", _K.FACT: "chunk"},
    "queue_events": {
        _K.REFERENCE: "event_id doctor visit",
        _K.ID: "provider_group_id plan_id plan_ids",
        _K.FACT: "type capacity",
        _K.TIME: "at received_at",
    },
    "encounters": {
        _K.ID: "id provider_group_id plan_id",
        _K.REFERENCE: "visit doctor",
        _K.FACT: "state",
        _K.TIME: "joined_at started_at ended_at last_event_at",
    },
    "duties": {
        _K.ID: "id provider_group_id plan_ids",
        _K.REFERENCE: "doctor on_event",
        _K.FACT: "on_duty capacity",
        _K.TIME: "on_at off_at",
    },
    "queue_snapshots": {_K.ID: "account_id", _K.TIME: "taken_at expires_at", _K.FACT: "queues records"},
    "estimate_log": {
        _K.ID: "id plan_id",
        _K.TIME: "taken_at expires_at",
        _K.FACT: "estimate_seconds low_seconds high_seconds",
    },
    "audit_entries": {
        _K.ID: "id account_id subject_id",
        _K.REFERENCE: "actor request_id",
        _K.FACT: "action detail",
        _K.TIME: "at",
    },
    "erasures": {
        _K.ID: "member_id account_id",
        _K.TIME: "erased_at",
        _K.FACT: "cause",
        _K.REFERENCE: "actor request_id",
    },
    "legal_holds": {_K.ID: "member_id account_id", _K.REFERENCE: "reference actor", _K.TIME: "held_at"},
    "audit_prunings": {_K.ID: "through_id", _K.FACT: "chain", _K.TIME: "pruned_at"},
    "retention_positions": {_K.FACT: "kind", _K.ID: "position"},
}

CLASSIFICATION: Mapping[str, Mapping[str, ColumnKind]] = {
    table: {name: kind for kind, names in kinds.items() for name in names.split()}
    for table, kinds in _COLUMNS.items()
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
