"""Sets of days as whole numbers: bit n stands for the n-th day since FIRST_DAY (pure)."""

from datetime import date, timedelta

FIRST_DAY = date(2024, 1, 1)
LAST_DAY = date(2034, 12, 31)  # stands for an access without an end, later than all histories
COUNT = (LAST_DAY - FIRST_DAY).days + 1
EVERY_DAY = (1 << COUNT) - 1


def between(begin: date, end: date | None) -> int:
    """The days from begin to end, both inclusive; none if the end is before the begin."""
    return since(begin) & (EVERY_DAY if end is None else until(end))


def since(day: date) -> int:
    return EVERY_DAY & ~((1 << _position(day)) - 1)


def until(day: date) -> int:
    return (1 << _position(day) + 1) - 1 & EVERY_DAY


def contains(days: int, day: date) -> bool:
    return bool(days >> _position(day) & 1)


def first_of(days: int) -> date:
    """The earliest of the days, of which there is at least one."""
    return FIRST_DAY + timedelta(days=(days & -days).bit_length() - 1)


def shown(days: int) -> str:
    """The days as spans, such as `2026-01-01..2026-12-31, 2027-02-01..`."""
    spans = []
    while days:
        begin = first_of(days)
        rest = since(begin) & ~days
        if not rest:
            spans.append(f"{begin}..")
            break
        end = first_of(rest) - timedelta(days=1)
        spans.append(f"{begin}..{end}" if end > begin else f"{begin}")
        days &= since(first_of(rest))
    return ", ".join(spans) or "none"


def _position(day: date) -> int:
    return max(0, min((day - FIRST_DAY).days, COUNT))
