"""Invitations: the four rules, the message, what comes back of it. The types are in `model`."""

from frontdesk.invitations.store import find_of_members as find_of_members
from frontdesk.invitations.store import find_reports as find_reports
from frontdesk.invitations.store import find_states as find_states
from frontdesk.invitations.store import find_worker_status as find_worker_status
from frontdesk.invitations.store import get_deliverability as get_deliverability
from frontdesk.invitations.store import get_template as get_template
from frontdesk.invitations.store import hash_suppressions as hash_suppressions
from frontdesk.invitations.store import list_invitations as list_invitations
from frontdesk.invitations.store import list_suppressions as list_suppressions
from frontdesk.invitations.store import save_worker_status as save_worker_status
from frontdesk.invitations.store import set_deliverability as set_deliverability
from frontdesk.invitations.store import suppress as suppress
from frontdesk.invitations.store import unsuppress as unsuppress
