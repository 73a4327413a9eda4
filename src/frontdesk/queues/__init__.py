"""The encounter queue of each plan: events of the clinical system, the state that follows, the wait
estimate, the snapshot. The nouns are in `model`, the estimate in `estimate`.
"""

from frontdesk.queues.model import measure_accuracy as measure_accuracy
from frontdesk.queues.snapshot import QueueSnapshots as QueueSnapshots
from frontdesk.queues.store.duties import list_on_duty as list_on_duty
from frontdesk.queues.store.events import list_in_visit as list_in_visit
from frontdesk.queues.store.events import list_waiting as list_waiting
from frontdesk.queues.store.lapses import count_lapsed as count_lapsed
from frontdesk.queues.store.pools import list_feeds as list_feeds
from frontdesk.queues.store.snapshots import list_current as list_current
from frontdesk.queues.store.snapshots import list_outcomes as list_outcomes
