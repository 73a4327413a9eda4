"""Every route of the operator's interface on one screen; each needs a token of scope `operator` unless it says otherwise."""

from frontdesk.web.door import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = ()
