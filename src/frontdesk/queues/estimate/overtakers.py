"""Patients of a higher priority that join behind a newcomer, and are served before it."""

from collections.abc import Iterable, Sequence
from itertools import cycle, islice

from frontdesk.queues.estimate.draws import Draw, exponential, orders

MOST_JOINS = 1000  # of one run: its draws may take more than the doctors' time, and never end


class Overtakers:
    """Patients that will join behind a newcomer, and are served before it.

    By run, a fixed series of their joins, MOST_JOINS at most. Each that joins during the newcomer's
    wait adds its work, during which more may join: on average the wait is multiplied by
    1 / (1 - load), as in a queue with priorities whose visits are not interrupted (Cobham 1954). A
    longer wait stays longer.
    """

    def __init__(self, joins_per_second: float, works: Sequence[float]) -> None:
        """`works`: equally likely parts of a visit's seconds, divided by the number of slots."""
        self._mean_gap = 1 / joins_per_second
        self._works = works
        runs = len(works)
        self._gaps = exponential(runs, Draw.JOIN)
        self._parts = list(zip(*orders(runs, Draw.JOIN_LENGTH), strict=True))

    def delay(self, waits: Sequence[float]) -> list[float]:
        """`waits`, by run, with the work of those that join in the meantime."""
        return [
            self._delayed(wait, zip(cycle(gaps), cycle(parts), strict=False))
            for wait, gaps, parts in zip(waits, self._gaps, self._parts, strict=True)
        ]

    def _delayed(self, wait: float, joins: Iterable[tuple[float, int]]) -> float:
        """`joins`: gaps in means, and numbers of parts."""
        at = 0.0
        for gap, part in islice(joins, MOST_JOINS):
            at += self._mean_gap * gap
            if at >= wait:
                break
            wait += self._works[part]
        return wait
