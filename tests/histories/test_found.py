"""Histories that were found by `python -m tests.histories`, or by hypothesis."""

import re

import pytest

from tests.histories.drawing import History
from tests.histories.judge import Court
from tests.histories.known import KEPT, OPEN, OpenCause


@pytest.mark.parametrize("history", KEPT.values(), ids=KEPT)
def test_a_history_that_was_found_violates_no_law(the_court: Court, history: History) -> None:
    assert the_court.judge(history) == []


@pytest.mark.parametrize("case", OPEN, ids=[each.cause for each in OPEN])
def test_an_open_cause_still_violates_a_law(the_court: Court, case: OpenCause) -> None:
    """Once it is repaired, its history moves to KEPT."""
    kinds = [each.kind for each in the_court.judge(case.history)]
    assert any(re.search(case.pattern, kind) for kind in kinds), kinds
