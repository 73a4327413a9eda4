"""Invitations: the four rules, the message, what comes back of it. The types are in `model`."""

from frontdesk.invitations.store.account_settings import get_deliverability as get_deliverability
from frontdesk.invitations.store.account_settings import get_template as get_template
from frontdesk.invitations.store.account_settings import set_deliverability as set_deliverability
from frontdesk.invitations.store.queries import count_pending_by_account as count_pending_by_account
from frontdesk.invitations.store.queries import find_of_members as find_of_members
from frontdesk.invitations.store.queries import find_reports as find_reports
from frontdesk.invitations.store.queries import find_states as find_states
from frontdesk.invitations.store.queries import list_invitations as list_invitations
from frontdesk.invitations.store.suppressions import find_blocking as find_blocking
from frontdesk.invitations.store.suppressions import hash_suppressions as hash_suppressions
from frontdesk.invitations.store.suppressions import list_suppressions as list_suppressions
from frontdesk.invitations.store.suppressions import suppress as suppress
from frontdesk.invitations.store.workers import find_worker_status as find_worker_status
from frontdesk.invitations.store.workers import save_worker_status as save_worker_status
