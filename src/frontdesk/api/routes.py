"""The operations of the customer's interface, and the pages beside it.

Each operation is declared beside its handler (`interface.operations`), its path in `paths`.
"""

from frontdesk.api import (
    eligibility,
    eligibility_batch,  # noqa: F401 # its operation is in the group of eligibility
    eligibility_files,
    events,
    health,
    invitees,
    mappings,
    me,  # noqa: F401 # its operation is in the group of oauth
    members,
    oauth,
    plans,
    reference,
    webhooks,
)
from frontdesk.api.paths import Path
from frontdesk.api.remedies import operations_of
from frontdesk.interface.operations import arranged

# In the order of the reference.
GROUPS = (
    oauth.GROUP,
    plans.GROUP,
    eligibility.GROUP,
    members.GROUP,
    eligibility_files.GROUP,
    mappings.GROUP,
    events.GROUP,
    webhooks.GROUP,
    reference.GROUP,
    health.GROUP,
)
_PLACES = {path: place for place, path in enumerate(Path)}
ENDPOINTS = sorted(arranged(GROUPS), key=lambda each: _PLACES[Path(each.path)])
REMEDIES = operations_of(ENDPOINTS)
reference.describe(GROUPS, ENDPOINTS, REMEDIES)

ENTRANCE = arranged([reference.ENTRANCE])
PAGES = arranged([invitees.GROUP])
