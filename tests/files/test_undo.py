"""An undo puts back what a file changed, and can itself be undone."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.db import Database
from frontdesk.eligibility import find_expired
from frontdesk.errors import FrontdeskError
from frontdesk.invitations.delivery import resend_invitation
from tests.conftest import SetClock
from tests.factories import make_customer
from tests.faults.callers import times
from tests.files.loading import Desk, as_in_a_real_run, csv_of, lines_of, row

EXAMPLES = times(12, long=400)


def test_what_a_file_changed_is_put_back_and_the_undo_undone(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    before = desk.members()
    file = desk.load(csv_of([row(1, last_name="New"), row(2), row(3)]))
    after = desk.members()
    undo = desk.undo(file)
    assert (undo.counts, desk.members()) == ({"restored": 1, "withdrawn": 1}, before)
    again = desk.undo(undo)
    assert (again.counts, desk.members()) == ({"restored": 2}, after)


def test_a_record_changed_again_since_is_left_and_listed(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    file = desk.load(csv_of([row(1, last_name="A"), row(2, last_name="A")]))
    desk.load(csv_of([row(1, last_name="A", city="Later")], columns=(*row(1), "city")))
    undo = desk.undo(file)
    assert undo.counts == {"restored": 1, "refused": 1}
    assert (2, "refused", "changed_since") in desk.outcomes(undo)
    assert {key: member["last_name"] for key, member in desk.members().items()} == {
        "E00001": "A",
        "E00002": "Sample 2",
    }


def test_a_withdrawn_identifier_is_free_again_and_its_old_record_stays_away(desk: Desk) -> None:
    file = desk.load(csv_of([row(1)]))
    undo = desk.undo(file)
    assert desk.load(csv_of([row(1)])).counts == {"created": 1}
    back = desk.undo(undo)
    assert back.counts == {"refused": 1}
    assert desk.outcomes(back) == [(2, "refused", "not_unique")]
    assert len(desk.members()) == 1


def test_unsent_invitations_of_created_members_are_cancelled(desk: Desk) -> None:
    rows = [row(n, email=f"r{n}@example.com", invite_immediately=True) for n in range(3)]
    desk.undo(desk.load(lines_of(rows)))
    with desk.db.read() as tx:
        assert tx.exec_driver_sql("SELECT state FROM invitations").scalars().all() == ["cancelled"] * 3
        steps = tx.exec_driver_sql("SELECT from_state, to_state, reason FROM invitation_events").all()
    assert [tuple(step) for step in steps] == [("pending", "cancelled", "withdrawn")] * 3


def test_an_invitation_that_is_resent_does_not_reach_a_withdrawn_member(desk: Desk) -> None:
    rows = [row(1, email="r1@example.com", invite_immediately=True)]
    desk.undo(desk.load(lines_of(rows)))
    with desk.db.write() as tx:
        [(invitation_id, member_id)] = tx.exec_driver_sql("SELECT id, member_id FROM invitations").all()
        resend_invitation(tx, invitation_id, now=desk.clock())
        assert find_expired(tx, [member_id], "2026-01-01") == {member_id}


def test_an_invitation_that_comes_back_to_a_withdrawn_member_is_not_sent(desk: Desk) -> None:
    """It was in a worker's hands during the undo, so it could not be cancelled; the next claim finds the member gone."""
    desk.load(csv_of([row(1)]))
    desk.undo(desk.load(csv_of([row(2), row(3)])))
    with desk.db.read() as tx:
        ids = tx.exec_driver_sql("SELECT id FROM members ORDER BY id").scalars().all()
        assert find_expired(tx, ids, "2026-06-01") == set(ids[1:])


def test_keys_that_wandered_from_member_to_member_wander_back(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(1, 4)))
    before = desk.members()
    rows = [
        row(3, member_id="M9"),
        row(2, member_id="M00003"),
        row(1, member_id="M00002"),
        row(4, member_id="M00001"),
    ]
    file = desk.load(csv_of(rows))
    assert file.counts == {"updated": 3, "created": 1}
    assert desk.undo(file).counts == {"restored": 3, "withdrawn": 1}
    assert desk.members() == before


def test_metadata_whose_keys_only_came_in_another_order_is_put_back_in_the_old_one(desk: Desk) -> None:
    desk.load(lines_of([row(1, metadata={"b": "1", "a": "2"})]))
    before = desk.members()
    file = desk.load(lines_of([row(1, metadata={"a": "2", "b": "1"}, last_name="New")]), plan=1)
    desk.undo(file)
    assert desk.members() == before


def test_a_file_is_undone_once(desk: Desk) -> None:
    file = desk.load(csv_of([row(1)]))
    desk.undo(file)
    with pytest.raises(FrontdeskError, match="undone already"):
        desk.undo(file)


def test_after_an_undo_of_an_undo_the_last_of_them_is_the_one_to_undo(desk: Desk) -> None:
    file = desk.load(csv_of([row(1)]))
    undo = desk.undo(file)
    redo = desk.undo(undo)
    for earlier in (file, undo):
        with pytest.raises(FrontdeskError) as caught:
            desk.undo(earlier)
        told = caught.value.detail
        assert ("already" in told) == (earlier is undo)
        assert f"file {redo.id}" in told
    assert desk.undo(redo).counts == {"withdrawn": 1}
    with pytest.raises(FrontdeskError, match="undone already, by file 4"):
        desk.undo(file)


def test_a_full_files_endings_are_taken_back_too(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(1500)))
    before = desk.members()
    file = desk.load(csv_of(row(n) for n in range(20, 1500)), full=True)
    assert file.counts == {"unchanged": 1480, "ended": 20}
    assert desk.undo(file).counts == {"restored": 20}
    assert desk.members() == before


numbers = st.integers(1, 8)
texts = st.sampled_from(["Zoë", "O'Hara", "Sample", "李"])
maybe = st.none() | st.sampled_from(["a@example.com", "B@example.com", "c@example.com", ""])


def a_row(number: int, last_name: str, member: int, email: Any, keys: list[str]) -> dict[str, Any]:
    return row(
        number,
        effective_date="2027-01-01" if number == 1 else "2026-01-01",
        last_name=last_name,
        dob=f"1980-02-{number:02d}",  # else they are similar
        member_id=f"M{member:05d}",
        email=email,
        metadata=dict.fromkeys(keys, last_name),
    )


rows = st.lists(
    st.builds(a_row, numbers, texts, numbers, maybe, st.lists(st.sampled_from("zyx"), unique=True)),
    min_size=1,
    max_size=10,
)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=rows, second=rows, plan=st.integers(0, 1), full=st.booleans())
def test_a_dry_run_tells_the_same_and_an_undo_restores_byte_equal_records_and_its_undo_brings_the_change_back(
    db: Database, clock: SetClock, first: Any, second: Any, plan: int, full: bool
) -> None:
    desk = Desk(db, make_customer(db, name="Undo"), clock)
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET uniqueness_scope = -id")  # earlier examples are out of the way
    desk.load(lines_of(first))
    before = desk.members()
    dry = desk.load(lines_of(second), plan=plan, full=full, dry_run=True)
    assert desk.members() == before
    file = desk.load(lines_of(second), plan=plan, full=full)
    assert dry.codes == file.codes
    assert as_in_a_real_run(desk.report(dry)) == as_in_a_real_run(desk.report(file))
    after = desk.members()
    undo = desk.undo(file)
    assert "refused" not in undo.counts
    assert desk.members() == before
    redo = desk.undo(undo)
    assert "refused" not in redo.counts
    assert desk.members() == after
    assert desk.undo(redo).counts == undo.counts
    assert desk.members() == before
