"""Times as a person reads them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from frontdesk.console.times import Times, span_text, try_again_text
from frontdesk.errors import RateLimited

NOW = datetime(2026, 11, 28, 14, 41, 20, tzinfo=UTC)
NEW_YORK = Times(ZoneInfo("America/New_York"), NOW)


def test_a_time_is_shown_in_the_users_zone_with_the_whole_time_as_title() -> None:
    assert NEW_YORK.zone_text == "America/New_York (UTC-05:00)"
    assert NEW_YORK.at(datetime(2026, 11, 28, 3, 2, tzinfo=UTC)) == (
        '<time datetime="2026-11-28T03:02:00Z" title="2026-11-27 22:02:00 EST">Nov 27 22:02</time>'
    )
    assert ">Jan 2, 2025 19:00<" in NEW_YORK.at(datetime(2025, 1, 3, tzinfo=UTC))
    assert NEW_YORK.at(None) == ""
    assert ">09:41:20<" in NEW_YORK.clock(NOW)


def test_utc_has_no_distance() -> None:
    assert Times(UTC, NOW).zone_text == "UTC"
    assert Times(ZoneInfo("Asia/Kolkata"), NOW).zone_text == "Asia/Kolkata (UTC+05:30)"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=59, seconds=59), "59 min"),
        (timedelta(hours=47, minutes=59), "47 h"),
        (timedelta(days=2), "2 days"),
    ],
)
def test_a_span_is_told_in_one_unit(span: timedelta, text: str) -> None:
    assert span_text(span) == text
    assert f">{text}<" in NEW_YORK.ago(NOW - span)


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        (1, "1 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "2 min"),
        (90, "2 min"),
        (3541, "1 h"),
        (3601, "2 h"),
    ],
)
def test_a_wait_is_told_long_enough(seconds: int, wait: str) -> None:
    error = RateLimited("Too many.", retry_after_seconds=seconds)
    assert try_again_text(error) == f"Too many. Try again in {wait}."
