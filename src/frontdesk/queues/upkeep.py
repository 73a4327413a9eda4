"""Rebuilds the encounters and duties from the stored events, and deletes old events with their
encounters.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.db.sets import Row
from frontdesk.queues.encounters import settle_duty, settle_encounter
from frontdesk.queues.events import LATEST
from frontdesk.queues.ingest import by_reference
from frontdesk.queues.model import Duty, Encounter, Reference
from frontdesk.queues.store import events as store

# An id must be remembered for as long as its event may still be sent again.
MIN_AGE = LATEST + timedelta(days=1)
DEFAULT_AGE = timedelta(days=90)  # what workers keep


def rebuild(tx: Tx) -> dict[str, int]:
    """Compute every encounter and duty again from its events: the numbers of `encounters`,
    `doctors`, `mended` rows. New events wait meanwhile; readers see the old state.
    """
    store.lock_groups(tx, None)
    encounters = 0
    corrected = store.delete_encounters_without_events(tx)
    for visits in store.pages_of_visits(tx):
        stored = store.select_settled(tx, visits)
        by_visit = by_reference(store.select_events(tx, visits))
        wrong = _wrong(
            {visit: settle_encounter(events) for visit, events in by_visit.items()}, stored
        )
        store.save(tx, encounter_rows=wrong)
        encounters = encounters + len(by_visit)
        corrected = corrected + len(wrong)
    stored = store.select_settled(tx, None)
    by_doctor = by_reference(store.select_events(tx, None))
    without_events = [row["id"] for doctor, row in stored.items() if doctor not in by_doctor]
    store.delete_duties(tx, without_events)
    wrong = _wrong(
        {doctor: settle_duty(Duty(), events) for doctor, events in by_doctor.items()}, stored
    )
    store.save(tx, duty_rows=wrong)
    mended = corrected + len(without_events) + len(wrong)
    return {"encounters": encounters, "doctors": len(by_doctor), "mended": mended}


def _wrong(
    settled: Mapping[Reference, Encounter[datetime] | Duty], stored: Mapping[Reference, Row]
) -> list[Row]:
    """The rows that are missing in the database or differ there."""
    rows = (
        (reference, store.settled_row(reference, state, stored.get(reference, {}).get("id")))
        for reference, state in settled.items()
    )
    return [row for reference, row in rows if row != stored.get(reference)]


def prune(tx: Tx, *, now: datetime, age: timedelta) -> Counter[str]:
    """Delete a page of rows older than `age`; call it until it deletes nothing. Raises ValueError
    below MIN_AGE. Returns the numbers of deleted `events`, `encounters` and `estimates`, without
    zeros.

    A page each of: encounters with an older last event, with all their events, but no bookings to
    come; events of doctors that no longer count; estimates. The rest leads to the same state, since
    the latest event of each type of a doctor stays.
    """
    if age < MIN_AGE:
        raise ValueError("events can't be deleted while they may still be sent again")
    before = now - age
    store.lock_groups(tx, None)
    encounters, events = store.prune_encounters(tx, before)
    events = events + store.prune_duties(tx, before)
    estimates = store.prune_estimates(tx, before)
    return +Counter(events=events, encounters=encounters, estimates=estimates)
