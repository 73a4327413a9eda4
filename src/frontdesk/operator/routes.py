"""The operations of the operator's interface. They are not in the OpenAPI document."""

from frontdesk.interface.operations import arranged
from frontdesk.operator import email_events, mailbox, personal_data, queues

GROUPS = (queues.GROUP, email_events.GROUP, personal_data.GROUP, mailbox.GROUP)
ENDPOINTS = arranged(GROUPS)
