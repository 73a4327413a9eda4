"""When an account's last invitation will have gone at its present limits, and the figures of delivery; it changes nothing."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.invitations.delivery import store
from frontdesk.invitations.delivery.home import HoldReason, find_reason
from frontdesk.invitations.delivery.limits import Limits, Meter
from frontdesk.invitations.settings import get_deliverability

MOST_BATCHES = 1_000_000  # a forecast further ahead than that says nothing


@dataclass(frozen=True, slots=True)
class Forecast:
    """`backlog`: batched invitations in line; `held_back`: those whose plan accepts no patients, not in the backlog.

    `held`: why nothing is delivered at present, to nobody. `last_at`: when the last one will have gone, None when that is
    not to be told or nothing goes.
    """

    enabled: bool
    backlog: int
    held_back: int
    sent_this_hour: int
    hourly_limit: int
    held: HoldReason | None
    last_at: datetime | None


def forecast(tx: Tx, account_id: int, *, now: datetime) -> Forecast:
    """What the account can expect, if nothing new comes and the relay takes everything."""
    settings = get_deliverability(tx, account_id)
    waiting = store.count_pending(tx, account_id)
    meter = Meter()
    sent, frees = _window(tx, account_id, meter, now)
    limits = Limits(settings.batch_size, settings.batch_interval_seconds, settings.hourly_limit)
    backlog = waiting.get(True, 0)
    held = find_reason(tx)
    goes = settings.enabled and held is None
    seconds = seconds_until_last(backlog, limits, frees) if goes else None
    return Forecast(
        enabled=settings.enabled,
        backlog=backlog,
        held_back=waiting.get(False, 0),
        sent_this_hour=sent,
        hourly_limit=settings.hourly_limit,
        held=held,
        last_at=None if seconds is None else now + timedelta(seconds=seconds),
    )


def _window(tx: Tx, account_id: int, meter: Meter, now: datetime) -> tuple[int, list[tuple[float, int]]]:
    """How many places are taken, and in how many seconds how many of them become free."""
    row = store.find_window(tx, account_id)
    if row is None:
        return 0, []
    # Between writes the window's time stands in the database; for a forecast the wall clock is good enough.
    passed = max(0.0, (now - row["wall_at"]).total_seconds())
    measured = row["measured_us"] + int(passed * 1_000_000)
    slices = store.sent_by_slice(tx, account_id, since_slice=meter.oldest_slice(measured))
    in_hand = store.count_in_hand(tx, account_id)
    frees = [(max(0.0, meter.seconds_until_free(measured, slice_)), sent) for slice_, sent in slices]
    if in_hand:
        frees.append((meter.window_seconds, in_hand))
    return sum(count for _, count in frees), frees


def seconds_until_last(backlog: int, limits: Limits, frees: Iterable[tuple[float, int]]) -> float | None:
    """Pure: batch after batch, each as large as the window allows at its time. None when there is nothing to send.

    >>> seconds_until_last(250, Limits(100, 60, 1000), [])
    120.0
    """
    if backlog == 0:
        return None
    window = float(Meter().window_seconds)
    taken = deque(sorted(frees))
    used = sum(count for _, count in taken)
    moment = 0.0
    for _ in range(MOST_BATCHES):
        while taken and taken[0][0] <= moment:
            used -= taken.popleft()[1]
        count = min(limits.batch_size, limits.hourly_limit - used, backlog)
        if count <= 0:
            moment = max(moment, taken[0][0])
            continue
        backlog -= count
        if backlog == 0:
            return moment
        used += count
        taken.append((moment + window, count))
        moment += limits.batch_interval_seconds
    return None


@dataclass(frozen=True, slots=True)
class Figures:
    """How delivery stands: invitations by state, the age of the oldest that is due, each account's window."""

    by_state: dict[str, int]
    oldest_due_seconds: float
    window_used: dict[int, int]
    held: bool


def figures(tx: Tx, *, now: datetime) -> Figures:
    oldest = store.oldest_due(tx)
    meter = Meter()
    return Figures(
        by_state=store.count_by_state(tx),
        oldest_due_seconds=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        window_used={account: _window(tx, account, meter, now)[0] for account in store.window_versions(tx)},
        held=find_reason(tx) is not None,
    )
