"""The days that the wait estimate is measured on."""

from collections.abc import Callable
from dataclasses import replace
from math import cos, log, pi, sqrt
from random import Random
from typing import Any

from bench.wait_world import HOUR, Break, Draw, PatientClass, Plan, Scenario, Shift

MINUTE = 60.0
Roster = Callable[[Random], list[Shift]]
DAY = (0.0, 15 * HOUR)


def lognormal(mean: float, spread: float) -> Draw:
    """Visits with this mean and a standard deviation of so many means."""
    sigma = sqrt(log(1 + spread**2))
    return lambda random: random.lognormvariate(log(mean) - sigma**2 / 2, sigma)


def bimodal(short: float, long: float, share_short: float) -> Draw:
    """Prescriptions and consultations."""

    def length(random: Random) -> float:
        middle = short if random.random() < share_short else long
        return max(20.0, random.gauss(middle, 0.15 * middle))

    return length


VISITS = lognormal(12 * MINUTE, 0.6)


def steady(rate: float, length: Draw = VISITS, patience: Draw | None = None) -> Plan:
    return Plan(lambda _: rate, length, rate, patience)


def all_day(count: int, capacity: int = 1) -> Roster:
    return lambda _: [Shift((DAY,), capacity=capacity)] * count


def uneven(_: Random) -> list[Shift]:
    first = frozenset({1})
    second = frozenset({2})
    return [Shift((DAY,), plans) for plans in (first, second, None, None, None)]


def comings_and_goings(random: Random) -> list[Shift]:
    """Eight doctors, each on duty for one to three hours, then away for a quarter of an hour to an
    hour and a half.
    """
    shifts = []
    for _ in range(8):
        spans = []
        at = random.uniform(-2, 0.5) * HOUR
        while at < DAY[1]:
            end = at + random.uniform(1, 3) * HOUR
            if end > 0:
                spans.append((max(0.0, at), end))
            at = end + random.uniform(0.25, 1.5) * HOUR
        shifts.append(Shift(tuple(spans)))
    return [*shifts, Shift((DAY,))]


def lunch_in_turns(_: Random) -> list[Shift]:
    """Eight doctors, each away for half an hour, two at a time."""
    breaks = [(4 + 0.5 * (number % 4)) * HOUR for number in range(8)]
    return [Shift(((0.0, start), (start + 0.5 * HOUR, DAY[1]))) for start in breaks]


def evening(_: Random) -> list[Shift]:
    """Eight doctors: six go home one after another, two stay."""
    ends = [*((5 + 0.6 * number) * HOUR for number in range(6)), DAY[1], DAY[1]]
    return [Shift(((0.0, end),)) for end in ends]


def unreported_breaks(random: Random) -> list[Shift]:
    """Seven doctors on duty all day, each of which rests for 8 to 25 minutes every hour or two,
    unreported.
    """
    shifts = []
    for _ in range(7):
        breaks = []
        at = random.uniform(0.2, 1.5) * HOUR
        while at < DAY[1]:
            breaks.append(Break(at, random.uniform(8, 25) * MINUTE))
            at += random.uniform(1, 2) * HOUR
        shifts.append(Shift((DAY,), breaks=tuple(breaks)))
    return shifts


def reported_breaks(random: Random) -> list[Shift]:
    """Seven doctors on duty all day, each of which rests for 10 to 25 minutes every hour or two;
    how long that will take is reported, and wrong by up to a third.
    """
    shifts = []
    for _ in range(7):
        breaks = []
        at = random.uniform(0.2, 1.5) * HOUR
        while at < DAY[1]:
            told = random.uniform(10, 25) * MINUTE
            breaks.append(Break(at, told * random.uniform(2 / 3, 4 / 3), told))
            at += random.uniform(1, 2) * HOUR
        shifts.append(Shift((DAY,), breaks=tuple(breaks)))
    return shifts


URGENT_FIRST = (
    PatientClass("urgent", 0.15, lognormal(15 * MINUTE, 0.6), priority=1),
    PatientClass("follow-up", 0.45, lognormal(7 * MINUTE, 0.5)),
    PatientClass("new", 0.4, lognormal(18 * MINUTE, 0.6)),
)
BOOKED_FIRST = (
    PatientClass(
        "booked",
        0.5,
        VISITS,
        priority=1,
        notice=lambda chance: chance.uniform(10 * MINUTE, 3 * HOUR),
    ),
    PatientClass("walk-in", 0.5, VISITS),
)


def now_and_then(share: float, shortest: float, longest: float) -> Draw:
    return lambda random: random.uniform(shortest, longest) if random.random() < share else 0.0


def soon_or_later(share: float, patience: Draw) -> Draw:
    """This share of the callers hangs up within a second of joining the line."""
    return lambda random: random.random() if random.random() < share else patience(random)


def by_the_hour(low: float, high: float) -> Callable[[float], float]:
    """A wave through the day: fewest at the start, most after four and a half hours, fewest again
    after nine.
    """
    return lambda t: low + (high - low) * (1 - cos(2 * pi * t / (9 * HOUR))) / 2


def fewer_after(
    start: float, rate: float, per_hour: float, least: float
) -> Callable[[float], float]:
    return lambda t: max(least, min(rate, rate - (t - start) / HOUR * per_hour))


def clinic(name: str, plan: Plan, roster: Roster, **more: Any) -> Scenario:
    return Scenario(name, {1: plan}, roster, **more)


SCENARIOS = [
    clinic("one doctor", steady(4.6, lognormal(10 * MINUTE, 0.6)), all_day(1)),
    clinic("ten doctors", steady(44, lognormal(12 * MINUTE, 0.7)), all_day(10)),
    Scenario(
        "two plans share doctors unevenly",
        {1: steady(9, lognormal(8 * MINUTE, 0.6)), 2: steady(8.5, lognormal(20 * MINUTE, 0.6))},
        uneven,
    ),
    clinic(
        "lunch-time burst",
        Plan(lambda t: 45 if 4 <= t / HOUR < 5.5 else 18, VISITS, 45),
        all_day(6),
    ),
    clinic("lognormal visits, long tail", steady(17, lognormal(12 * MINUTE, 1.3)), all_day(4)),
    clinic("bimodal visits", steady(16.5, bimodal(5 * MINUTE, 30 * MINUTE, 0.7)), all_day(4)),
    clinic("doctors leave and arrive", steady(31), comings_and_goings),
    clinic("lunch breaks in turns", steady(33), lunch_in_turns, measured=(3 * HOUR, 8 * HOUR)),
    clinic(
        "evening, doctors go home",
        Plan(fewer_after(5 * HOUR, 34, 6.5, 8), VISITS, 34),
        evening,
        measured=(4 * HOUR, 10 * HOUR),
    ),
    clinic(
        "abandonment",
        steady(24, lognormal(14 * MINUTE, 0.6), lognormal(25 * MINUTE, 0.8)),
        all_day(5),
    ),
    clinic(
        "chat, three visits at a time",
        steady(34, lognormal(22 * MINUTE, 0.6)),
        all_day(4, capacity=3),
    ),
    Scenario(
        "cold start",
        {1: steady(24, lognormal(11 * MINUTE, 0.6)), 2: steady(4, lognormal(20 * MINUTE, 0.6))},
        all_day(6),
        measured=(0.0, 2 * HOUR),
        is_first_day=True,
    ),
    clinic("unreported breaks", steady(22), unreported_breaks),
    clinic(
        "notes after each visit",
        steady(20),
        all_day(6),
        notes=lambda chance: chance.uniform(MINUTE, 5 * MINUTE),
    ),
    clinic(
        "doctors look busy for a while",
        steady(25),
        all_day(6),
        end_late=now_and_then(0.3, 3 * MINUTE, 12 * MINUTE),
    ),
    clinic("a feed two minutes late", steady(26), all_day(6), feed_late=2 * MINUTE),
    Scenario(
        "unreported priority patients",
        {1: steady(20), 2: Plan(lambda _: 5.0, VISITS, 5.0, is_reported=False)},
        all_day(6),
    ),
    clinic("classes with priority", replace(steady(24), classes=URGENT_FIRST), all_day(6)),
    clinic("booked visits", replace(steady(26), classes=BOOKED_FIRST), all_day(6)),
    clinic("reported pauses", steady(24), reported_breaks),
    Scenario(
        "a plan goes first, unreported",
        {
            1: steady(13, lognormal(14 * MINUTE, 0.6)),
            2: replace(steady(9, lognormal(8 * MINUTE, 0.6)), goes_first=True),
        },
        all_day(5),
    ),
    clinic("arrivals follow the hour", Plan(by_the_hour(10, 36), VISITS, 36), all_day(6)),
    clinic(
        "a telephone line",
        steady(152, lognormal(4.5 * MINUTE, 0.7), soon_or_later(0.08, lognormal(10 * MINUTE, 1.0))),
        all_day(11),
        measured=(HOUR, 4 * HOUR),
    ),
]
