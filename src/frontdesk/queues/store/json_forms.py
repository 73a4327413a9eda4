"""The JSON in which snapshots keep queues, and what the estimates have taught."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from frontdesk.queues.estimate.record import (
    BANDS,
    ErrorRecord,
    EstimateBasis,
    PlanRecord,
    WaitEstimate,
    WidthRecord,
)
from frontdesk.queues.model import EstimateRecords, QueueInfo

ANYONE = ""  # the key of the errors over all classes; no class is empty


def queue_as_json(queue: QueueInfo) -> list[Any]:
    basis = queue.basis and list(queue.basis)
    return [*queue[:5], basis, classes_as_json(queue.classes)]


def queue_of_json(values: Sequence[Any]) -> QueueInfo:
    *facts, basis, classes = values
    by_class = {name: estimate_of_json(of_class) for name, of_class in classes.items()}
    return QueueInfo(*facts)._replace(basis=basis_of_json(basis), classes=by_class)


def classes_as_json(classes: Mapping[str, WaitEstimate]) -> dict[str, list[Any]]:
    return {
        name: [*estimate[:3], estimate.basis and list(estimate.basis)]
        for name, estimate in classes.items()
    }


def estimate_of_json(values: Sequence[Any]) -> WaitEstimate:
    seconds, low, high, basis = values
    return WaitEstimate(seconds, low, high, basis_of_json(basis))


def basis_of_json(values: Sequence[Any] | None) -> EstimateBasis | None:
    return None if values is None else EstimateBasis(*values)


def records_as_json(records: EstimateRecords | None) -> dict[str, Any] | None:
    if records is None:
        return None
    plans = {str(id_): _record_as_json(record) for id_, record in records.plans.items()}
    return {"until": records.until.isoformat(), "plans": plans}


def records_of_json(stored: Mapping[str, Any] | None) -> EstimateRecords | None:
    if stored is None:
        return None
    plans = {int(id_): _record_of_json(record) for id_, record in stored["plans"].items()}
    return EstimateRecords(datetime.fromisoformat(stored["until"]), plans)


def _record_as_json(record: PlanRecord) -> dict[str, Any]:
    return {
        "width": list(record.width),
        # By first position: with other bands in a later version, those that are left keep theirs.
        "bands": {str(first): list(band) for first, band in zip(BANDS, record.bands, strict=True)},
        "errors": {name or ANYONE: list(error) for name, error in record.errors.items()},
    }


def _record_of_json(stored: Mapping[str, Any]) -> PlanRecord:
    bands = stored["bands"]
    return PlanRecord(
        WidthRecord(*stored["width"]),
        tuple(WidthRecord(*bands.get(str(first), ())) for first in BANDS),
        {name or None: ErrorRecord(*error) for name, error in stored["errors"].items()},
    )
