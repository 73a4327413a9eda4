"""Histories of families, drawn by hypothesis and written as files with senders' habits: no file takes
access unseen, changes another person, or gives days that nobody said.

The histories are the same in every run: a change is judged by what it does, not by luck. New ones are
sought by `python -m tests.histories` (CONTRIBUTING.md, A family history).
"""

from hypothesis import HealthCheck, given, settings

from tests.faults.callers import times
from tests.histories.drawing import History, histories, written
from tests.histories.judge import Court


@settings(
    max_examples=times(25, long=2000),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(histories)
def test_no_file_takes_access_unseen_or_changes_another_person(
    the_court: Court, history: History
) -> None:
    found = the_court.judge(history)
    assert not found, "\n".join([written(history), *(each.text for each in found)])
