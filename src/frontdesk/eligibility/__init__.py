"""Eligible members: the rules of a record, `enrol` (the one way a record is written), its history,
and the undo.
"""

from frontdesk.eligibility.derivation import derive_due as derive_due
from frontdesk.eligibility.enrol import enrol as enrol
from frontdesk.eligibility.fields import parse_member as parse_member
from frontdesk.eligibility.fields import read_external_id as read_external_id
from frontdesk.eligibility.similar import find_look_alikes as find_look_alikes
from frontdesk.eligibility.store import count_members as count_members
from frontdesk.eligibility.store import count_members_open_after as count_members_open_after
from frontdesk.eligibility.store import external_ids_of as external_ids_of
from frontdesk.eligibility.store import find_access as find_access
from frontdesk.eligibility.store import find_addresses as find_addresses
from frontdesk.eligibility.store import find_digests_of as find_digests_of
from frontdesk.eligibility.store import find_expired as find_expired
from frontdesk.eligibility.store import find_known as find_known
from frontdesk.eligibility.store import find_members as find_members
from frontdesk.eligibility.store import find_people as find_people
from frontdesk.eligibility.store import find_row_digests as find_row_digests
from frontdesk.eligibility.store import find_written as find_written
from frontdesk.eligibility.store import has_members as has_members
from frontdesk.eligibility.store import last_member_id as last_member_id
from frontdesk.eligibility.store import list_history as list_history
from frontdesk.eligibility.store import list_holders as list_holders
from frontdesk.eligibility.store import list_ids_under as list_ids_under
from frontdesk.eligibility.store import list_probes as list_probes
from frontdesk.eligibility.undo import restore as restore
