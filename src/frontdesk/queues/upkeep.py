"""Rebuilds the encounters and duties from the stored events, and deletes old events with what follows from them alone."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.queues.encounters import settle_duty, settle_encounter
from frontdesk.queues.events import LATEST
from frontdesk.queues.ingest import by_reference
from frontdesk.queues.model import Duty, PruneReport, RebuildReport
from frontdesk.queues.store import events as event_store
from frontdesk.queues.store import upkeep as store

# An id must be remembered for as long as its event may still be sent again.
MIN_AGE = LATEST + timedelta(days=1)
DEFAULT_AGE = timedelta(days=90)  # what workers keep


def rebuild(tx: Tx) -> RebuildReport:
    """Settle every encounter and duty again from its events. New events wait meanwhile; readers see the state before."""
    event_store.lock_groups(tx, None)
    corrected = store.delete_encounters_without_events(tx)
    encounters = 0
    for visits in store.pages_of_visits(tx):
        known = {(row["visit"], row["provider_group_id"]): row for row in store.select_encounters(tx, visits)}
        rows = [
            event_store.encounter_row(reference, settle_encounter(events), _id(known.get(reference)))
            for reference, events in by_reference(store.events_of_visits(tx, visits)).items()
        ]
        wrong = _wrong(rows, known.values())
        event_store.save(tx, encounter_rows=wrong)
        encounters, corrected = encounters + len(rows), corrected + len(wrong)
    doctors, wrong_duties = _rebuild_duties(tx)
    return RebuildReport(encounters, doctors, corrected + wrong_duties)


def _rebuild_duties(tx: Tx) -> tuple[int, int]:
    known = {(row["doctor"], row["provider_group_id"]): row for row in store.select_duties(tx)}
    settled = by_reference(store.events_of_doctors(tx))
    without_events = [row["id"] for reference, row in known.items() if reference not in settled]
    store.delete_duties(tx, without_events)
    rows = [
        event_store.duty_row(reference, settle_duty(Duty(), events), _id(known.get(reference)))
        for reference, events in settled.items()
    ]
    wrong = _wrong(rows, known.values())
    event_store.save(tx, duty_rows=wrong)
    return len(rows), len(wrong) + len(without_events)


def prune(tx: Tx, *, now: datetime, age: timedelta) -> PruneReport:
    """Delete a page of what is older than `age`; call it until it deletes nothing. Raises ValueError below MIN_AGE.

    A page each of: encounters with an older last event, with all their events; events of doctors that no longer count;
    estimates. The rest leads to the same state, since the latest two events of a doctor stay.
    """
    if age < MIN_AGE:
        raise ValueError("events can't be deleted while they may still be sent again")
    before = now - age
    event_store.lock_groups(tx, None)
    encounters, events = store.prune_encounters(tx, before)
    return PruneReport(events + store.prune_duties(tx, before), encounters, store.prune_estimates(tx, before))


def _id(row: Mapping[str, Any] | None) -> int | None:
    return None if row is None else row["id"]


def _wrong(rows: Iterable[Mapping[str, Any]], stored: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows that are missing in the database or differ there."""
    by_id = {row["id"]: row for row in stored}
    return [
        row
        for row in rows
        if row["id"] is None
        or any(value != _comparable(by_id[row["id"]][name]) for name, value in row.items())
    ]


def _comparable(value: Any) -> Any:
    return stored_time(value) if isinstance(value, datetime) else value
