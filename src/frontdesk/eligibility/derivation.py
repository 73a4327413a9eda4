"""Derives members from their coverages on the day on which a span of access is over and another
follows, or a coverage of another plan begins (docs/834.md, Access).

A member names that day (`derive_on`). Each page is a transaction: a death before its commit leaves
nothing of it, and a member that was derived is not found again.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from frontdesk import events
from frontdesk.clock import account_day
from frontdesk.db import Tx
from frontdesk.db.sets import one_round_trip
from frontdesk.eligibility import store
from frontdesk.eligibility.coverages import derive, kept_coverages
from frontdesk.eligibility.enrol import Accepted, write_members
from frontdesk.eligibility.model import (
    DERIVATION_CLIENT,
    Enrolled,
    MemberRecord,
    Outcome,
    StoredMember,
    Submission,
)
from frontdesk.plans import find_owners
from frontdesk.text import stored_time

DERIVED_TOGETHER = 250  # members; SQLite has one writer, for which other writes wait

Place = tuple[str, int]  # the day and the id of a member that is due


class DerivedPage(NamedTuple):
    """How many members were derived, and where the next page starts; None after the last."""

    derived: int
    next_after: Place | None


def derive_due(
    tx: Tx, *, now: datetime, after: Place | None = None, limit: int = DERIVED_TOGETHER
) -> DerivedPage:
    """Derive a page of the members that are due in the time zone of their account. Raises the
    driver's error, or StateChanged, on a lost race: run it again in a new transaction.
    """
    # East of UTC it may be the next day.
    last_day = (now + timedelta(days=1)).date().isoformat()
    due = store.list_due(tx, last_day, after=after, limit=limit)
    members = store.lock_by_ids(tx, [id_ for _, id_ in due])
    with one_round_trip(tx):
        found = find_owners(tx, {member.values["plan_id"] for member in members.values()})
    owners = {row["id"]: row for row in found.rows}
    derived = [*_derived(members, owners, now)]
    feeds = events.find_feeds(tx, {by.account_id for by, _ in derived})
    write_members(tx, derived, feeds, now=now, audited=True)
    return DerivedPage(len(derived), due[-1] if len(due) == limit else None)


def _derived(
    members: Mapping[int, StoredMember], owners: Mapping[int, Mapping[str, Any]], now: datetime
) -> Iterator[Accepted]:
    for member in members.values():
        values = member.values
        today = account_day(now, owners[values["plan_id"]]["time_zone"]).earliest
        # Another worker, a file or an undo may have been faster.
        if values["derive_on"] is not None and values["derive_on"] <= today:
            yield _derive_member(member, today, now)


def _derive_member(member: StoredMember, today: str, now: datetime) -> Accepted:
    values = member.values
    record = derive(kept_coverages(values), today)._asdict()
    changes = {
        name: [values[name], value] for name, value in record.items() if values[name] != value
    }
    changed = {name: value for name, (_, value) in changes.items()}
    # The row of a file may say otherwise, so it has to be read again.
    written = changed | {"row_digest": None, "updated_at": stored_time(now)}
    values.update(written)
    member.changed.update(written)
    outcome = Outcome.MOVED if "plan_id" in changed else Outcome.UPDATED
    by = Submission(
        values["account_id"],
        values["plan_id"],
        MemberRecord(values["external_id"], changed),
        DERIVATION_CLIENT,
        f"{DERIVATION_CLIENT}-{today}",
    )
    return by, Enrolled.unasked(outcome, member, changes)
