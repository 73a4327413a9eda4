"""Events: what happened to members, files, invitations and queues, told to the account's programs
(docs/interface.md, Events).
"""

from frontdesk.events.store import begin_feed as begin_feed
from frontdesk.events.store import claim_due as claim_due
from frontdesk.events.store import find_due as find_due
from frontdesk.events.store import find_feeds as find_feeds
from frontdesk.events.store import get_endpoint as get_endpoint
from frontdesk.events.store import has_feed as has_feed
from frontdesk.events.store import list_backlogs as list_backlogs
from frontdesk.events.store import list_endpoints as list_endpoints
from frontdesk.events.store import list_events as list_events
from frontdesk.events.store import number_anew as number_anew
from frontdesk.events.store import pass_over as pass_over
from frontdesk.events.store import publish as publish
from frontdesk.events.store import record as record
