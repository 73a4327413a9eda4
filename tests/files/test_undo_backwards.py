"""Files are undone backwards: after the undo of the last one, the one before it can be undone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given

from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility import people, store
from frontdesk.eligibility.model import DERIVATION_CLIENT, Outcome
from frontdesk.eligibility.tables import members
from frontdesk.eligibility.undo import KEPT_BY_RETENTION
from frontdesk.files.model import EligibilityFile, WrongState
from frontdesk.privacy.store import drop_values
from frontdesk.text import stored_time
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, examples, lines_of, row
from tests.files.undoing import act, fresh_desk, loads, records


def the_member(desk: Desk) -> dict[str, Any]:
    return desk.members()["E00001"]


def city(desk: Desk, value: str | None, *numbers: int) -> EligibilityFile:
    """Load a file that says another city."""
    return desk.load(lines_of(row(number, city=value) for number in numbers or (1,)))


def refused(undo: EligibilityFile) -> bool:
    return undo.codes == {"changed_since": 1} and undo.counts == {"refused": 1}


def test_the_file_before_one_that_was_undone_can_be_undone(desk: Desk) -> None:
    files = [desk.load(csv_of([row(1)])), city(desk, "B"), city(desk, "C")]
    for file, left in zip(reversed(files), ("B", None), strict=False):
        assert desk.undo(file).counts == {"restored": 1}
        assert the_member(desk)["city"] == left
    assert desk.undo(files[0]).counts == {"withdrawn": 1, "lost": 1}


def test_a_file_is_not_undone_while_a_later_one_stands(desk: Desk) -> None:
    files = [desk.load(csv_of([row(1)])), city(desk, "B"), city(desk, "C")]
    assert all(refused(desk.undo(file)) for file in files[:2])
    assert the_member(desk)["city"] == "C"


def test_a_post_that_another_post_took_back_is_no_change(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    file = city(desk, "B", 1, 2)
    for value in ("Posted", "B"):
        desk.post(external_id="E00001", city=value)
    desk.post(external_id="E00002", metadata={"a": "1", "b": "2"})
    desk.post(external_id="E00002", metadata={"a": "3"})
    desk.post(external_id="E00002", metadata={})
    assert desk.undo(file).counts == {"restored": 2}
    assert [member["city"] for member in desk.members().values()] == [None, None]


@pytest.mark.parametrize("changed", [{"last_name": "Posted"}, {"city": "Posted"}, {"plan": 1}])
def test_a_record_with_another_value_is_left_whatever_the_field(
    desk: Desk, changed: dict[str, Any]
) -> None:
    desk.load(csv_of([row(1)]))
    file = city(desk, "B")
    desk.post(external_id="E00001", **changed)
    before = desk.members()
    assert refused(desk.undo(file))
    assert desk.members() == before


def test_metadata_is_compared_by_its_values(desk: Desk) -> None:
    desk.load(lines_of([row(1, metadata={"a": "1", "b": "2"})]))
    file = city(desk, "B")
    desk.post(external_id="E00001", metadata={"a": "9"})
    desk.post(external_id="E00001", metadata={"b": "2", "a": "1"})
    assert desk.undo(file).counts == {"restored": 1}


def test_a_member_goes_back_through_its_plans(desk: Desk) -> None:
    files = [desk.load(csv_of([row(1)]), plan=plan) for plan in (0, 1, 0)]
    assert [file.counts for file in files] == [{"created": 1}, {"moved": 1}, {"moved": 1}]
    plans = []
    for file in reversed(files[1:]):
        assert desk.undo(file).counts == {"restored": 1}
        plans.append(the_member(desk)["plan_id"])
    assert plans == [desk.customer.plan_ids[1], desk.customer.plan_ids[0]]


def test_a_withdrawal_that_was_undone_is_no_change_and_one_that_stands_is(desk: Desk) -> None:
    """The file creates the member; it is undone, redone, and undone for good."""
    file = desk.load(csv_of([row(1)]))
    redone = desk.undo(desk.undo(file))
    later = city(desk, "C")
    assert refused(desk.undo(redone))
    desk.undo(later)
    assert desk.undo(redone).counts == {"withdrawn": 1, "lost": 1}
    assert desk.load(csv_of([row(1)])).counts == {"created": 1}


def test_a_file_whose_undo_refused_records_can_be_undone_again(desk: Desk) -> None:
    """The later file was in the way. What the first undo took back stays so."""
    desk.load(csv_of([row(1), row(2)]))
    file = desk.load(lines_of([row(1, city="B"), row(2, city="B"), row(3)]))
    later = city(desk, "C", 2)
    first = desk.undo(file)
    assert first.counts == {"restored": 1, "withdrawn": 1, "refused": 1, "lost": 1}
    desk.undo(later)
    second = desk.undo(file)
    assert second.counts == {"unchanged": 2, "restored": 1}
    assert [member["city"] for member in desk.members().values()] == [None, None]
    with pytest.raises(WrongState, match=f"undone already, by file {second.id}"):
        desk.undo(file)
    assert desk.undo(second).counts == {"restored": 1}
    assert desk.undo(first).counts == {"restored": 2, "gained": 1}
    assert [member["city"] for member in desk.members().values()] == ["B", "B", None]


def test_a_record_that_somebody_put_back_by_hand_is_unchanged(desk: Desk) -> None:
    desk.load(csv_of([row(1)]))
    file = city(desk, "B")
    desk.post(external_id="E00001", city=None)
    before = desk.members()
    undo = desk.undo(file)
    assert (undo.counts, desk.members()) == ({"unchanged": 1}, before)
    assert desk.outcomes(undo) == [(1, "unchanged", "")]


def test_a_merge_that_was_undone_is_no_change_and_one_that_stands_is(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2), row(3)]))
    file = city(desk, "B", 1, 2, 3)
    for dropped in ("E00002", "E00003"):
        act(desk, people.merge, "E00001", dropped)
    act(desk, people.unmerge, "E00001", "E00002", uniqueness=Uniqueness.SERVICE)
    undo = desk.undo(file)
    assert undo.codes == {"changed_since": 2}
    cities = {key: member["city"] for key, member in desk.members().items()}
    assert cities == {"E00001": "B", "E00002": None, "E00003": "B"}


def test_the_undo_of_a_merge_is_in_the_history_as_ever(desk: Desk) -> None:
    desk.load(lines_of([row(1), row(2, email="a@example.com")]))
    before = records(desk)
    act(desk, people.merge, "E00001", "E00002")
    act(desk, people.unmerge, "E00001", "E00002", uniqueness=Uniqueness.SERVICE)
    assert records(desk) == before
    entries = desk.db.ask(lambda tx: store.list_history(tx, before["E00002"]["id"]))
    back = {"member_id": [None, "M00002"], "email": [None, "a@example.com"]}
    assert entries[-1].changes == back | {"merged_into": [before["E00001"]["id"], None]}


@pytest.mark.parametrize("chunk_rows", [None, 1])
def test_a_member_that_the_file_wrote_twice_gets_both_changes_back(
    desk: Desk, chunk_rows: int | None
) -> None:
    """The second row names a member that was merged into the first one."""
    desk.options = replace(desk.options, chunk_rows=chunk_rows)
    desk.load(csv_of([row(1), row(2)]))
    act(desk, people.merge, "E00001", "E00002")
    before = records(desk)
    rows = [{"external_id": f"E0000{number}", "city": f"City {number}"} for number in (1, 2)]
    rows[1]["state"] = "MA"
    file = desk.load(lines_of(rows))
    assert file.counts == {"updated": 2}
    after = records(desk)
    undo = desk.undo(file)
    assert (undo.counts, records(desk)) == ({"restored": 2}, before)
    redo = desk.undo(undo)
    assert (redo.counts, records(desk)) == ({"restored": 2}, after)
    assert desk.undo(redo).counts == {"restored": 2}
    assert records(desk) == before


def derive(desk: Desk, member: Mapping[str, Any], **changes: Any) -> None:
    """Change the member as a worker does that derives it from its coverages."""
    pairs = {name: [member[name], value] for name, value in changes.items()}
    entry = (member["id"], Outcome.UPDATED.value, member["plan_id"], pairs, DERIVATION_CLIENT, "r")
    with desk.db.write() as tx:
        store.insert_history(tx, [(*entry, None)], stored_time(desk.clock()))
        tx.execute(sa.update(members).where(members.c.id == member["id"]).values(changes))


def test_a_derivation_is_set_aside(desk: Desk) -> None:
    """The undo puts back what the file changed, over the derivation; what it has not changed stays
    as it was derived.
    """
    desk.load(csv_of([row(1)]))
    file = desk.load(lines_of([row(1, city="B", effective_date="2026-02-01")]))
    derive(desk, the_member(desk), effective_date="2026-03-01", expiry_date="2027-01-31")
    undo = desk.undo(file)
    assert undo.counts == {"restored": 1}
    member = the_member(desk)
    dates = [str(member[name]) for name in ("effective_date", "expiry_date")]
    assert (member["city"], dates) == (None, ["2026-01-01", "2027-01-31"])
    desk.undo(undo)
    member = the_member(desk)
    assert (member["city"], str(member["effective_date"])) == ("B", "2026-03-01")


def lose_values(desk: Desk) -> None:
    """Remove the values of the first member's history, as retention does after years."""
    member_id = the_member(desk)["id"]
    with desk.db.write() as tx:
        drop_values(tx, "member_id", [member_id])
        entries = store.list_history(tx, member_id)
    left = set().union(*(entry.changes for entry in entries))
    assert {"effective_date", "expiry_date"} <= left <= KEPT_BY_RETENTION


def test_values_that_retention_has_removed_can_not_be_compared(desk: Desk, clock: SetClock) -> None:
    """What is left of them would say that nothing has changed. The newest change is taken back as
    far as it is known.
    """
    now = clock.now
    clock.now = datetime.fromisoformat("2013-01-01T12:00:00+00:00")
    desk.load(csv_of([row(1)]))
    file = desk.load(lines_of([row(1, city="B", expiry_date="2030-12-31")]))
    later = city(desk, "C")
    clock.now = now
    lose_values(desk)
    assert refused(desk.undo(file))
    desk.undo(later)
    assert refused(desk.undo(file))
    assert the_member(desk)["city"] == "C"


def test_the_newest_change_is_taken_back_by_the_values_that_retention_left(
    desk: Desk, clock: SetClock
) -> None:
    now = clock.now
    clock.now = datetime.fromisoformat("2013-01-01T12:00:00+00:00")
    desk.load(csv_of([row(1)]))
    file = desk.load(lines_of([row(1, city="B", expiry_date="2030-12-31")]))
    clock.now = now
    lose_values(desk)
    assert desk.undo(file).counts == {"restored": 1, "gained": 1}
    member = the_member(desk)
    assert (member["city"], member["expiry_date"]) == ("B", None)


@examples
@given(loaded=loads)
def test_every_undo_and_redo_leads_to_the_records_of_that_time(
    db: Database, clock: SetClock, loaded: Sequence[tuple[list[dict[str, Any]], int, bool]]
) -> None:
    desk = fresh_desk(db, clock)
    states = [records(desk)]
    files = []
    for sent, plan, full in loaded:
        files.append(desk.approve_if_held(desk.load(lines_of(sent), plan=plan, full=full)))
        states.append(records(desk))
    for file in reversed(files):
        after = states.pop()
        undo = desk.undo(file)
        assert "refused" not in undo.counts
        assert records(desk) == states[-1]
        redo = desk.undo(undo)
        assert "refused" not in redo.counts
        assert records(desk) == after
        assert desk.undo(redo).counts == undo.counts
        assert records(desk) == states[-1]


def test_three_files_of_thousands_of_rows_are_undone_backwards(desk: Desk) -> None:
    """A census, a change file with ends and moves, and a full file that omits some."""
    count = 3000
    changed = [row(n, city="B") for n in range(0, count, 2)]
    changed += [row(n, expiry_date="2027-12-31") for n in range(1, count, 3) if n % 2]
    changed += [row(n) for n in range(count, count + 100)]
    last = [row(n, last_name="C") for n in range(20, count)]
    states = [records(desk)]
    files = []
    for sent, full in ((map(row, range(count)), True), (changed, False), (last, True)):
        files.append(desk.approve_if_held(desk.load(lines_of(sent), full=full)))
        states.append(records(desk))
    assert [file.state for file in files] == ["done"] * 3
    assert files[2].counts["ended"] == 120
    for file in reversed(files):
        states.pop()
        assert "refused" not in desk.undo(file).counts
        assert records(desk) == states[-1]
