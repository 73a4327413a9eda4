"""Histories that were found by `python -m tests.histories`, or by hypothesis."""

import pytest

from tests.histories.drawing import History
from tests.histories.judge import Court
from tests.histories.known import KEPT


@pytest.mark.parametrize("history", KEPT.values(), ids=KEPT)
def test_a_history_that_was_found_violates_no_law(the_court: Court, history: History) -> None:
    assert the_court.judge(history) == []
