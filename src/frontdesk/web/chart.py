"""A chart over time as an SVG element, drawn on the server: a line with a band around it, and dots.

It has a title and a description for those who do not see it, and no style of its own: classes of
page.css give it colours, because the policy of our pages refuses inline styles. The shapes differ, so
it can be read without colour. The page shows the same as a table below it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil, floor, log10
from typing import NamedTuple

from markupsafe import Markup

# In units of the viewBox, by which the browser scales the chart to the page.
WIDTH = 640
HEIGHT = 300
LEFT = 52
RIGHT = 12
TOP = 34
BOTTOM = 36
DOT = 3.5

TICK_HOURS = 4
MOST_TICKS = 5  # of the vertical axis, above 0
LEAST_TOP = 10.0  # the vertical axis reaches at least so far: small values look small
# A value that is larger than so many times what 9 of 10 values stay below is drawn at the upper edge:
# one patient who waited all night would press the rest of the day flat.
FAR = 3.0


class LinePoint(NamedTuple):
    """A value of the line from `at` on, with the ends of the band."""

    at: datetime
    value: float
    low: float | None = None
    high: float | None = None


class Dot(NamedTuple):
    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn, by time. Values are not negative; `unit` names them at the axis.

    `element_id` is unique on the page. A point of the line holds for `step`; where the next one
    is later than that, the line is interrupted. Hours are those of `zone`.
    """

    element_id: str
    title: str
    description: str
    since: datetime
    until: datetime
    zone: tzinfo
    unit: str
    step: timedelta
    line: Sequence[LinePoint] = ()
    dots: Sequence[Dot] = ()


class Axes(NamedTuple):
    """Where times and values are drawn. `top` is the value at the upper edge."""

    since: datetime
    until: datetime
    top: float

    def x(self, at: datetime) -> float:
        share = (at - self.since) / (self.until - self.since)
        return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = min(max(value / self.top, 0.0), 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def draw(chart: Chart) -> Markup:
    """The chart as an `svg` element, with every text escaped."""
    axes = axes_of(chart)
    description = chart.description
    beyond = sum(value > axes.top for value in _values(chart))
    if beyond:
        description += f" Drawn at the upper edge, because larger: {beyond}."
    parts = [
        *_grid(chart, axes),
        *(_band(run, chart, axes) for run in _runs(chart, with_band=True)),
        *(_line(run, chart, axes) for run in _runs(chart, with_band=False)),
        *(_dot(dot, axes) for dot in chart.dots),
    ]
    return Markup(
        '<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="{id}-title {id}-desc">\n'
        '<title id="{id}-title">{title}</title>\n<desc id="{id}-desc">{description}</desc>\n'
        "{parts}\n</svg>"
    ).format(
        width=WIDTH,
        height=HEIGHT,
        id=chart.element_id,
        title=chart.title,
        description=description,
        parts=Markup("\n").join(parts),
    )


def axes_of(chart: Chart) -> Axes:
    """The axes that fit the chart's values."""
    values = sorted(value for value in _values(chart) if value > 0)
    if not values:
        return Axes(chart.since, chart.until, LEAST_TOP)
    most_are_below = values[ceil(0.9 * len(values)) - 1]
    highest = min(values[-1], FAR * most_are_below)
    step = tick_step(max(highest, LEAST_TOP))
    return Axes(chart.since, chart.until, step * ceil(max(highest, LEAST_TOP) / step))


def tick_step(highest: float) -> float:
    """The distance of ticks that are easy to read: 1, 2 or 5 times a power of ten."""
    least = highest / MOST_TICKS
    power = 10.0 ** floor(log10(least))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= least)


def _values(chart: Chart) -> Iterator[float]:
    for point in chart.line:
        yield point.value
        if point.high is not None:
            yield point.high
    for dot in chart.dots:
        yield dot.value


def _runs(chart: Chart, *, with_band: bool) -> Iterator[list[LinePoint]]:
    """The line in pieces without an interruption; `with_band`: only where there is a band."""
    run: list[LinePoint] = []
    for point in chart.line:
        if run and point.at - run[-1].at > chart.step:
            yield run
            run = []
        has_band = point.low is not None and point.high is not None
        if has_band or not with_band:
            run.append(point)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _line(run: list[LinePoint], chart: Chart, axes: Axes) -> Markup:
    corners = [(point.at, point.value) for point in run]
    corners.append((run[-1].at + chart.step, run[-1].value))
    return Markup('<polyline class="chart-line" points="{}"/>').format(_points(corners, axes))


def _band(run: list[LinePoint], chart: Chart, axes: Axes) -> Markup:
    end = run[-1].at + chart.step
    upper = [(point.at, point.high or 0.0) for point in run]
    upper.append((end, run[-1].high or 0.0))
    lower = [(point.at, point.low or 0.0) for point in run]
    lower.append((end, run[-1].low or 0.0))
    corners = upper + lower[::-1]
    return Markup('<polygon class="chart-band" points="{}"/>').format(_points(corners, axes))


def _points(corners: list[tuple[datetime, float]], axes: Axes) -> str:
    return " ".join(f"{axes.x(at):.1f},{axes.y(value):.1f}" for at, value in corners)


def _dot(dot: Dot, axes: Axes) -> Markup:
    """A circle; a triangle for a value beyond the upper edge."""
    x = axes.x(dot.at)
    y = axes.y(dot.value)
    if dot.value <= axes.top:
        return Markup('<circle class="chart-dot" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(
            x, y, DOT
        )
    corners = f"{x - DOT:.1f},{y + DOT:.1f} {x + DOT:.1f},{y + DOT:.1f} {x:.1f},{y - DOT:.1f}"
    return Markup('<polygon class="chart-dot" points="{}"/>').format(corners)


def _grid(chart: Chart, axes: Axes) -> Iterator[Markup]:
    """The rules with their labels, and the units above the vertical axis."""
    right = WIDTH - RIGHT
    yield Markup('<text class="chart-unit" x="4" y="18">{}</text>').format(chart.unit)
    step = tick_step(axes.top)
    for number in range(round(axes.top / step) + 1):
        y = axes.y(number * step)
        yield Markup('<path class="chart-rule" d="M{} {:.1f}H{}"/>').format(LEFT, y, right)
        yield Markup('<text class="chart-value" x="{}" y="{:.1f}">{:g}</text>').format(
            LEFT - 8, y + 5, number * step
        )
    for at in _ticks(chart):
        x = axes.x(at)
        yield Markup('<path class="chart-rule" d="M{:.1f} {}V{}"/>').format(
            x, TOP, HEIGHT - BOTTOM + 5
        )
        yield Markup('<text class="chart-time" x="{:.1f}" y="{}">{}</text>').format(
            x, HEIGHT - 10, at.astimezone(chart.zone).strftime("%H:%M")
        )


def _ticks(chart: Chart) -> Iterator[datetime]:
    """Every fourth hour of the zone's clock. A label needs room at both edges."""
    room = timedelta(minutes=40)
    at = hour_of(chart.since, chart.zone)
    while at <= chart.until - room:
        local = at.astimezone(chart.zone)
        if at >= chart.since + room / 2 and local.hour % TICK_HOURS == 0:
            yield at
        at += timedelta(hours=1)


def hour_of(moment: datetime, zone: tzinfo) -> datetime:
    """The beginning of the moment's hour by the zone's clock, in UTC: a zone may be half an hour off,
    and in autumn an hour comes twice.
    """
    local = moment.astimezone(zone)
    into = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    return moment.astimezone(UTC) - into
