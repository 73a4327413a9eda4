"""Which days of a file are judged: the latest, counted back from the latest joining."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from frontdesk.backtest.columns import EncounterColumns

DAY_SECONDS = 86400.0
DEFAULT_DAYS = 30
# Fewer patients than this share of those of usual days, and of the file: a few rows are apart from
# the others.
APART_SHARE = 0.1


class JudgedDays(NamedTuple):
    """Patients that came at `since` or later are judged, `patients` of the file's `all_patients`:
    from `first` until `last`. In seconds since 1970.

    Rows without an end of the wait are no patients here.
    """

    since: float
    first: float
    last: float
    patients: int
    all_patients: int


class RowsApart(NamedTuple):
    """Nobody came between `since` and `until`; the `lines` of the rows after that."""

    since: float
    until: float
    lines: Sequence[int]


def judged_days(rows: EncounterColumns, days: int) -> JudgedDays:
    """The `days` before the latest joining, or start without one. A late end moves them not."""
    known = [rows.came_at(row) for row in range(len(rows)) if rows.wait_ended(row)]
    last = max(known, default=0.0)
    since = last - days * DAY_SECONDS
    judged = [at for at in known if at >= since]
    return JudgedDays(since, min(judged, default=0.0), last, len(judged), len(known))


def rows_apart(rows: EncounterColumns, days: JudgedDays) -> RowsApart | None:
    """The rows after the largest gap, if hardly a patient of the file came on the judged days."""
    if days.patients >= APART_SHARE * days.all_patients:
        return None
    known = [row for row in range(len(rows)) if rows.wait_ended(row)]
    came = sorted(map(rows.came_at, known))
    with_patients = len({at // DAY_SECONDS for at in came})
    usual = days.all_patients / with_patients * (days.last - days.since) / DAY_SECONDS
    if days.patients >= APART_SHARE * usual:
        return None
    since, until = max(pairwise(came[-days.patients - 1 :]), key=lambda gap: gap[1] - gap[0])
    return RowsApart(since, until, [rows.line[row] for row in known if rows.came_at(row) >= until])
