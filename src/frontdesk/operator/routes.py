"""Every route of the operator's interface on one screen; each needs a token of scope `operator` unless it says otherwise."""

from frontdesk.access.scopes import Scope
from frontdesk.operator import queue_events
from frontdesk.web.door import Endpoint

# fmt: off
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", "/operator/v1/queue-events", queue_events.post, Scope.OPERATOR, takes_json=True),
)
# fmt: on
