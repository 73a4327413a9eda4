"""The board: the queues as people watch them, and the last day of one plan as a chart.

A board is read once for all its viewers in a process and shared for 5 s, a day for 60 s
(`QueueBoards`). Customers' programs read the snapshot instead (`queues.snapshot`), which all
processes share.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.shared_values import SharedValues
from frontdesk.plans import get_plan, list_plans
from frontdesk.plans.model import Plan, ProviderGroup
from frontdesk.queues.model import EstimateAccuracy, PlanQueue, QueueInfo, measure_accuracy
from frontdesk.queues.snapshot import queue_state
from frontdesk.queues.store.pools import find_fed
from frontdesk.queues.store.snapshots import list_estimates_at, list_outcomes, list_waits
from frontdesk.reach import Reach

RECENT = timedelta(hours=1)  # of the estimates whose error is shown
DAY = timedelta(hours=24)
STEP = timedelta(minutes=5)
STEPS = DAY // STEP
BOARD_TIME = timedelta(seconds=5)
COMPUTED_TIME = timedelta(seconds=15)  # most queues rest longer than 5 s between two events
DAY_TIME = timedelta(seconds=60)


class PlanBoard(NamedTuple):
    """A plan's queue, the doctors on duty that serve it, and how many of them are with a patient, or
    without one in a reported pause. `last_hour` is None without a visit that followed an estimate
    of the last hour.
    """

    plan: Plan
    info: QueueInfo
    doctors: int
    busy_doctors: int
    paused_doctors: int
    last_hour: EstimateAccuracy | None

    @property
    def is_closed(self) -> bool:
        """No doctor is on duty, so there is no wait to show."""
        return not self.info.doctors_on_duty


class GroupBoard(NamedTuple):
    """The plans of a provider group, by id. `fed_at`: when its queue events last came, None if
    none ever did.
    """

    group: ProviderGroup
    fed_at: datetime | None
    plans: tuple[PlanBoard, ...]


@dataclass(frozen=True, slots=True)
class QueueBoard:
    """The provider groups with plans within reach, by id. It was computed at `computed_at`, and no
    queue events of these groups have come since, until `as_of`.
    """

    as_of: datetime
    computed_at: datetime
    groups: tuple[GroupBoard, ...]

    def feed_age(self, group: GroupBoard) -> timedelta | None:
        """The age of the group's latest queue events at `as_of`; None if none ever came."""
        return None if group.fed_at is None else max(timedelta(0), self.as_of - group.fed_at)


class PromisedWait(NamedTuple):
    """The estimate in force at a time, in seconds, with its 80 % interval."""

    at: datetime
    seconds: int
    low_seconds: int | None
    high_seconds: int | None


class PastWaits(NamedTuple):
    """The waits of the patients that joined in the 5 minutes from `at`, in seconds."""

    at: datetime
    patients: int
    mean_seconds: float
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class PlanDay:
    """The last 24 hours of a plan: at most 288 promised waits and 288 groups of waits, by time.
    Times without a doctor on duty have no promised wait.
    """

    plan: Plan
    as_of: datetime
    promised: tuple[PromisedWait, ...]
    waits: tuple[PastWaits, ...]


def read_board(tx: Tx, reach: Reach, now: datetime) -> QueueBoard:
    """The board of the plans within reach, in eleven statements."""
    queues = queue_state(tx, reach, now)
    outcomes = list_outcomes(tx, reach, now - RECENT)
    measured = {of_plan.plan_id: of_plan for of_plan in measure_accuracy(outcomes)}
    by_group: defaultdict[int, list[PlanBoard]] = defaultdict(list)
    groups: dict[int, ProviderGroup] = {}
    for plan in list_plans(tx, reach):
        queue = queues.get(plan.id)
        if queue is None:
            continue  # made since the queues were read
        groups[plan.provider_group.id] = plan.provider_group
        by_group[plan.provider_group.id].append(_of_plan(plan, queue, measured.get(plan.id)))
    fed = find_fed(tx, groups.keys())
    found = (
        GroupBoard(groups[id_], fed.get(id_), tuple(by_group[id_])) for id_ in sorted(by_group)
    )
    return QueueBoard(as_of=now, computed_at=now, groups=tuple(found))


def renew_board(tx: Tx, reach: Reach, last: QueueBoard | None, now: datetime) -> QueueBoard:
    """The last board as of now, if it is at most 15 s old and no events have come since, which takes
    one statement; else a new one. Of anything but events it hears after 15 s.
    """
    if last is None or not timedelta(0) <= now - last.computed_at < COMPUTED_TIME:
        return read_board(tx, reach, now)
    fed = {group.group.id: group.fed_at for group in last.groups if group.fed_at is not None}
    if find_fed(tx, [group.group.id for group in last.groups]) != fed:
        return read_board(tx, reach, now)
    return replace(last, as_of=now)


def _of_plan(plan: Plan, queue: PlanQueue, last_hour: EstimateAccuracy | None) -> PlanBoard:
    return PlanBoard(
        plan=plan,
        info=queue.info,
        doctors=queue.doctors,
        busy_doctors=queue.in_visit,
        paused_doctors=queue.paused,
        last_hour=last_hour,
    )


def read_day(tx: Tx, reach: Reach, plan_id: int, now: datetime) -> PlanDay:
    """The last 24 hours of a plan. Raises NotFound, also for a plan beyond the reach."""
    plan = get_plan(tx, reach, plan_id)
    # Whole steps, so that the points stay where they are while the chart moves on.
    last = now - timedelta(seconds=now.timestamp() % STEP.total_seconds())
    times = [last - STEP * number for number in reversed(range(STEPS))]
    promised = (PromisedWait._make(each) for each in list_estimates_at(tx, plan_id, times))
    waits = list_waits(tx, plan.provider_group.id, plan_id, since=times[0])
    return PlanDay(plan, now, tuple(promised), tuple(_by_step(times, waits)))


def _by_step(
    times: list[datetime], waits: Iterable[tuple[datetime, datetime]]
) -> Iterator[PastWaits]:
    """The waits (joined, started) by the step in which the patient joined."""
    by_step: defaultdict[int, list[float]] = defaultdict(list)
    for joined_at, started_at in waits:
        number = min((joined_at - times[0]) // STEP, STEPS - 1)
        by_step[number].append((started_at - joined_at).total_seconds())
    for number, seconds in sorted(by_step.items()):
        yield PastWaits(
            at=times[number],
            patients=len(seconds),
            mean_seconds=sum(seconds) / len(seconds),
            longest_seconds=max(seconds),
        )


class QueueBoards:
    """Boards and days, each read once for all viewers of a process. From any thread."""

    def __init__(self, clock: Clock, values: SharedValues) -> None:
        self._clock = clock
        self._values = values

    def in_memory(self, reach: Reach) -> QueueBoard | None:
        """The board of this reach if it is at most 5 s old. Never waits."""
        board: QueueBoard | None = self._values.in_memory(_board_key(reach), BOARD_TIME)
        return board

    def day_in_memory(self, reach: Reach, plan_id: int) -> PlanDay | None:
        """The day of the plan if it is at most 60 s old. Never waits."""
        day: PlanDay | None = self._values.in_memory(_day_key(reach, plan_id), DAY_TIME)
        return day

    def read(self, db: Database, reach: Reach) -> QueueBoard:
        """The board of this reach, at most 5 s old unless a viewer is renewing it at this moment:
        then the last one. Raises Unavailable.
        """
        key = _board_key(reach)

        def compute() -> QueueBoard:
            last: QueueBoard | None = self._values.last(key)
            return db.ask(lambda tx: renew_board(tx, reach, last, self._clock()))

        board: QueueBoard = self._values.get(key, BOARD_TIME, compute)
        return board

    def read_day(self, db: Database, reach: Reach, plan_id: int) -> PlanDay:
        """The day of the plan, at most 60 s old, as `read`. Raises NotFound, Unavailable."""

        def compute() -> PlanDay:
            return db.ask(lambda tx: read_day(tx, reach, plan_id, self._clock()))

        day: PlanDay = self._values.get(_day_key(reach, plan_id), DAY_TIME, compute)
        return day


def _board_key(reach: Reach) -> tuple[str, Reach]:
    return ("board", reach)


def _day_key(reach: Reach, plan_id: int) -> tuple[str, Reach, int]:
    return ("day", reach, plan_id)
