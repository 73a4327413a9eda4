"""Sequences of files that change coverages: on which days the member has access, under which plan
(docs/834.md, Access).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest

from frontdesk import events
from frontdesk.clock import AccountDay
from frontdesk.db.engine import write_alone
from frontdesk.eligibility import derive_due, list_history
from frontdesk.eligibility.model import DERIVATION_CLIENT, MemberFilter
from frontdesk.eligibility.people import find_eligibility
from frontdesk.eligibility.reading import list_records
from frontdesk.reach import EVERY
from frontdesk.worker.background import CoverageDeriver
from tests.conftest import SetClock
from tests.factories import NOW
from tests.files.loading import Desk, coverages_of, csv_of, lines_of, row
from tests.formats.reading import IDENTIFY, interchange, person, transaction

KEY = "FAMILY1-01"
Access = tuple[str, str | None]
OPEN_2026 = ("2026-01-01", None)
HLT = "HD*021**HLT*Gold~DTP*348*D8*20260101~"
HLT_ENDS = "HD*024**HLT*Gold~DTP*349*D8*20261231~"
PPO_2027 = "HD*021**PPO*Silver~DTP*348*D8*20270101~"
TEETH_END = "HD*024**DEN*Teeth~DTP*349*D8*20261130~"


def member(coverage: str, code: str = "001", dates: str = "") -> str:
    return person(code=code, coverage=coverage, number=f"REF*17*01~{dates}")


def change(desk: Desk, *coverages: str, code: str = "001", dates: str = "", **options: Any) -> Any:
    """Load a change file of the member, and return the codes of its report."""
    file = desk.load_834(member("".join(coverages), code, dates), **options)
    return [code for _, code in desk.codes(file) if code]


def full(desk: Desk, *coverages: str, **options: Any) -> Any:
    file = desk.load_834(member("".join(coverages), "030"), purpose="RX", **options)
    return [code for _, code in desk.codes(file) if code]


def stored(desk: Desk, key: str = KEY) -> dict[str, Any]:
    return desk.members()[key]


def access(desk: Desk, key: str = KEY) -> Access:
    found = stored(desk, key)
    expiry = found["expiry_date"]
    return str(found["effective_date"]), None if expiry is None else str(expiry)


def lines(desk: Desk, key: str = KEY) -> Sequence[tuple[str, str, str | None]]:
    found = coverages_of(stored(desk, key)) or []
    return [(each["line"], each["begin"], each["end"]) for each in found]


def on(desk: Desk, day: str) -> int:
    """Let a worker derive the members at noon (UTC) of the day, and return their number."""
    clock = cast(SetClock, desk.clock)
    clock.now = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    return CoverageDeriver(desk.db, clock=clock).derive()


@pytest.fixture(autouse=True)
def enrolled(desk: Desk) -> None:
    assert change(desk, HLT, code="021") == []
    assert (access(desk), lines(desk)) == (OPEN_2026, [("HLT", "2026-01-01", None)])


def test_a_switch_that_is_announced_in_two_files_loses_no_day(desk: Desk) -> None:
    assert change(desk, PPO_2027, code="021") == []
    assert access(desk) == OPEN_2026
    assert change(desk, HLT_ENDS, code="024") == ["other_coverage_open"]
    assert access(desk) == OPEN_2026
    assert lines(desk) == [("HLT", "2026-01-01", "2026-12-31"), ("PPO", "2027-01-01", None)]
    assert change(desk, "HD*024**PPO*Silver~DTP*349*D8*20270630~", code="024") == []
    assert access(desk) == ("2026-01-01", "2027-06-30")


def test_an_end_first_and_a_begin_in_the_next_file_are_one_access(desk: Desk) -> None:
    change(desk, HLT_ENDS, code="024")
    assert access(desk) == ("2026-01-01", "2026-12-31")
    change(desk, PPO_2027, code="021")
    assert access(desk) == OPEN_2026


NEW = "FAMILY1-03"
SOON = HLT.replace("20260101", "20261215")
NEXT_YEAR = HLT.replace("20260101", "20270101")
ENDS_THIS_YEAR = "DTP*357*D8*20261231~"


def load_new(
    desk: Desk, *coverages: str, code: str = "021", dates: str = "", **options: Any
) -> Any:
    """Load an 834 of a member who is new, and return the codes of its report."""
    number = f"REF*17*03~{dates}"
    loop = person("Bo", "19800203", code=code, coverage="".join(coverages), number=number)
    return [line for _, line in desk.codes(desk.load_834(loop, **options)) if line]


def test_a_coverage_that_is_yet_to_begin_and_ends_before_the_next_one_stays(desk: Desk) -> None:
    load_new(desk, SOON)
    assert load_new(desk, code="024", dates=ENDS_THIS_YEAR) == []
    assert load_new(desk, NEXT_YEAR) == []
    assert access(desk, NEW) == ("2026-12-15", None)
    begins = [("HLT", "2026-12-15", "2026-12-31"), ("HLT", "2027-01-01", None)]
    assert lines(desk, NEW) == begins


def test_a_begin_that_is_put_off_is_warned_of_and_both_can_be_told(desk: Desk) -> None:
    load_new(desk, SOON)
    assert load_new(desk, NEXT_YEAR) == ["begin_postponed"]
    assert access(desk, NEW) == ("2027-01-01", None)
    assert load_new(desk, NEXT_YEAR) == []
    assert load_new(desk, SOON + "DTP*349*D8*20261231~") == []
    assert access(desk, NEW) == ("2026-12-15", None)
    listed = load_new(desk, NEXT_YEAR, code="030", purpose="RX")
    assert listed == ["begin_postponed", "ended_by_absence"]
    assert access(desk, NEW) == ("2027-01-01", None)


def test_a_begin_that_another_coverage_precedes_is_no_loss(desk: Desk) -> None:
    change(desk, PPO_2027, code="021")
    assert change(desk, PPO_2027.replace("20270101", "20270201"), code="021") == []


@pytest.mark.parametrize("code", ["021", "001", "024", "025"])
@pytest.mark.parametrize("dates", ["DTP*357*D8*20261130~", "DTP*356*D8*20260601~"])
def test_a_dental_coverage_changes_no_date(desk: Desk, code: str, dates: str) -> None:
    assert change(desk, TEETH_END, code=code, dates=dates) == ["no_medical_coverage"]
    assert access(desk) == OPEN_2026
    change(desk, HLT_ENDS)
    assert change(desk, TEETH_END, code=code, dates="DTP*357*D8*20280101~") != []
    assert access(desk) == ("2026-01-01", "2026-12-31")


def test_the_last_day_of_a_row_is_that_of_what_it_carries(desk: Desk) -> None:
    change(desk, PPO_2027.replace("20270101", "20260201"), code="021")
    change(desk, HLT, dates="DTP*357*D8*20261130~")
    assert lines(desk) == [("HLT", "2026-01-01", "2026-11-30"), ("PPO", "2026-02-01", None)]
    change(desk, dates="DTP*357*D8*20261215~")
    assert access(desk) == ("2026-01-01", "2026-12-15")


def test_an_end_of_the_member_ends_what_it_carries_and_all_without_a_coverage(desk: Desk) -> None:
    change(desk, PPO_2027.replace("20270101", "20260201"), code="021")
    assert change(desk, HLT_ENDS, code="024") == ["other_coverage_open"]
    assert access(desk) == OPEN_2026
    assert change(desk, code="024", dates="DTP*357*D8*20261130~") == []
    assert access(desk) == ("2026-01-01", "2026-11-30")
    change(desk, code="025")
    assert access(desk) == OPEN_2026


def test_a_description_respelt_each_january_is_one_access(desk: Desk) -> None:
    renewed = HLT.replace("Gold", "Gold 2027").replace("20260101", "20270101")
    change(desk, renewed)
    assert (access(desk), on(desk, "2027-01-02")) == (OPEN_2026, 0)
    change(desk, renewed.replace("2027", "2028"))
    end = "HD*024**HLT*GOLD '28~DTP*349*D8*20280630~"
    assert change(desk, end, code="024") == []
    assert access(desk) == ("2026-01-01", "2028-06-30")


def test_an_announced_coverage_that_is_cancelled_leaves_the_one_in_force(desk: Desk) -> None:
    removed = PPO_2027.replace("HD*021", "HD*002")
    ended = "HD*024**PPO*Silver~DTP*349*D8*20261231~"
    for cancelled in (removed, ended):
        change(desk, PPO_2027)
        assert change(desk, cancelled) in ([], ["other_coverage_open"])
        assert (access(desk), lines(desk)) == (OPEN_2026, [("HLT", "2026-01-01", None)])
    change(desk, PPO_2027)
    change(desk, PPO_2027.replace("0101", "0301"))
    assert lines(desk)[1:] == [("PPO", "2027-03-01", None)], "another begin of the announced one"


def test_a_coverage_without_a_begin_has_that_of_its_line(desk: Desk) -> None:
    change(desk, "HD*001**HLT*Gold~")
    assert access(desk) == OPEN_2026
    change(desk, "HD*001**POS*Other~DTP*303*D8*20261001~")
    assert lines(desk)[1:] == [("POS", "2026-10-01", None)]


def test_a_leave_that_is_announced_ends_and_begins_on_its_days(desk: Desk) -> None:
    back = HLT.replace("20260101", "20270301")
    change(desk, HLT_ENDS, back)
    assert access(desk) == ("2026-01-01", "2026-12-31")
    assert on(desk, "2026-12-31") == 0
    assert on(desk, "2027-01-01") == 1
    assert access(desk) == ("2027-03-01", None)
    assert on(desk, "2027-03-01") == 0
    assert stored(desk)["derive_on"] is None
    entries = desk.db.ask(lambda tx: list_history(tx, stored(desk)["id"]))
    derived = [each for each in entries if each.client == DERIVATION_CLIENT]
    assert [each.changes for each in derived] == [
        {
            "effective_date": ["2026-01-01", "2027-03-01"],
            "expiry_date": ["2026-12-31", None],
            "derive_on": ["2027-01-01", None],
        }
    ]


def test_the_history_knows_the_days_before_and_after_a_gap(desk: Desk) -> None:
    change(desk, HLT_ENDS, HLT.replace("20260101", "20270301"))
    expected = {"2026-06-01": True, "2027-02-01": False, "2027-03-01": True}
    for day in ("2026-11-20", "2027-03-02"):
        on(desk, day)
        ask = partial(find_eligibility, reach=EVERY, external_id=KEY)
        found = {each: desk.db.ask(partial(ask, on=each)).eligible for each in expected}
        assert found == expected


def test_a_member_is_eligible_by_all_coverages_before_a_worker_derives_it(desk: Desk) -> None:
    change(desk, HLT_ENDS, HLT.replace("20260101", "20270301"))
    account_id = desk.customer.account_id
    plan_id = desk.customer.plan_ids[0]

    def listed(day: str) -> list[bool]:
        filter_ = MemberFilter(account_id, plan_id, eligible_on=day)
        today = AccountDay(day, day)
        page, _ = desk.db.ask(partial(list_records, filter_=filter_, size=10, day=today))
        return [each["eligible"] for each in page]

    for day in ("2026-11-20", "2027-03-02"):
        assert listed("2026-06-01") == [True]
        assert listed("2027-02-01") == []
        assert listed("2027-03-01") == [True]
        on(desk, day)


def test_members_are_derived_in_pages_with_events_and_in_the_audit_trail(desk: Desk) -> None:
    with desk.db.write() as tx:
        events.begin_feed(tx, desk.customer.account_id, desk.clock())
    back = HLT.replace("20260101", "20270301")
    desk.load_834(
        *(
            relative(name, name[-2:], coverage=HLT + HLT_ENDS + back)
            for name in ("Kim12", "Lou14", "Max16")
        )
    )
    before = desk.count("events"), desk.count("audit_entries")
    now = datetime.fromisoformat("2027-01-01T12:00:00+00:00")
    pages = []
    after = None
    while True:
        page = write_alone(desk.db, partial(derive_due, now=now, after=after, limit=2))
        pages.append(page.derived)
        after = page.next_after
        if after is None:
            break
    assert pages == [2, 1]
    assert (desk.count("events"), desk.count("audit_entries")) == (before[0] + 3, before[1] + 3)
    assert write_alone(desk.db, partial(derive_due, now=now)).derived == 0


def test_the_day_is_that_of_the_account(desk: Desk) -> None:
    with desk.db.write() as tx:
        tx.exec_driver_sql("UPDATE accounts SET time_zone = 'America/Los_Angeles'")
    change(desk, HLT_ENDS, HLT.replace("20260101", "20270301"))
    clock = cast(SetClock, desk.clock)
    clock.now = datetime.fromisoformat("2027-01-01T07:59:00+00:00")
    deriver = CoverageDeriver(desk.db, clock=clock)
    assert deriver.derive() == 0
    clock.advance(120)
    assert deriver.derive() == 1
    assert deriver.derive() == 0


BY_PLAN = {"834": IDENTIFY | {"plan": "HD04"}, "plans": {"Gold": "plan-0", "Silver": "plan-1"}}


def test_a_plan_of_the_coverage_changes_in_january(desk: Desk) -> None:
    silver = HLT.replace("Gold", "Silver").replace("20260101", "20270101")
    change(desk, HLT_ENDS, silver, mapping=BY_PLAN)
    gold, other = desk.customer.plan_ids[:2]
    assert (stored(desk)["plan_id"], access(desk)) == (gold, OPEN_2026)
    assert on(desk, "2027-01-01") == 1
    assert (stored(desk)["plan_id"], access(desk)) == (other, OPEN_2026)
    # The old plan's end is corrected after the member has left it.
    late = HLT_ENDS.replace("1231", "1130")
    change(desk, late, code="024", mapping=BY_PLAN)
    assert access(desk) == ("2027-01-01", None)
    # A row that carries no coverage moves nobody.
    assert change(desk, TEETH_END, mapping=BY_PLAN) == ["no_medical_coverage"]
    assert stored(desk)["plan_id"] == other


def test_a_return_after_the_plan_has_changed_is_under_the_plan_of_its_coverage(desk: Desk) -> None:
    silver = HLT.replace("Gold", "Silver").replace("20260101", "20270101")
    change(desk, HLT_ENDS, silver, mapping=BY_PLAN)
    desk.load_834(person("Alex", "19780203", number="REF*17*02~"), purpose="RX")
    assert on(desk, "2027-01-05") == 0
    desk.post(external_id=KEY)
    assert (stored(desk)["plan_id"], access(desk)) == (desk.customer.plan_ids[1], OPEN_2026)


def test_a_full_834_says_all_and_what_is_in_force_stays_until_its_begin(desk: Desk) -> None:
    assert full(desk, PPO_2027) == ["stays_until_then"]
    assert access(desk) == OPEN_2026
    assert lines(desk) == [("HLT", "2026-01-01", "2026-12-31"), ("PPO", "2027-01-01", None)]
    assert full(desk, PPO_2027) == ["stays_until_then"]
    assert full(desk, HLT) == []
    assert lines(desk) == [("HLT", "2026-01-01", None)]
    clock = cast(SetClock, desk.clock)
    full(desk, PPO_2027)
    clock.now = NOW + timedelta(days=50)
    assert full(desk, PPO_2027) == []
    assert access(desk) == ("2027-01-01", None)


def test_a_known_row_of_a_change_file_is_not_taken_for_a_list_of_all(desk: Desk) -> None:
    pos = HLT.replace("HLT*Gold", "POS*Other").replace("20260101", "20260201")
    change(desk, pos)
    assert len(lines(desk)) == 2
    full(desk, pos)
    assert lines(desk) == [("POS", "2026-02-01", None)]
    file = desk.load_834(member(pos, "030"), purpose="RX")
    assert file.counts == {"unchanged": 1}


def test_an_end_without_a_day_depends_on_the_date_of_the_file(desk: Desk) -> None:
    # A family between two others is recognised by its text, without the date of the file.
    ann = person("Ann", family="F2", number="REF*17*01~", last="Other")
    bo = person("Bo", family="F3", number="REF*17*01~", last="Third")
    people = (ann, member(HLT + "HD*024**HLT*Gold~"), bo)
    for day in ("2026-11-20", "2026-11-25"):
        content = interchange(transaction(*people, day=day.replace("-", "")))
        desk.load(content.encode())
        assert access(desk) == ("2026-01-01", day)


def test_loops_of_a_member_that_stand_apart_carry_all_its_coverages(desk: Desk) -> None:
    first = HLT + "DTP*349*D8*20260630~"
    second = HLT.replace("20260101", "20260801")
    alex = person("Alex", "19780203", number="REF*17*02~")
    desk.load_834(member(first, "030"), alex, member(second, "030"), purpose="RX")
    assert lines(desk) == [("HLT", "2026-01-01", "2026-06-30"), ("HLT", "2026-08-01", None)]


def test_absence_ends_all_and_keeps_the_coverages_for_the_return(desk: Desk) -> None:
    change(desk, HLT_ENDS, HLT.replace("20260101", "20270301"))
    before = lines(desk)
    desk.load_834(person("Alex", "19780203", number="REF*17*02~"), purpose="RX")
    assert access(desk) == ("2026-01-01", "2026-11-20")
    assert (lines(desk), stored(desk)["derive_on"]) == (before, None)
    desk.load_834(member("", "030"), purpose="RX")
    assert (access(desk), lines(desk)) == (("2026-01-01", "2026-12-31"), before)
    assert str(stored(desk)["derive_on"]) == "2027-01-01"


def test_absence_ends_what_would_follow_an_access_that_ends_by_itself(desk: Desk) -> None:
    change(desk, HLT_ENDS.replace("1231", "1120"), HLT.replace("20260101", "20270301"))
    alex = person("Alex", "19780203", number="REF*17*02~")
    file = desk.load_834(alex, purpose="RX")
    assert (file.counts["ended"], access(desk)) == (1, ("2026-01-01", "2026-11-20"))
    assert desk.load_834(alex, purpose="RX").counts == {"unchanged": 1}
    assert (on(desk, "2026-11-21"), access(desk)) == (0, ("2026-01-01", "2026-11-20"))
    full(desk, "")
    assert access(desk) == ("2027-03-01", None)


def test_a_change_after_an_absence_begins_with_what_was_left(desk: Desk) -> None:
    desk.load_834(person("Alex", "19780203", number="REF*17*02~"), purpose="RX")
    change(desk, PPO_2027, code="021")
    assert access(desk) == ("2026-01-01", "2026-11-20")
    assert str(stored(desk)["derive_on"]) == "2026-11-21"
    assert lines(desk) == [("HLT", "2026-01-01", "2026-11-20"), ("PPO", "2027-01-01", None)]


def test_a_post_replaces_all_exactly(desk: Desk) -> None:
    change(desk, PPO_2027)
    desk.post(external_id=KEY, phone="6175550199")
    assert len(lines(desk)) == 2, "a POST without dates says nothing of coverages"
    desk.post(external_id=KEY, expiry_date="2026-12-31")
    assert (access(desk), lines(desk)) == (("2026-01-01", "2026-12-31"), [])
    desk.post(external_id=KEY, effective_date="2027-06-01", expiry_date=None)
    assert access(desk) == ("2027-06-01", None)


def test_an_834_ends_what_a_post_began(desk: Desk) -> None:
    desk.post(external_id=KEY, effective_date="2025-06-01")
    assert lines(desk) == []
    change(desk, PPO_2027)
    assert (access(desk), lines(desk)) == (
        ("2025-06-01", None),
        [("", "2025-06-01", None), ("PPO", "2027-01-01", None)],
    )
    change(desk, HLT_ENDS, code="024")
    change(desk, "HD*024**PPO*Silver~DTP*349*D8*20270630~", code="024")
    assert access(desk) == ("2025-06-01", "2027-06-30")


def test_undos_backwards_take_back_what_a_worker_derived(desk: Desk) -> None:
    """The first file gives coverages to a member whose dates said all; each is derived before the
    next one comes.
    """
    change(desk, HLT_ENDS, code="024")
    states = []
    files = []
    for day, line in (("2027-02-01", "PPO"), ("2027-06-01", "HMO")):
        states.append(desk.members())
        begin = day.replace("-", "")
        coverage = f"HD*021**{line}*Silver~DTP*348*D8*{begin}~DTP*349*D8*{begin[:6]}28~"
        files.append(desk.load_834(member(coverage, "021")))
        assert (on(desk, day), access(desk)) == (1, (day, f"{day[:8]}28"))
    for file in reversed(files):
        after = desk.members()
        undo = desk.undo(file)
        assert (undo.counts["restored"], desk.members()) == (1, states.pop())
        redo = desk.undo(undo)
        assert (redo.counts["restored"], desk.members()) == (1, after)
        assert desk.undo(redo).counts["restored"] == 1


def test_an_undo_derives_the_members_whose_day_has_come(desk: Desk) -> None:
    """The coverages from before have reached another day meanwhile; the member must not wait for
    the worker.
    """
    change(desk, HLT_ENDS, code="024")
    change(desk, PPO_2027.replace("20270101", "20270201"), code="021")
    file = desk.load_834(member("HD*021**HMO*Silver~DTP*348*D8*20270301~", "021"))
    assert (on(desk, "2027-02-01"), access(desk)) == (1, ("2027-02-01", None))
    before = [each for each in lines(desk) if each[0] != "HMO"]
    undo = desk.undo(file)
    assert (access(desk), lines(desk)) == (("2027-02-01", None), before)
    redo = desk.undo(undo)
    assert "refused" not in redo.counts
    assert desk.undo(redo).counts["restored"] == 1
    assert (access(desk), lines(desk)) == (("2027-02-01", None), before)


def test_an_undo_gives_the_coverages_back(desk: Desk) -> None:
    change(desk, PPO_2027)
    second = desk.load_834(member(HLT_ENDS, "024"))
    desk.undo(second)
    assert lines(desk) == [("HLT", "2026-01-01", None), ("PPO", "2027-01-01", None)]


def relative(first: str, number: str, code: str = "021", **more: str) -> str:
    born = f"20{number}0203"
    return person(first, born, relation="19", number=f"REF*17*{number}~", code=code, **more)


def test_the_end_of_a_subscriber_says_that_dependents_stay(desk: Desk) -> None:
    desk.load_834(relative("Kim", "12"), relative("Lou", "14"))
    ended = member("", "024", "DTP*357*D8*20261130~")
    kim, lou = (
        relative(name, number, "024", coverage="")
        for name, number in (("Kim", "12"), ("Lou", "14"))
    )
    file = desk.load_834(ended, kim)
    assert desk.codes(file)[:2] == [("ended", ""), ("warned", "dependents_stay")]
    change(desk, code="025")
    desk.load_834(relative("Kim", "12"))
    assert ("warned", "dependents_stay") not in desk.codes(desk.load_834(ended, kim, lou))
    assert desk.ends() == {
        KEY: "2026-11-30",
        "FAMILY1-12": "2026-11-20",
        "FAMILY1-14": "2026-11-20",
    }


def test_a_death_and_the_end_of_an_employment_are_warned_of_and_end_nothing(desk: Desk) -> None:
    dead = member(HLT).replace("*28*A~", "*28*A******D8*20261101~")
    assert [code for _, code in desk.codes(desk.load_834(dead))] == ["", "death_reported"]
    left = member(HLT).replace("*28*A~", "*28*A***TE~")
    assert [code for _, code in desk.codes(desk.load_834(left))] == ["", "employment_ended"]
    assert access(desk) == OPEN_2026
    ended = member(HLT_ENDS, "024").replace("*28*A~", "*28*A***TE***D8*20261101~")
    assert desk.codes(desk.load_834(ended)) == [("ended", "")]


def test_coverages_that_contradict_themselves_refuse_the_row(desk: Desk) -> None:
    inverted = HLT.replace("20260101", "20270101") + "DTP*349*D8*20261231~"
    assert change(desk, inverted) == ["expiry_before_effective"]
    assert access(desk) == OPEN_2026


def load_rows(desk: Desk, *rows: dict[str, Any], **options: Any) -> Any:
    file = desk.load(csv_of(rows, rows[0]), **options)
    return [code for _, code in desk.codes(file) if code not in ("", "ended_by_absence")]


EMPLOYEE = "E00001"


def test_a_roster_of_next_month_keeps_what_is_in_force_until_then(desk: Desk) -> None:
    load_rows(desk, row(1))
    later = row(1, effective_date="2026-12-01")
    assert load_rows(desk, later, full=True) == ["stays_until_then"]
    assert access(desk, EMPLOYEE) == OPEN_2026
    assert load_rows(desk, later, full=True) == ["stays_until_then"], "each time"
    cast(SetClock, desk.clock).now = NOW + timedelta(days=11)
    assert load_rows(desk, later, full=True) == []
    assert access(desk, EMPLOYEE) == ("2026-12-01", None)


@pytest.mark.parametrize("is_full", [True, False])
def test_a_table_that_puts_off_a_begin_warns_of_it(desk: Desk, is_full: bool) -> None:
    """As a census of next year does for an employee who begins in December."""
    load_rows(desk, row(1, effective_date="2026-12-15"))
    later = row(1, effective_date="2027-01-01")
    assert load_rows(desk, later, full=is_full) == ["begin_postponed"]
    assert access(desk, EMPLOYEE) == ("2027-01-01", None)
    assert load_rows(desk, later, full=is_full) == []


def test_a_roster_of_next_month_ends_the_omitted_the_day_before_it(desk: Desk) -> None:
    first, second, third = (row(number) for number in (1, 2, 3))
    load_rows(desk, first, second, third, plan=1)
    later = [each | {"effective_date": "2026-12-01"} for each in (first, second)]
    desk.load(csv_of(later), plan=1, full=True)
    assert access(desk, "E00003") == ("2026-01-01", "2026-11-30")
    assert access(desk, EMPLOYEE) == OPEN_2026
    # Half of the rows are not most of them.
    desk.load(csv_of([later[0], second]), plan=1, full=True)
    desk.load(csv_of([first, second, third]), plan=1, full=True)
    assert access(desk, "E00003") == OPEN_2026, "it is listed again"
    desk.load(csv_of([later[0], second]), plan=1, full=True)
    assert access(desk, "E00003") == ("2026-01-01", "2026-11-20")


def test_an_834_of_next_month_ends_the_omitted_the_day_before_it(desk: Desk) -> None:
    two = [
        person(first, f"19{born}0203", number=f"REF*17*{number}~", coverage=PPO_2027)
        for first, born, number in (("Alex", 78, "02"), ("Bo", 80, "03"))
    ]
    desk.load_834(*two, purpose="RX")
    assert access(desk) == ("2026-01-01", "2026-12-31")
    assert access(desk, "FAMILY1-02") == ("2027-01-01", None)


def test_a_roster_of_another_plan_moves_its_members_on_its_day(desk: Desk) -> None:
    load_rows(desk, row(1))
    later = row(1, effective_date="2026-12-01")
    assert load_rows(desk, later, plan=1) == ["stays_until_then"]
    gold, other = desk.customer.plan_ids[:2]
    assert (stored(desk, EMPLOYEE)["plan_id"], access(desk, EMPLOYEE)) == (gold, OPEN_2026)
    assert on(desk, "2026-12-01") == 1
    assert (stored(desk, EMPLOYEE)["plan_id"], access(desk, EMPLOYEE)) == (other, OPEN_2026)


def announce_moves(desk: Desk) -> None:
    """Eight members have access under plan 0; two of them move to plan 1 in January."""
    desk.load(csv_of(map(row, range(1, 9))), full=True)
    later = [row(n, effective_date="2027-01-01") for n in (1, 2)]
    assert desk.load(csv_of(later), plan=1).codes == {"stays_until_then": 2}


@pytest.mark.parametrize(
    ("day", "begin"),
    [("2026-12-15", "2027-01-01"), ("2026-12-31", "2026-01-01"), ("2027-01-01", "2026-01-01")],
)
def test_the_list_of_the_old_plan_ends_no_announced_move(desk: Desk, day: str, begin: str) -> None:
    """Its roster of January, its list on the last day, and one before a worker has derived."""
    announce_moves(desk)
    cast(SetClock, desk.clock).now = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    rest = [row(n, effective_date=begin) for n in range(3, 9)]
    file = desk.approve_if_held(desk.load(csv_of(rest), full=True))
    assert "ended" not in file.counts
    on(desk, "2027-01-02")
    assert access(desk, EMPLOYEE) == OPEN_2026
    assert stored(desk, EMPLOYEE)["plan_id"] == desk.customer.plan_ids[1]


@pytest.mark.parametrize("full", [False, True])
def test_the_nightly_list_of_the_old_plan_takes_back_no_announced_move(
    desk: Desk, *, full: bool
) -> None:
    announce_moves(desk)
    for _ in range(2):
        file = desk.load(csv_of(map(row, range(1, 9))), full=full)
        assert (file.counts["unchanged"], "moved" in file.counts) == (8, False)
    on(desk, "2027-01-01")
    assert stored(desk, EMPLOYEE)["plan_id"] == desk.customer.plan_ids[1]
    assert access(desk, EMPLOYEE) == OPEN_2026


def test_a_later_begin_under_the_old_plan_leaves_no_gap_before_it(desk: Desk) -> None:
    desk.load(csv_of([row(1)]))
    desk.load(csv_of([row(1, effective_date="2027-06-01")]), plan=1)
    assert "lost" not in desk.load(csv_of([row(1, effective_date="2027-09-01")])).counts
    for day, plan in (("2027-05-31", 0), ("2027-06-01", 1), ("2027-09-01", 0)):
        on(desk, day)
        assert stored(desk, EMPLOYEE)["plan_id"] == desk.customer.plan_ids[plan]
        assert access(desk, EMPLOYEE) == OPEN_2026


def test_a_row_without_dates_moves_nobody_before_the_announced_day(desk: Desk) -> None:
    announce_moves(desk)
    file = desk.load(lines_of([{"external_id": EMPLOYEE, "zipcode": "10001"}]), plan=1)
    assert file.counts == {"updated": 1}
    assert stored(desk, EMPLOYEE)["plan_id"] == desk.customer.plan_ids[0]
    on(desk, "2027-01-01")
    assert stored(desk, EMPLOYEE)["plan_id"] == desk.customer.plan_ids[1]


def test_a_rehire_without_an_end_clears_the_stored_end(desk: Desk) -> None:
    load_rows(desk, row(1, expiry_date="2026-06-30"))
    assert load_rows(desk, row(1, effective_date="2026-11-01")) == []
    assert access(desk, EMPLOYEE) == ("2026-11-01", None)
    load_rows(desk, row(1, effective_date="2026-11-01", expiry_date="2026-12-31"))
    assert load_rows(desk, row(1, effective_date="2027-02-01")) == ["stays_until_then"]
    assert access(desk, EMPLOYEE) == ("2026-11-01", "2026-12-31")
    assert on(desk, "2027-01-01") == 1
    assert access(desk, EMPLOYEE) == ("2027-02-01", None)


def test_a_partial_table_says_the_end_of_all(desk: Desk) -> None:
    change(desk, HLT_ENDS, HLT.replace("20260101", "20270301"))
    load_rows(desk, {"external_id": KEY, "expiry_date": "2027-06-30"})
    assert (access(desk), lines(desk)) == (("2026-01-01", "2027-06-30"), [])
    load_rows(desk, {"external_id": KEY, "phone": "6175550123"})
    assert access(desk) == ("2026-01-01", "2027-06-30")


def test_a_dry_run_says_what_the_load_says(desk: Desk) -> None:
    rows = [PPO_2027, HLT_ENDS, TEETH_END, HLT_ENDS + PPO_2027.replace("0101", "0301")]
    for coverage in rows:
        for purpose in ("2", "RX"):
            text = member(coverage)
            dry = desk.load_834(text, purpose=purpose, dry_run=True)
            file = desk.load_834(text, purpose=purpose)
            assert (dry.counts, desk.codes(dry)) == (file.counts, desk.codes(file))
