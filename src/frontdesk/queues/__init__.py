"""The encounter queue of each plan: events of the clinical system, the state that follows, the wait estimate, the snapshot.

The nouns are in `model`, the estimate in `estimate`.
"""

from frontdesk.queues.model import measure_accuracy
from frontdesk.queues.snapshot import QueueSnapshots
from frontdesk.queues.store.events import list_in_visit, list_on_duty, list_waiting
from frontdesk.queues.store.snapshots import list_current, list_outcomes

__all__ = [
    "QueueSnapshots",
    "list_current",
    "list_in_visit",
    "list_on_duty",
    "list_outcomes",
    "list_waiting",
    "measure_accuracy",
]
