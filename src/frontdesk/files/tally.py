"""Counts the outcomes of a file's rows, and the codes of its report's lines."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from frontdesk.files.model import ENDED_BY_ABSENCE, WARNED, EligibilityFile, RowOutcome


class Tally(NamedTuple):
    """Rows by outcome and lines by code, as the file keeps them: without zeros."""

    counts: dict[str, int]
    codes: dict[str, int]

    @classmethod
    def of(cls, file: EligibilityFile) -> "Tally":
        return cls(file.counts, file.codes)

    def plus(self, outcomes: Sequence[RowOutcome]) -> "Tally":
        return self._changed(outcomes, 1)

    def minus(self, outcomes: Sequence[RowOutcome]) -> "Tally":
        return self._changed(outcomes, -1)

    def _changed(self, outcomes: Sequence[RowOutcome], sign: int) -> "Tally":
        counts, codes = Counter(outcome.outcome for outcome in outcomes), Counter[str]()
        for outcome in outcomes:
            if not (outcome.faults or outcome.warnings or outcome.place is None):
                continue  # nearly all
            if outcome.faults:
                codes.update(code for _, code, _ in outcome.faults)
            if outcome.warnings:
                counts[WARNED] += 1
                codes.update(warning[1] for warning in outcome.warnings)
            if outcome.is_by_absence:
                codes[ENDED_BY_ABSENCE] += 1
        return Tally(_sum(self.counts, counts, sign), _sum(self.codes, codes, sign))


def _sum(before: dict[str, int], more: Counter[str], sign: int) -> dict[str, int]:
    names = dict.fromkeys((*before, *more))
    return {name: total for name in names if (total := before.get(name, 0) + sign * more[name])}
