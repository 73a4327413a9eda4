"""Days as `YYYY-MM-DD`, which sort as text."""

from datetime import date, timedelta

OPEN = "9999-12-31"  # the last day of an access without an end


def day_before(day: str) -> str:
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


def day_after(day: str) -> str:
    """The next day; OPEN stays."""
    return day if day >= OPEN else (date.fromisoformat(day) + timedelta(days=1)).isoformat()
