"""The encounter queue of each plan: doctors on duty, waiting patients, the wait estimate, the shared snapshot."""

from frontdesk.queues.duty import (
    OnDuty,
    Waiting,
    doctor_off_duty,
    doctor_on_duty,
    list_on_duty,
    list_waiting,
    patient_joins,
    patient_leaves,
    record_visit,
)
from frontdesk.queues.estimate import NOBODY_ON_DUTY, Doctor, PastVisit, Pool, Visit, estimate_waits
from frontdesk.queues.snapshot import QueueInfo, QueueSnapshots, Snapshot, take_queues

__all__ = [
    "NOBODY_ON_DUTY",
    "Doctor",
    "OnDuty",
    "PastVisit",
    "Pool",
    "QueueInfo",
    "QueueSnapshots",
    "Snapshot",
    "Visit",
    "Waiting",
    "doctor_off_duty",
    "doctor_on_duty",
    "estimate_waits",
    "list_on_duty",
    "list_waiting",
    "patient_joins",
    "patient_leaves",
    "record_visit",
    "take_queues",
]
