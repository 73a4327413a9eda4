"""A member that a full file ended by omitting it comes back with a later full file; no other end is taken back so."""

from typing import Any

import pytest

from frontdesk.config import Uniqueness
from frontdesk.eligibility import enrol, list_history, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.files import set_file_settings
from tests.conftest import SetClock
from tests.files.loading import Desk, lines_of, row

ENDED = "2026-11-20"
BOTH, ONE = lines_of([row(1), row(2)]), lines_of([row(1)])


def expiry(desk: Desk, key: str = "E00002") -> str | None:
    day = desk.members()[key]["expiry_date"]
    return None if day is None else str(day)


def post(desk: Desk, **values: Any) -> None:
    account, plans = desk.customer.account_id, desk.customer.plan_ids
    record = parse_member(values, today=ENDED)
    with desk.db.write() as tx:
        submission = Submission(account, plans[0], record, "client", "request")
        enrol(tx, [submission], now=desk.clock(), uniqueness=Uniqueness.SERVICE)


def omit(desk: Desk, *rows: dict[str, Any]) -> None:
    """Store E00001 and the rows, then end those by a full file that omits them."""
    desk.load(lines_of([row(1), *rows]))
    assert desk.load(ONE, full=True).counts["ended"] == len(rows)


def keep_ended(desk: Desk) -> None:
    with desk.db.write() as tx:
        set_file_settings(tx, desk.customer.account_id, reopen_absent=False)


@pytest.mark.parametrize("begins", ["2026-01-01", "2027-01-01"])
def test_a_member_that_one_full_file_omitted_is_reopened_by_the_next(desk: Desk, begins: str) -> None:
    both = [row(1), row(2, effective_date=begins)]
    omit(desk, both[1])
    dry, back = (desk.load(lines_of(both), full=True, dry_run=each) for each in (True, False))
    assert dry.counts == back.counts == {"unchanged": 1, "reopened": 1}
    assert desk.outcomes(back)[1:] == [(2, "reopened", "")]
    assert expiry(desk) is None
    assert desk.load(lines_of(both), full=True).counts == {"unchanged": 2}


def test_a_changed_row_reopens_too_and_null_as_well(desk: Desk) -> None:
    omit(desk, row(2), row(3))
    back = desk.load(lines_of([row(1), row(2, last_name="New"), row(3, expiry_date=None)]), full=True)
    assert back.counts == {"unchanged": 1, "reopened": 2}
    assert (expiry(desk), expiry(desk, "E00003")) == (None, None)


def test_a_row_with_a_date_says_itself_when_access_ends(desk: Desk) -> None:
    omit(desk, row(2))
    dated = lines_of([row(1), row(2, expiry_date="2027-06-30")])
    assert desk.load(dated, full=True).counts == {"unchanged": 1, "updated": 1}
    assert expiry(desk) == "2027-06-30"


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("2027-06-30", "2027-06-30", {"unchanged": 1, "reopened": 1}),
        ("2026-11-25", ENDED, {"unchanged": 2, "warned": 1}),
        ("9999-12-31", None, {"unchanged": 1, "reopened": 1}),
    ],
)
def test_access_gets_back_the_end_that_it_had_unless_that_is_past(
    desk: Desk, clock: SetClock, before: str, after: str | None, counts: dict[str, int]
) -> None:
    omit(desk, row(2, expiry_date=before))
    clock.advance(10 * 86_400)
    assert desk.load(BOTH, full=True).counts == counts
    assert expiry(desk) == after


@pytest.mark.parametrize("how", ["post", "row", "cleared and ended"])
def test_a_member_that_was_ended_on_purpose_stays_ended(desk: Desk, how: str) -> None:
    """Also where the purpose is told after the absence, with the very date that the absence gave."""
    omit(desk, row(2))
    if how == "row":
        dated = desk.load(lines_of([row(2, expiry_date=ENDED)]))
        assert dated.counts == {"unchanged": 1}
    else:
        if how != "post":
            post(desk, external_id="E00002", expiry_date=None)
        post(desk, external_id="E00002", expiry_date=ENDED)
    assert desk.load(BOTH, full=True).counts == {"unchanged": 2, "warned": 1}
    assert expiry(desk) == ENDED


def test_only_a_full_file_reopens(desk: Desk) -> None:
    omit(desk, row(2))
    assert desk.load(lines_of([row(2)])).counts == {"unchanged": 1, "warned": 1}
    post(desk, external_id="E00002", last_name="Changed")
    assert expiry(desk) == ENDED
    assert desk.load(BOTH, full=True).counts == {"unchanged": 1, "reopened": 1}


def test_an_account_can_switch_it_off(desk: Desk) -> None:
    omit(desk, row(2))
    keep_ended(desk)
    for _ in range(2):
        back = desk.load(BOTH, full=True)
        assert back.counts == {"unchanged": 2, "warned": 1}
        assert (2, "warned", "still_ended") in desk.outcomes(back)
    null = lines_of([row(1), row(2, expiry_date=None)])
    assert desk.load(null, full=True).counts == {"unchanged": 1, "updated": 1}


def test_a_member_that_stands_in_the_full_file_of_another_plan_is_reopened_and_moves(desk: Desk) -> None:
    omit(desk, row(2))
    assert desk.load(lines_of([row(2)]), plan=1, full=True).counts == {"reopened": 1}
    member = desk.members()["E00002"]
    assert (member["expiry_date"], member["plan_id"]) == (None, desk.customer.plan_ids[1])


def test_an_undo_takes_the_reopening_back_and_a_later_file_reopens_again(desk: Desk) -> None:
    omit(desk, row(2))
    before = desk.members()
    back = desk.load(BOTH, full=True)
    after = desk.members()
    undo = desk.undo(back)
    assert (undo.counts, desk.members()) == ({"restored": 1}, before)
    redo = desk.undo(undo)
    assert (redo.counts, desk.members()) == ({"restored": 1}, after)
    desk.undo(redo)
    assert desk.load(BOTH, full=True).counts == {"unchanged": 1, "reopened": 1}
    with desk.db.read() as tx:
        told = [entry.outcome.value for entry in list_history(tx, before["E00002"]["id"])]
    assert told == ["created", "ended", "reopened", "restored", "restored", "restored", "reopened"]


def test_a_recognised_row_does_not_hide_a_member_that_comes_back(desk: Desk) -> None:
    many = [row(n) for n in range(40)]
    for _ in range(2):
        desk.load(lines_of(many), full=True)
    assert desk.load(lines_of(many[:-3]), full=True).counts == {"unchanged": 37, "ended": 3}
    assert desk.load(lines_of(many), full=True).counts == {"unchanged": 37, "reopened": 3}
    assert desk.load(lines_of(many), full=True).counts == {"unchanged": 40}
