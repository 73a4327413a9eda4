"""A chunk of a dry run that runs again, after a lost race or on a new connection, is decided as if it ran the first time."""

from collections.abc import Callable, Sequence

import pytest

from frontdesk.db import Tx
from frontdesk.db.failures import StateChanged
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import RowOutcome
from tests.files.loading import Desk, csv_of, row
from tests.postgres import Databases

# The second and the third row depend on what the first would have done.
ROWS = [row(1), row(2, member_id="M00001"), row(1), row(3)]
OUTCOMES = [(2, "created", ""), (3, "refused", "not_unique"), (4, "unchanged", ""), (5, "created", "")]


@pytest.fixture
def fail_before_saving(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`fail_before_saving(times, fail)`: so many times, `fail` is called for a chunk that is decided and not stored."""
    save_chunk = FileClaim.save_chunk

    def set_up(times: int, fail: Callable[[], None]) -> None:
        left = [fail] * times

        def save(claim: FileClaim, tx: Tx, outcomes: Sequence[RowOutcome], *, rows_done: int) -> None:
            if left:
                left.pop()()
            save_chunk(claim, tx, outcomes, rows_done=rows_done)

        monkeypatch.setattr(FileClaim, "save_chunk", save)

    return set_up


def lose_race() -> None:
    raise StateChanged


@pytest.mark.parametrize("times", [1, 2, 3, 5])  # from the third on, row by row
def test_a_lost_race_changes_no_outcome(
    desk: Desk, fail_before_saving: Callable[..., None], times: int
) -> None:
    fail_before_saving(times, lose_race)
    file = desk.load(csv_of(ROWS), dry_run=True)
    assert desk.outcomes(file) == OUTCOMES
    assert desk.count("members") == 0


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_cut_connection_changes_no_outcome(
    desk: Desk, postgres: Databases, fail_before_saving: Callable[..., None]
) -> None:
    def cut() -> None:
        assert postgres.kill_backends(str(desk.db.engine.url.database)) > 0

    fail_before_saving(1, cut)
    file = desk.load(csv_of(ROWS), dry_run=True)
    assert desk.outcomes(file) == OUTCOMES
