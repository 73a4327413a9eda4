"""Every column of every table, by what it holds. Erasure, export and the documents follow from this table alone.

A test compares it with the tables, and fails for a column that is not in it. A field of the eligible member is a person's value
unless it stands in ACCESS_DAYS.
"""

from collections import defaultdict
from collections.abc import Mapping

from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.privacy.model import ColumnKind

ACCESS_DAYS = ("effective_date", "expiry_date", "expiry_before_absence")
_OF_FIELDS = " ".join(name for name in STORED_COLUMNS if name not in ACCESS_DAYS)

# A table, and the names of its columns after their kind. A long list of columns goes on in a line of the same table.
_COLUMNS = f"""accounts | id: id | account: name | fact: state | time: created_at
api_clients | id: id account_id | account: client_id name | fact: scopes requests_per_minute
api_clients | time: created_at revoked_at
client_secrets | id: id api_client_id | proof: secret_hash | time: created_at revoked_at expires_at last_used_on
access_tokens | id: api_client_id | fact: scopes | proof: token_hash | time: created_at expires_at
request_allowances | id: api_client_id | fact: taken | time: minute
uniqueness_probes | id: client account_id | fact: taken | time: day
failed_attempts | id: id | account: subject_hash | time: failed_at
provider_groups | id: id | account: external_id name | time: created_at fed_at
plans | id: id account_id provider_group_id | account: external_id name description
plans | fact: accepting_patients version | time: created_at
members | id: id account_id plan_id uniqueness_scope merged_into
members | person: {_OF_FIELDS} row_digest family_digest person_digest | time: {" ".join(ACCESS_DAYS)} created_at updated_at
member_history | id: id member_id plan_id file_id | person: changes | fact: outcome
member_history | reference: client request_id | time: changed_at
distinct_members | id: lower_id higher_id account_id
installation | fact: id uniqueness compatible_since written | proof: row_digest_key
deliverability | id: account_id | account: sender_name sender_address registration_url
deliverability | fact: enabled batch_size batch_interval_seconds hourly_limit
suppressions | id: account_id | person: address_folded | fact: reason | time: created_at
invitations | id: id account_id plan_id member_id message_id | person: address address_folded relay_words
invitations | fact: kind delivery state epoch attempts losses reason relay_code
invitations | time: created_at updated_at due_at offered_at settled_at
invitation_links | id: message_id invitation_id | person: registration_hash unsubscribe_hash | time: created_at
invitation_templates | id: account_id | account: subject text html | time: updated_at
delivery_reports | id: message_id invitation_id | fact: kind status | time: received_at
invitation_events | id: id invitation_id | fact: from_state to_state reason code | time: at
delivery_windows | id: account_id | fact: version measured_us batch_us batch_left sent | time: wall_at
worker_status | fact: id relay_up lag_seconds sent deferred failed ambiguous | time: seen_at
delivery_home | fact: id home offers held_reason
caught_messages | id: id message_id | person: recipient content | account: sender | fact: outcome
caught_messages | time: caught_at
eligibility_files | id: id account_id plan_id undoes_id | persons: sha256
eligibility_files | account: mapping mapping_name ignored
eligibility_files | fact: format encoding delimiter mode asked_mode dry_run state step approved size_bytes
eligibility_files | fact: rows_total rows_done chunks_done members_before members_missing counts codes problem
eligibility_files | fact: epoch
eligibility_files | reference: client request_id file_name
eligibility_files | time: file_date created_at started_at finished_at lease_until
eligibility_mappings | id: account_id | account: name mapping | fact: is_default | time: changed_at
file_settings | id: account_id | fact: reopen_absent second_approver
file_turns | id: account_id | time: taken_at
file_parts | id: file_id | persons: content | fact: number
file_rows | id: file_id member_id left_plan_id | person: external_id
file_rows | fact: chunk position place outcome changed faults warnings
file_unchanged | id: file_id content | fact: chunk
queue_events | id: provider_group_id plan_id plan_ids | fact: type capacity | reference: event_id doctor visit
queue_events | time: at received_at
encounters | id: id provider_group_id plan_id | fact: state | reference: visit doctor
encounters | time: joined_at started_at ended_at last_event_at
duties | id: id provider_group_id plan_ids | fact: on_duty capacity | reference: doctor on_event
duties | time: on_at off_at
queue_snapshots | id: account_id | fact: queues records | time: taken_at expires_at
estimate_log | id: id plan_id | fact: estimate_seconds low_seconds high_seconds | time: taken_at expires_at
stored_answers | id: id account_id | persons: fingerprint headers body | fact: status | reference: key_hash
stored_answers | time: created_at
event_feeds | id: account_id | time: since
events | id: id account_id endpoint_id | fact: xid type data replays | reference: request_id | time: at
webhook_endpoints | id: id account_id | account: url event_types | proof: salt old_salt
webhook_endpoints | fact: state paused_reason place_xid place_id epoch attempts last_error
webhook_endpoints | time: old_salt_until lease_until next_at turn_at head_failed_at failing_since delivered_at
webhook_endpoints | time: created_at updated_at
audit_entries | id: id account_id subject_id | fact: action detail | reference: actor request_id | time: at
erasures | id: member_id account_id | fact: cause | reference: actor request_id | time: erased_at
legal_holds | id: member_id account_id | reference: reference actor | time: held_at
audit_prunings | id: through_id | fact: chain | time: pruned_at
retention_positions | id: position | fact: kind"""


def _classify(text: str) -> Mapping[str, Mapping[str, ColumnKind]]:
    tables = defaultdict[str, dict[str, ColumnKind]](dict)
    for line in text.splitlines():
        table, *kinds = line.split(" | ")
        for kind, _, names in (part.partition(": ") for part in kinds):
            tables[table] |= dict.fromkeys(names.split(), ColumnKind(kind))
    return dict(tables)


CLASSIFICATION = _classify(_COLUMNS)
