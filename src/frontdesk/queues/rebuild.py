"""Making anew what follows from the events, and forgetting old events together with what follows from them alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.queues import store
from frontdesk.queues.encounters import Duty, settle_duty, settle_encounter
from frontdesk.queues.events import LATEST
from frontdesk.queues.ingest import as_event, duty_row, encounter_row, grouped
from frontdesk.queues.store import upkeep

# An id must be remembered for as long as its event may still be sent again.
LEAST_AGE = LATEST + timedelta(days=1)
USUAL_AGE = timedelta(days=90)  # what workers keep, unasked


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How many encounters and doctors the events tell of, and how many rows were not what follows from them."""

    encounters: int
    doctors: int
    mended: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much was forgotten; false when there was nothing."""

    events: int = 0
    encounters: int = 0
    estimates: int = 0

    def __bool__(self) -> bool:
        return bool(self.events or self.encounters or self.estimates)

    def __add__(self, more: "Pruned") -> "Pruned":
        return Pruned(
            self.events + more.events, self.encounters + more.encounters, self.estimates + more.estimates
        )


def rebuild(tx: Tx) -> Rebuilt:
    """Settle every encounter and duty anew from its events; feeders wait meanwhile, readers see the state before."""
    store.lock_groups(tx, None)
    mended = upkeep.delete_encounters_without_events(tx)
    count = 0
    for visits in upkeep.pages_of_visits(tx):
        found, wrong = _rebuild_encounters(tx, visits)
        count, mended = count + found, mended + wrong
    doctors, wrong = _rebuild_duties(tx)
    return Rebuilt(count, doctors, mended + wrong)


def _rebuild_encounters(tx: Tx, visits: list[str]) -> tuple[int, int]:
    known = {(row["visit"], row["provider_group_id"]): row for row in upkeep.select_encounters(tx, visits)}
    rows = []
    settled = grouped(map(as_event, upkeep.events_of_visits(tx, visits)))
    for reference, events in settled.items():
        before = known.get(reference)
        row = encounter_row(before["id"] if before else None, reference, settle_encounter(events))
        if before is None or _differs(row, before):
            rows.append(row)
    store.save(tx, events=(), encounter_rows=rows, duty_rows=())
    return len(settled), len(rows)


def _rebuild_duties(tx: Tx) -> tuple[int, int]:
    known = {(row["doctor"], row["provider_group_id"]): row for row in upkeep.select_duties(tx)}
    settled = {
        reference: settle_duty(Duty(), events)
        for reference, events in grouped(map(as_event, upkeep.events_of_doctors(tx))).items()
    }
    bare = [row["id"] for reference, row in known.items() if reference not in settled]
    upkeep.delete_duties(tx, bare)
    rows = []
    for reference, duty in settled.items():
        before = known.get(reference)
        row = duty_row(before["id"] if before else None, reference, duty)
        if before is None or _differs(row, before):
            rows.append(row)
    store.save(tx, events=(), encounter_rows=(), duty_rows=rows)
    return len(settled), len(rows) + len(bare)


def prune(tx: Tx, *, now: datetime, age: timedelta) -> Pruned:
    """Forget up to a page each of encounters that ended before, with their events, of doctors' events that no longer count,
    and of estimates of that age; to be called until nothing is pruned. `age` is LEAST_AGE at least.

    What is left leads to the same state: an encounter goes with all its events or stays with all of them, and the latest
    two events of a doctor stay.
    """
    if age < LEAST_AGE:
        raise ValueError("events can't be forgotten while they may still be sent again")
    before = now - age
    store.lock_groups(tx, None)
    gone, events = upkeep.prune_encounters(tx, before)
    return Pruned(events + upkeep.prune_duties(tx, before), gone, upkeep.prune_estimates(tx, before))


def _differs(row: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return any(value != _comparable(before[name]) for name, value in row.items())


def _comparable(value: Any) -> Any:
    return stored_time(value) if isinstance(value, datetime) else value
