"""An undo puts back what a file changed, and can itself be undone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.db import Database
from frontdesk.eligibility import find_addresses, find_expired
from frontdesk.errors import FrontdeskError
from frontdesk.files.actions import is_undone, overtaken_by, undone_by
from frontdesk.files.model import WrongState
from frontdesk.formats.model import FileMode
from frontdesk.invitations.resend import resend_invitation
from frontdesk.reach import EVERY
from tests.conftest import Api, SetClock
from tests.factories import make_customer
from tests.files.loading import Desk, as_in_a_real_run, csv_of, examples, lines_of, row


def test_a_record_changed_again_since_is_left_and_listed(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    file = desk.load(csv_of([row(1, last_name="A"), row(2, last_name="A")]))
    desk.load(csv_of([row(1, last_name="A", city="Later")], columns=(*row(1), "city")))
    undo = desk.undo(file)
    assert undo.counts == {"restored": 1, "refused": 1}
    assert (2, "refused", "changed_since") in desk.outcomes(undo)
    assert [member["last_name"] for member in desk.members().values()] == ["A", "Sample 2"]


def test_an_undo_takes_back_no_post_that_was_sent_under_the_files_name(
    api: Api, desk: Desk
) -> None:
    """A file's rows are known by the file's id. No request id that a caller sends makes a POST look
    like one of them.
    """
    file = desk.load(csv_of([row(1), row(2)]))
    path = f"/v2/plans/{desk.customer.plan_ids[0]}/eligibility"
    body = {"external_id": "E00001", "last_name": "Posted"}
    answer = api.post(path, body, headers={"X-Request-ID": f"file-{file.id}"})
    assert answer.status_code in (200, 201)
    undo = desk.undo(file)
    assert undo.counts == {"withdrawn": 1, "refused": 1, "lost": 1}
    assert (2, "refused", "changed_since") in desk.outcomes(undo)
    assert {key: member["last_name"] for key, member in desk.members().items()} == {
        "E00001": "Posted"
    }


def test_a_withdrawn_identifier_is_free_again_and_its_old_record_stays_away(desk: Desk) -> None:
    undo = desk.undo(desk.load(csv_of([row(1)])))
    assert desk.load(csv_of([row(1)])).counts == {"created": 1}
    assert desk.outcomes(desk.undo(undo)) == [(2, "refused", "not_unique")]
    assert len(desk.members()) == 1


def test_invitations_of_withdrawn_members_are_never_sent(desk: Desk) -> None:
    """Some are in a worker's hands during the undo, or are resent; the next claim finds the member
    gone.
    """
    desk.load(csv_of([row(1)]))
    rows = (row(n, email=f"r{n}@example.com", invite_immediately=True) for n in (2, 3))
    desk.undo(desk.load(lines_of(rows)))
    with desk.db.write() as tx:
        ids = tx.exec_driver_sql("SELECT id FROM members ORDER BY id").scalars().all()
        invitation, _ = tx.exec_driver_sql("SELECT id, state FROM invitations").all()
        steps = tx.exec_driver_sql(
            "SELECT from_state, to_state, reason FROM invitation_events"
        ).all()
        assert [tuple(step) for step in steps] == [("pending", "cancelled", "withdrawn")] * 2
        asked = (EVERY, invitation.id, desk.requester())
        resend_invitation(tx, *asked, find_addresses=find_addresses)
        assert find_expired(tx, ids, datetime(2026, 6, 1, 12, tzinfo=UTC)) == set(ids[1:])


def test_keys_that_wandered_and_metadata_in_another_order_are_put_back(desk: Desk) -> None:
    desk.load(lines_of([*(row(n) for n in range(1, 4)), row(5, metadata={"b": "1", "a": "2"})]))
    before = desk.members()
    wandered = {3: "M9", 2: "M00003", 1: "M00002", 4: "M00001"}
    rows = [row(n, member_id=member_id) for n, member_id in wandered.items()]
    ordered = row(5, metadata={"a": "2", "b": "1"}, last_name="New")
    file = desk.load(lines_of([*rows, ordered]))
    assert file.counts == {"updated": 4, "created": 1}
    assert desk.undo(file).counts == {"restored": 4, "withdrawn": 1, "lost": 1}
    assert desk.members() == before


def test_after_an_undo_of_an_undo_the_last_of_them_is_the_one_to_undo(desk: Desk) -> None:
    file = desk.load(csv_of([row(1)]))
    undo = desk.undo(file)
    redo = desk.undo(undo)
    for earlier, said in ((file, f"file {redo.id}"), (undo, f"undone already, by file {redo.id}")):
        with pytest.raises(FrontdeskError, match=said):
            desk.undo(earlier)
    assert desk.undo(redo).counts == {"withdrawn": 1, "lost": 1}
    with pytest.raises(FrontdeskError, match="undone already, by file 4"):
        desk.undo(file)


def test_an_undo_that_took_nothing_back_is_none_for_the_brakes(desk: Desk, clock: SetClock) -> None:
    everyone = [row(n) for n in range(1, 31)]
    before = desk.load(csv_of(everyone[:1]))
    full = desk.load(csv_of(everyone), mode=FileMode.FULL)
    clock.advance(60)
    for each in everyone:
        desk.post(**each | {"zipcode": "10001"})
    nothing = desk.undo(full)
    assert nothing.counts == {"refused": 29}
    with desk.db.write() as tx:
        assert not is_undone(tx, full.id)
        assert undone_by(tx, full.id) == nothing.id
        assert f"file {full.id}," in overtaken_by(tx, before)


def test_a_second_undo_that_takes_nothing_back_leaves_the_first_in_force(
    desk: Desk, clock: SetClock
) -> None:
    file = desk.load(csv_of([row(1), row(2)]))
    clock.advance(60)
    desk.load(csv_of([row(2, zipcode="10001")]))
    first = desk.undo(file)
    assert first.counts == {"withdrawn": 1, "refused": 1, "lost": 1}
    again = desk.undo(file)
    assert again.counts.keys() <= {"refused", "unchanged"}
    with desk.db.write() as tx:
        assert is_undone(tx, file.id)
        assert undone_by(tx, file.id) == first.id


def test_a_file_is_undone_redone_and_undone_and_then_has_to_be_loaded_again(desk: Desk) -> None:
    """Each undo stores the file's changes again: without an end, empty requests would fill the
    disk.
    """
    content = csv_of([row(1)])
    file = desk.load(content)
    last = desk.undo(desk.undo(desk.undo(file)))
    assert last.counts == {"withdrawn": 1, "lost": 1}
    for _ in range(2):
        with pytest.raises(WrongState, match=f"File {file.id} was undone, redone .* load it again"):
            desk.undo(last)
    assert desk.load(content).counts == {"created": 1}


def test_an_undo_that_is_cancelled_each_time_can_be_begun_five_times(desk: Desk) -> None:
    file = desk.load(csv_of([row(1)]))
    for _ in range(5):
        desk.cancel(desk.hand_in_undo(file))
    with pytest.raises(WrongState, match="was begun 5 times"):
        desk.hand_in_undo(file)


numbers = st.integers(1, 8)
texts = st.sampled_from(["Zoë", "O'Hara", "Sample", "李"])
maybe = st.none() | st.sampled_from(["a@example.com", "B@example.com", "c@example.com", ""])


def a_row(number: int, last_name: str, member: int, email: Any, keys: list[str]) -> dict[str, Any]:
    begin = "2027-01-01" if number == 1 else "2026-01-01"
    values = {
        "member_id": f"M{member:05d}",
        "email": email,
        "metadata": dict.fromkeys(keys, last_name),
    }
    dob = f"1980-02-{number:02d}"  # else they are similar
    return row(number, effective_date=begin, last_name=last_name, dob=dob, **values)


rows = st.lists(
    st.builds(a_row, numbers, texts, numbers, maybe, st.lists(st.sampled_from("zyx"), unique=True)),
    min_size=1,
    max_size=10,
)


def test_a_third_undo_takes_back_each_member_once(desk: Desk) -> None:
    """The full file's first chunk changes nothing, and its second ends two members: the redo begins
    with a chunk without rows.
    """
    desk.load(csv_of(row(n) for n in range(3)))
    ended = desk.approve(desk.load(csv_of([row(0)]), full=True))
    assert ended.counts == {"unchanged": 1, "ended": 2, "lost": 2}
    redone = desk.undo(desk.undo(ended))
    again = desk.undo(redone)
    assert redone.counts == {"restored": 2, "lost": 2}
    assert again.counts == {"restored": 2, "gained": 2}


def desk_with(db: Database, clock: SetClock, first: list[dict[str, Any]]) -> Desk:
    """A new customer whose members are these; those of earlier examples are out of the way."""
    desk = Desk(db, make_customer(db, name="Undo"), clock)
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET uniqueness_scope = -id")
    desk.load(lines_of(first))
    return desk


two_files = given(first=rows, second=rows, plan=st.integers(0, 1), full=st.booleans())


@examples
@two_files
def test_a_dry_run_reports_what_a_run_then_does(
    db: Database, clock: SetClock, first: Any, second: Any, plan: int, full: bool
) -> None:
    desk = desk_with(db, clock, first)
    before = desk.members()
    dry = desk.load(lines_of(second), plan=plan, full=full, dry_run=True)
    assert desk.members() == before
    file = desk.load(lines_of(second), plan=plan, full=full)
    assert dry.codes == file.codes
    assert as_in_a_real_run(desk.report(dry)) == as_in_a_real_run(desk.report(file))


@examples
@two_files
def test_an_undo_restores_the_records_and_its_undo_the_change(
    db: Database, clock: SetClock, first: Any, second: Any, plan: int, full: bool
) -> None:
    desk = desk_with(db, clock, first)
    before = desk.members()
    file = desk.load(lines_of(second), plan=plan, full=full)
    after = desk.members()
    undo = desk.undo(file)
    assert "refused" not in undo.counts
    assert desk.members() == before
    redo = desk.undo(undo)
    assert "refused" not in redo.counts
    assert desk.members() == after
    assert desk.undo(redo).counts == undo.counts
    assert desk.members() == before
