"""The audit trail: each entry is added in the transaction of its action and never changed."""

from frontdesk.audit.actors import user_actor as user_actor
from frontdesk.audit.store import AuditEntry as AuditEntry
from frontdesk.audit.store import AuditQuery as AuditQuery
from frontdesk.audit.store import AuditSubjects as AuditSubjects
from frontdesk.audit.store import LooksOfWeek as LooksOfWeek
from frontdesk.audit.store import Requester as Requester
from frontdesk.audit.store import count_looks as count_looks
from frontdesk.audit.store import entries_about as entries_about
from frontdesk.audit.store import entries_after as entries_after
from frontdesk.audit.store import entries_of_secrets as entries_of_secrets
from frontdesk.audit.store import last_entry_id as last_entry_id
from frontdesk.audit.store import list_about as list_about
from frontdesk.audit.store import list_by_user as list_by_user
from frontdesk.audit.store import list_entries as list_entries
from frontdesk.audit.store import list_newest as list_newest
from frontdesk.audit.store import list_of_account as list_of_account
from frontdesk.audit.store import record as record
from frontdesk.audit.store import record_action as record_action
