"""What the requests of each API client cost: counted in memory, and once a minute added to a row of
the client and ten minutes.

The space is bounded: a process counts at most MOST_CLIENTS in a minute, and retention deletes rows
after two days. A process that is killed loses its last minute, and so does one whose database is
away.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from frontdesk.db import Database
from frontdesk.db.engine import write_alone
from frontdesk.errors import Unavailable
from frontdesk.metering import RequestCost
from frontdesk.usage import store
from frontdesk.usage.model import NO_CLIENT, RequestCosts

SAVE_SECONDS = 60.0
MOST_CLIENTS = 500
SLOT_MINUTES = 10


@dataclass(slots=True, eq=False)
class _Sum:
    """What the requests of one client have cost since the counts were taken."""

    account_id: int | None
    requests: int = 0
    loop_seconds: float = 0.0
    database_seconds: float = 0.0


class RequestCostCounter:
    """The counts of this process since they were last taken, by the client's database id: NO_CLIENT
    for requests without a known client, and for clients beyond MOST_CLIENTS. Only the event loop
    uses it. `begun` is called for the first request after that.
    """

    def __init__(self, begun: Callable[[], object] = lambda: None) -> None:
        self._sums: dict[int, _Sum] = {}
        self._begun = begun

    def count(self, cost: RequestCost, loop_seconds: float) -> None:
        """Count a request that has ended."""
        found = self._sums.get(cost.client)
        if found is None:
            found = self._new_sum(cost)
        found.requests += 1
        found.loop_seconds += loop_seconds
        found.database_seconds += cost.database_seconds

    def take(self) -> Mapping[int, _Sum]:
        """The counts, which begin anew."""
        taken = self._sums
        self._sums = {}
        return taken

    def _new_sum(self, cost: RequestCost) -> _Sum:
        if not self._sums:
            self._begun()
        if len(self._sums) >= MOST_CLIENTS:
            return self._sums.setdefault(NO_CLIENT, _Sum(None))
        return self._sums.setdefault(cost.client, _Sum(cost.account_id))


def save(db: Database, taken: Mapping[int, _Sum], now: datetime) -> None:
    """Add the counts to the rows of these ten minutes. They are lost while the database is away."""
    costs = [
        RequestCosts(
            client=client,
            account_id=each.account_id,
            requests=each.requests,
            loop_us=round(each.loop_seconds * 1e6),
            database_us=round(each.database_seconds * 1e6),
        )
        for client, each in sorted(taken.items())
    ]
    if costs:
        with suppress(Unavailable):
            write_alone(db, lambda tx: store.add_request_costs(tx, slot_of(now), costs))


def slot_of(moment: datetime) -> str:
    """The ten minutes (UTC) of the moment, by their beginning."""
    utc = moment.astimezone(UTC)
    begun = utc.replace(minute=utc.minute - utc.minute % SLOT_MINUTES)
    return begun.strftime("%Y-%m-%dT%H:%M")


def oldest_slot(now: datetime, minutes: int) -> str:
    """The first of the slots that have a part in the last minutes."""
    return slot_of(now - timedelta(minutes=minutes))
