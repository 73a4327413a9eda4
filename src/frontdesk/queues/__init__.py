"""The encounter queue of each plan: events of the clinical system, the state that follows, the wait estimate, the snapshot.

The nouns are in `model`, the estimate in `estimate`.
"""

from frontdesk.queues.events import parse_event
from frontdesk.queues.ingest import (
    doctor_off_duty,
    doctor_on_duty,
    ingest,
    patient_joins,
    patient_leaves,
)
from frontdesk.queues.queue_state import measure_accuracy, queue_rules, queue_state
from frontdesk.queues.snapshot import QueueSnapshots
from frontdesk.queues.store.events import list_in_visit, list_on_duty, list_waiting
from frontdesk.queues.store.snapshots import list_outcomes
from frontdesk.queues.upkeep import prune, rebuild

__all__ = [
    "QueueSnapshots",
    "doctor_off_duty",
    "doctor_on_duty",
    "ingest",
    "list_in_visit",
    "list_on_duty",
    "list_outcomes",
    "list_waiting",
    "measure_accuracy",
    "parse_event",
    "patient_joins",
    "patient_leaves",
    "prune",
    "queue_rules",
    "queue_state",
    "rebuild",
]
