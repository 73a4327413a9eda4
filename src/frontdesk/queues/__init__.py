"""The encounter queue of each plan: events of the clinical system, what follows from them, the wait, the shared snapshot."""

from frontdesk.queues.accuracy import Accuracy, WaitOutcome, list_outcomes, measure
from frontdesk.queues.duty import (
    InVisit,
    OnDuty,
    Waiting,
    doctor_off_duty,
    doctor_on_duty,
    list_in_visit,
    list_on_duty,
    list_waiting,
    patient_joins,
    patient_leaves,
    record_visit,
)
from frontdesk.queues.encounters import Encounter, EncounterState
from frontdesk.queues.estimate import NOBODY_ON_DUTY, Doctor, PastVisit, Pool, Visit, estimate_waits
from frontdesk.queues.events import EventType, ParsedEvent, QueueEvent, parse_event
from frontdesk.queues.ingest import EventOutcome, Taken, ingest
from frontdesk.queues.rebuild import LEAST_AGE, USUAL_AGE, Pruned, Rebuilt, prune, rebuild
from frontdesk.queues.snapshot import QueueSnapshots, Snapshot
from frontdesk.queues.take import PlanQueue, QueueInfo, QueueRules, queue_rules, take_lines, take_queues

__all__ = [
    "LEAST_AGE",
    "NOBODY_ON_DUTY",
    "USUAL_AGE",
    "Accuracy",
    "Doctor",
    "Encounter",
    "EncounterState",
    "EventOutcome",
    "EventType",
    "InVisit",
    "OnDuty",
    "ParsedEvent",
    "PastVisit",
    "PlanQueue",
    "Pool",
    "Pruned",
    "QueueEvent",
    "QueueInfo",
    "QueueRules",
    "QueueSnapshots",
    "Rebuilt",
    "Snapshot",
    "Taken",
    "Visit",
    "WaitOutcome",
    "Waiting",
    "doctor_off_duty",
    "doctor_on_duty",
    "estimate_waits",
    "ingest",
    "list_in_visit",
    "list_on_duty",
    "list_outcomes",
    "list_waiting",
    "measure",
    "parse_event",
    "patient_joins",
    "patient_leaves",
    "prune",
    "queue_rules",
    "rebuild",
    "record_visit",
    "take_lines",
    "take_queues",
]
