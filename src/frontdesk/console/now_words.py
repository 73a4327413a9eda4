"""The words of Now: waits, queues, doctors, and the day of a plan by the hour and as a chart.

Waits are whole minutes, so that the numbers of a column compare. -1 of the wire is "closed", 0 is
"no wait".
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from math import ceil
from typing import NamedTuple

from frontdesk.console.times import span_text
from frontdesk.queues.board import (
    STEP,
    GroupBoard,
    PastWaits,
    PlanBoard,
    PlanDay,
    PromisedWait,
    QueueBoard,
)
from frontdesk.queues.model import EstimateAccuracy, QueueInfo
from frontdesk.text import count_text, isolated
from frontdesk.web.chart import Chart, Dot, LinePoint, hour_of

# As the alert FrontdeskFeedSilent (docs/runbook.md).
LATE_FEED = timedelta(minutes=30)
MINUTE = 60


class PlanWords(NamedTuple):
    """A plan of the board. A text is "" where there is nothing to say; `waiting` is a number."""

    plan_id: int
    name: str
    is_closed: bool
    takes_patients: bool
    wait: str
    interval: str
    waiting: int
    doctors: str
    last_hour: str


class GroupWords(NamedTuple):
    """A provider group of the board. `feed`: what there is to say of its events; `is_doubtful`: so
    its waits may be wrong.
    """

    group_id: int
    name: str
    feed: str
    is_doubtful: bool
    plans: tuple[PlanWords, ...]


class HourWords(NamedTuple):
    """An hour of a plan's day. A text is "" where there is nothing to say."""

    begins_at: datetime
    promised: str
    interval: str
    visits: str
    waited: str


def describe_group(group: GroupBoard, board: QueueBoard) -> GroupWords:
    feed, is_doubtful = _describe_feed(group, board.feed_age(group))
    return GroupWords(
        group_id=group.group.id,
        name=group.group.name,
        feed=feed,
        is_doubtful=is_doubtful,
        plans=tuple(describe_plan(each) for each in group.plans),
    )


def _describe_feed(group: GroupBoard, age: timedelta | None) -> tuple[str, bool]:
    """A group that is closed and without patients may well be silent: at night."""
    name = isolated(group.group.name)
    if age is None:
        return f"No events of {name} have come yet.", False
    if age < LATE_FEED:
        return "", False
    is_at_work = any(each.doctors or each.info.queue_length for each in group.plans)
    if is_at_work:
        sentence = f"Events of {name} are {span_text(age)} old: these waits may be wrong."
        return sentence, True
    return f"The last events of {name} are {span_text(age)} old.", False


def describe_plan(of_plan: PlanBoard) -> PlanWords:
    info = of_plan.info
    return PlanWords(
        plan_id=of_plan.plan.id,
        name=of_plan.plan.name,
        is_closed=of_plan.is_closed,
        takes_patients=of_plan.plan.accepting_patients,
        wait="closed: no doctor on duty" if of_plan.is_closed else wait_text(info),
        interval=interval_text(info.low_seconds, info.high_seconds),
        waiting=info.queue_length,
        doctors=_doctors_text(of_plan),
        last_hour=_error_text(of_plan.last_hour),
    )


def wait_text(info: QueueInfo) -> str:
    """`no wait`, `under 1 min`, `12 min`."""
    if info.estimated_wait_seconds == 0:
        return "no wait"
    return minutes_text(info.estimated_wait_seconds)


def minutes_text(seconds: float) -> str:
    """To the nearest minute: `12 min`, and `under 1 min`."""
    if seconds < MINUTE:
        return "under 1 min"
    return f"{round(seconds / MINUTE):,} min"


def interval_text(low: float | None, high: float | None) -> str:
    """`8 to 19 min`, whole minutes that have both ends inside. "" without an interval, and for a
    ready doctor (0 to 0).
    """
    if low is None or not high:
        return ""
    return f"{int(low // MINUTE):,} to {ceil(high / MINUTE):,} min"


def _doctors_text(of_plan: PlanBoard) -> str:
    """`3 doctors, 1 busy, 1 paused`, without what is 0."""
    if not of_plan.doctors:
        return ""
    text = count_text(of_plan.doctors, "doctor")
    if of_plan.busy_doctors:
        text += f", {of_plan.busy_doctors} busy"
    if of_plan.paused_doctors:
        text += f", {of_plan.paused_doctors} paused"
    return text


def _error_text(accuracy: EstimateAccuracy | None) -> str:
    if accuracy is None:
        return ""
    return f"off by {minutes_text(accuracy.mean_error_seconds)} ({accuracy.matched:,})"


def describe_day(day: PlanDay) -> str:
    """The chart in two sentences."""
    promised = [each.seconds for each in day.promised]
    if promised:
        least = minutes_text(min(promised))
        most = minutes_text(max(promised))
        first = f"The promised wait was {least} to {most}."
        if least == most:
            first = f"The promised wait was {most}."
    else:
        first = "No wait was promised."
    visits = sum(each.patients for each in day.waits)
    if not visits:
        return f"{first} No visit of these hours has begun."
    return f"{first} {_visits_text(day.waits, visits)}"


def _visits_text(waits: Sequence[PastWaits], visits: int) -> str:
    mean = minutes_text(_mean_wait(waits))
    longest = minutes_text(max(each.longest_seconds for each in waits))
    return f"The patients of {count_text(visits, 'visit')} waited {mean} on average, {longest} at most."


def _mean_wait(waits: Sequence[PastWaits]) -> float:
    patients = sum(each.patients for each in waits)
    return sum(each.mean_seconds * each.patients for each in waits) / patients


def chart_of(day: PlanDay, zone: tzinfo) -> Chart:
    """Promised waits as the line with its band, and the mean wait of each 5 minutes as dots."""
    return Chart(
        element_id="day",
        title=f"{isolated(day.plan.name)}: the wait of the last 24 hours, in minutes",
        description=describe_day(day),
        since=day.as_of - timedelta(hours=24),
        until=day.as_of,
        zone=zone,
        unit="minutes",
        step=STEP,
        line=[
            LinePoint(
                each.at,
                each.seconds / MINUTE,
                None if each.low_seconds is None else each.low_seconds / MINUTE,
                None if each.high_seconds is None else each.high_seconds / MINUTE,
            )
            for each in day.promised
        ],
        dots=[Dot(each.at + STEP / 2, each.mean_seconds / MINUTE) for each in day.waits],
    )


def hours_of(day: PlanDay, zone: tzinfo) -> list[HourWords]:
    """The day by the hours of the zone's clock, at most 25, without those of which there is nothing
    to say.
    """
    promised: defaultdict[datetime, list[PromisedWait]] = defaultdict(list)
    waits: defaultdict[datetime, list[PastWaits]] = defaultdict(list)
    for promise in day.promised:
        promised[hour_of(promise.at, zone)].append(promise)
    for wait in day.waits:
        waits[hour_of(wait.at, zone)].append(wait)
    hours = sorted(promised.keys() | waits.keys())
    return [_hour(hour, promised[hour], waits[hour]) for hour in hours]


def _hour(
    begins_at: datetime, promised: Sequence[PromisedWait], waits: Sequence[PastWaits]
) -> HourWords:
    waited = ""
    if waits:
        longest = max(each.longest_seconds for each in waits)
        waited = f"{minutes_text(_mean_wait(waits))}, {minutes_text(longest)} at most"
    return HourWords(
        begins_at=begins_at,
        promised=_range_text([each.seconds for each in promised]),
        interval=interval_text(
            min(_known(each.low_seconds for each in promised), default=None),
            max(_known(each.high_seconds for each in promised), default=None),
        ),
        visits=count_text(sum(each.patients for each in waits), "visit") if waits else "",
        waited=waited,
    )


def _range_text(seconds: Sequence[int]) -> str:
    if not seconds:
        return "none"
    if not max(seconds):
        return "no wait"
    low = round(min(seconds) / MINUTE)
    high = round(max(seconds) / MINUTE)
    return minutes_text(max(seconds)) if low == high else f"{low:,} to {high:,} min"


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]
