"""The days that the wait estimate is measured on."""

from collections.abc import Callable
from math import cos, log, pi, sqrt
from random import Random

from bench.wait_world import Plan, Scenario, Shift
from frontdesk.queues.backtest.replay import HOUR

MINUTE = 60.0
DAY = (0.0, 15 * HOUR)


def lognormal(mean: float, spread: float) -> Callable[[Random], float]:
    """Visits with this mean and a standard deviation of so many means."""
    sigma = sqrt(log(1 + spread**2))
    return lambda random: random.lognormvariate(log(mean) - sigma**2 / 2, sigma)


def bimodal(short: float, long: float, share_short: float) -> Callable[[Random], float]:
    """Prescriptions and consultations."""

    def length(random: Random) -> float:
        middle = short if random.random() < share_short else long
        return max(20.0, random.gauss(middle, 0.15 * middle))

    return length


def exponential(mean: float) -> Callable[[Random], float]:
    return lambda random: random.expovariate(1 / mean)


def steady(
    rate: float, length: Callable[[Random], float], patience: Callable[[Random], float] | None = None
) -> Plan:
    return Plan(lambda _: rate, length, rate, patience)


def between(times: tuple[float, float], inside: float, outside: float) -> Callable[[float], float]:
    return lambda t: inside if times[0] <= t < times[1] else outside


def all_day(count: int, capacity: int = 1) -> Callable[[Random], list[Shift]]:
    return lambda _: [Shift((DAY,), capacity=capacity)] * count


def uneven(_: Random) -> list[Shift]:
    first, second = frozenset({1}), frozenset({2})
    return [Shift((DAY,), plans) for plans in (first, second, None, None, None)]


def comings_and_goings(random: Random) -> list[Shift]:
    """Eight doctors, each on duty for one to three hours, then away for a quarter of an hour to an hour and a half."""
    shifts = []
    for _ in range(8):
        spans, at = [], random.uniform(-2, 0.5) * HOUR
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


def untold_breaks(count: int) -> Callable[[Random], list[Shift]]:
    """Doctors on duty all day, each of which rests for 8 to 25 minutes every hour or two and tells nobody."""

    def roster(random: Random) -> list[Shift]:
        shifts = []
        for _ in range(count):
            breaks, at = [], random.uniform(0.2, 1.5) * HOUR
            while at < DAY[1]:
                breaks.append((at, random.uniform(8, 25) * MINUTE))
                at += random.uniform(1, 2) * HOUR
            shifts.append(Shift((DAY,), breaks=tuple(breaks)))
        return shifts

    return roster


def now_and_then(share: float, shortest: float, longest: float) -> Callable[[Random], float]:
    return lambda random: random.uniform(shortest, longest) if random.random() < share else 0.0


def by_the_hour(low: float, high: float) -> Callable[[float], float]:
    """A wave through the day: fewest at the start, most after four and a half hours, fewest again after nine."""
    return lambda t: low + (high - low) * (1 - cos(2 * pi * t / (9 * HOUR))) / 2


def fewer_after(start: float, rate: float, per_hour: float, least: float) -> Callable[[float], float]:
    return lambda t: max(least, min(rate, rate - (t - start) / HOUR * per_hour))


SCENARIOS = [
    Scenario("one doctor", {1: steady(4.6, lognormal(10 * MINUTE, 0.6))}, all_day(1)),
    Scenario("ten doctors", {1: steady(44, lognormal(12 * MINUTE, 0.7))}, all_day(10)),
    Scenario(
        "two plans share doctors unevenly",
        {1: steady(9, lognormal(8 * MINUTE, 0.6)), 2: steady(8.5, lognormal(20 * MINUTE, 0.6))},
        uneven,
    ),
    Scenario(
        "lunch-time burst",
        {1: Plan(between((4 * HOUR, 5.5 * HOUR), 45, 18), lognormal(12 * MINUTE, 0.6), 45)},
        all_day(6),
    ),
    Scenario("lognormal visits, long tail", {1: steady(17, lognormal(12 * MINUTE, 1.3))}, all_day(4)),
    Scenario("bimodal visits", {1: steady(16.5, bimodal(5 * MINUTE, 30 * MINUTE, 0.7))}, all_day(4)),
    Scenario("doctors leave and arrive", {1: steady(31, lognormal(12 * MINUTE, 0.6))}, comings_and_goings),
    Scenario(
        "lunch breaks in turns",
        {1: steady(33, lognormal(12 * MINUTE, 0.6))},
        lunch_in_turns,
        measured=(3 * HOUR, 8 * HOUR),
    ),
    Scenario(
        "evening, doctors go home",
        {1: Plan(fewer_after(5 * HOUR, 34, 6.5, 8), lognormal(12 * MINUTE, 0.6), 34)},
        evening,
        measured=(4 * HOUR, 10 * HOUR),
    ),
    Scenario(
        "abandonment", {1: steady(24, lognormal(14 * MINUTE, 0.6), lognormal(25 * MINUTE, 0.8))}, all_day(5)
    ),
    Scenario(
        "chat, three visits at a time", {1: steady(34, lognormal(22 * MINUTE, 0.6))}, all_day(4, capacity=3)
    ),
    Scenario(
        "cold start",
        {1: steady(24, lognormal(11 * MINUTE, 0.6)), 2: steady(4, lognormal(20 * MINUTE, 0.6))},
        all_day(6),
        measured=(0.0, 2 * HOUR),
    ),
    Scenario("breaks that are not told", {1: steady(22, lognormal(12 * MINUTE, 0.6))}, untold_breaks(7)),
    Scenario(
        "notes after each visit",
        {1: steady(20, lognormal(12 * MINUTE, 0.6))},
        all_day(6),
        notes=lambda random: random.uniform(1 * MINUTE, 5 * MINUTE),
    ),
    Scenario(
        "doctors look busy for a while",
        {1: steady(25, lognormal(12 * MINUTE, 0.6))},
        all_day(6),
        end_told_late=now_and_then(0.3, 3 * MINUTE, 12 * MINUTE),
    ),
    Scenario(
        "a feed two minutes late",
        {1: steady(26, lognormal(12 * MINUTE, 0.6))},
        all_day(6),
        feed_late=2 * MINUTE,
    ),
    Scenario(
        "priority patients nobody tells of",
        {
            1: steady(20, lognormal(12 * MINUTE, 0.6)),
            2: Plan(lambda _: 5.0, lognormal(12 * MINUTE, 0.6), 5.0, told=False),
        },
        all_day(6),
    ),
    Scenario(
        "arrivals follow the hour",
        {1: Plan(by_the_hour(10, 36), lognormal(12 * MINUTE, 0.6), 36)},
        all_day(6),
    ),
]
