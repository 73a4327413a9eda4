"""The chart: what is drawn where, and that it can be read without colour and without eyes."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from frontdesk.web.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    Dot,
    LinePoint,
    axes_of,
    draw,
    hour_of,
    tick_step,
)

UNTIL = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
SINCE = UNTIL - timedelta(hours=24)
STEP = timedelta(minutes=5)
EMPTY = Chart("day", "The wait", "Nothing came.", SINCE, UNTIL, UTC, "minutes", STEP)


def drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(draw(chart))  # noqa: S314 - our own text


def of_class(svg: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in svg if each.get("class") == name]


def corners(element: ET.Element) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in element.attrib["points"].split())
    return [(float(x), float(y)) for x, y in pairs]


def line_of(*values: float, since: datetime = SINCE) -> list[LinePoint]:
    return [LinePoint(since + STEP * number, value) for number, value in enumerate(values)]


def test_points_are_where_their_time_and_value_are() -> None:
    noon = SINCE + timedelta(hours=12)
    chart = replace(EMPTY, line=line_of(0, 5, 10), dots=[Dot(noon, 5.0), Dot(UNTIL, 10.0)])
    svg = drawn(chart)
    [line] = of_class(svg, "chart-line")
    bottom = HEIGHT - BOTTOM
    middle = (TOP + bottom) / 2
    width = WIDTH - LEFT - RIGHT
    step = width * 5 / (24 * 60)
    at = [(LEFT, bottom), (LEFT + step, middle), (LEFT + 2 * step, TOP), (LEFT + 3 * step, TOP)]
    assert corners(line) == [pytest.approx(each, abs=0.06) for each in at]
    dots = [
        (float(each.attrib["cx"]), float(each.attrib["cy"])) for each in of_class(svg, "chart-dot")
    ]
    assert dots == [(LEFT + width / 2, middle), (WIDTH - RIGHT, TOP)]


def test_an_empty_day_has_its_axes() -> None:
    svg = drawn(EMPTY)
    assert of_class(svg, "chart-line") + of_class(svg, "chart-dot") == []
    assert [each.text for each in of_class(svg, "chart-value")] == ["0", "2", "4", "6", "8", "10"]
    times = [each.text for each in of_class(svg, "chart-time")]
    assert times == ["16:00", "20:00", "00:00", "04:00", "08:00"]
    assert [each.text for each in of_class(svg, "chart-unit")] == ["minutes"]


def test_one_point_is_a_dash_of_its_step() -> None:
    svg = drawn(replace(EMPTY, line=line_of(5)))
    [line] = of_class(svg, "chart-line")
    (left, y), (right, same) = corners(line)
    assert right - left == pytest.approx(2, abs=0.1)
    assert y == same


def test_a_pause_interrupts_the_line_and_its_band() -> None:
    later = SINCE + timedelta(hours=3)
    points = [*line_of(5, 6), *line_of(7, since=later)]
    with_band = [point._replace(low=1.0, high=9.0) for point in points]
    svg = drawn(replace(EMPTY, line=with_band))
    assert [len(corners(each)) for each in of_class(svg, "chart-line")] == [3, 2]
    assert [len(corners(each)) for each in of_class(svg, "chart-band")] == [6, 4]
    half = [with_band[0], points[1], with_band[2]]
    svg = drawn(replace(EMPTY, line=half))
    assert len(of_class(svg, "chart-line")) == 2
    assert [len(corners(each)) for each in of_class(svg, "chart-band")] == [4, 4]


def test_extreme_values_stay_inside_and_do_not_press_the_rest_flat() -> None:
    dots = [Dot(SINCE + STEP * number, 10.0) for number in range(20)]
    chart = replace(EMPTY, dots=[*dots, Dot(UNTIL + STEP, 1e9)], line=line_of(0, 1e12))
    assert axes_of(chart).top == 30
    svg = drawn(chart)
    numbers = [float(each) for each in re.findall(r'[",]([0-9.]+)[ "]', ET.tostring(svg).decode())]
    assert max(numbers) <= WIDTH
    [beyond] = [each for each in of_class(svg, "chart-dot") if each.tag.endswith("polygon")]
    assert max(y for _, y in corners(beyond)) < TOP + 10
    assert "Drawn at the upper edge, because larger: 2." in (svg[1].text or "")
    assert axes_of(replace(EMPTY, dots=[Dot(SINCE, 1440.0)])).top == 1500


def test_it_is_named_described_and_escaped() -> None:
    svg = drawn(replace(EMPTY, title='<b>"Gold"</b> & more', description="<i>none</i>"))
    assert [each.text for each in svg[:2]] == ['<b>"Gold"</b> & more', "<i>none</i>"]
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "day-title day-desc"
    assert [each.get("id") for each in svg[:2]] == ["day-title", "day-desc"]
    assert "style" not in draw(EMPTY)


def test_hours_are_those_of_the_zone() -> None:
    india = timezone(timedelta(hours=5, minutes=30))
    svg = drawn(replace(EMPTY, zone=india))
    times = [each.text for each in of_class(svg, "chart-time")]
    assert times == ["20:00", "00:00", "04:00", "08:00", "12:00", "16:00"]
    assert hour_of(UNTIL, india) == UNTIL
    assert hour_of(UNTIL + timedelta(minutes=59), india) == UNTIL
    berlin = ZoneInfo("Europe/Berlin")
    twice = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30 comes at 00:30 and at 01:30
    hours = {hour_of(twice + timedelta(hours=number), berlin) for number in range(2)}
    assert len(hours) == 2


@pytest.mark.parametrize(("highest", "step"), [(10, 2), (11, 5), (25, 5), (26, 10), (1440, 500)])
def test_ticks_are_round_numbers(highest: float, step: float) -> None:
    assert tick_step(highest) == step
