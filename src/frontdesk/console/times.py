"""Times as a person reads them: in one time zone, which the page names."""

from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil

from markupsafe import Markup

from frontdesk.errors import RateLimited

_DAY = timedelta(days=1)


class Times:
    """Shows times in a zone, seen from `now`. A date without a time is never shifted."""

    def __init__(self, zone: tzinfo, now: datetime) -> None:
        self._zone = zone
        self._now = now

    @property
    def zone(self) -> tzinfo:
        return self._zone

    @property
    def zone_text(self) -> str:
        """The zone's name and its distance from UTC now, such as `America/New_York (UTC-05:00)`."""
        offset = self._now.astimezone(self._zone).utcoffset() or timedelta()
        if self._zone is UTC or not offset:
            return "UTC"
        minutes = int(offset.total_seconds()) // 60
        sign = "-" if minutes < 0 else "+"
        hours, rest = divmod(abs(minutes), 60)
        return f"{self._zone} (UTC{sign}{hours:02}:{rest:02})"

    def at(self, moment: datetime | None) -> Markup:
        """`Nov 27 03:02`, with the year of another year, as a `time` element; "" for None."""
        if moment is None:
            return Markup("")
        local = moment.astimezone(self._zone)
        here = self._now.astimezone(self._zone)
        shape = "%b %-d %H:%M" if local.year == here.year else "%b %-d, %Y %H:%M"
        return _element(moment, local.strftime(shape), local.strftime("%Y-%m-%d %H:%M:%S %Z"))

    def clock(self, moment: datetime) -> Markup:
        """`09:41:20`, for a page that says as of when it is."""
        local = moment.astimezone(self._zone)
        return _element(moment, self.clock_text(moment), local.strftime("%Y-%m-%d %H:%M:%S %Z"))

    def clock_text(self, moment: datetime) -> str:
        """`09:41:20`, without an element around it."""
        return moment.astimezone(self._zone).strftime("%H:%M:%S")

    def minute(self, moment: datetime) -> str:
        """`09:41`, or `Nov 27 09:41` on another day, for a sentence."""
        local = moment.astimezone(self._zone)
        is_today = local.date() == self._now.astimezone(self._zone).date()
        return local.strftime("%H:%M" if is_today else "%b %-d %H:%M")

    def ago(self, moment: datetime | None) -> Markup:
        """`6 h`, `20 min`: how long ago, with the time itself as title; "" for None."""
        if moment is None:
            return Markup("")
        local = moment.astimezone(self._zone)
        text = span_text(self._now - moment)
        return _element(moment, text, local.strftime("%Y-%m-%d %H:%M:%S %Z"))


def span_text(span: timedelta) -> str:
    """A length of time in one unit: `40 s`, `20 min`, `6 h`, `12 days`."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if span < 2 * _DAY:
        return f"{seconds // 3600} h"
    return f"{span.days} days"


def try_again_text(error: RateLimited) -> str:
    """The error, and when to try again: a wait that is long enough."""
    seconds = error.retry_after_seconds
    unit = 1 if seconds < 60 else 60 if seconds <= 3600 else 3600
    wait = timedelta(seconds=unit * ceil(seconds / unit))
    return f"{error.detail} Try again in {span_text(wait)}."


def _element(moment: datetime, text: str, title: str) -> Markup:
    machine = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, title, text)
