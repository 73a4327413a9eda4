"""What an 834 asks of a member besides enrolling: ending, comparing, another plan."""

import pytest
from sqlalchemy import update

from frontdesk.errors import Invalid
from frontdesk.files.tables import eligibility_files
from tests.files.loading import Desk
from tests.formats.reading import IDENTIFY, MEMBER, file_834

END = MEMBER.replace("*021*28", "*024*28")
KEY = "FAMILY1-01"


def test_an_834_is_loaded_like_any_other_file(desk: Desk) -> None:
    file = desk.load(file_834().encode())
    assert (file.state, file.format, file.mode, file.file_date) == ("done", "834", "change", "2026-11-20")
    [member] = desk.members().values()
    assert (member["external_id"], member["first_name"], member["zipcode"]) == (KEY, "Robin", "02134")


def test_an_ended_member_expires_on_the_files_date_and_only_once(desk: Desk) -> None:
    desk.load(file_834().encode())
    assert desk.load(file_834(END).encode()).counts == {"ended": 1}
    [member] = desk.members().values()
    assert str(member["expiry_date"]) == "2026-11-20"
    assert desk.load(file_834(END).encode()).counts == {"unchanged": 1}


def test_who_is_not_enrolled_under_the_plan_cannot_be_ended(desk: Desk) -> None:
    refused = desk.load(file_834(END).encode())
    assert [line["code"] for line in desk.report(refused)] == ["not_enrolled"]
    desk.load(file_834().encode(), plan=1)
    assert desk.load(file_834(END).encode()).counts == {"refused": 1}
    assert [member["expiry_date"] for member in desk.members().values()] == [None]


def test_a_compared_member_is_told_apart_field_by_field_and_nothing_is_written(desk: Desk) -> None:
    desk.load(file_834().encode())
    before = desk.members(), desk.count("member_history")
    other = MEMBER.replace("*Sample*", "*Sampel*").replace("02134", "02135")
    file = desk.load(file_834(other, purpose="4").encode())
    assert file.counts == {"unchanged": 1, "warned": 1}
    assert {(line["code"], line["field"]) for line in desk.report(file)} == {
        ("", ""),
        ("differs", "last_name"),
        ("differs", "zipcode"),
    }
    assert (desk.members(), desk.count("member_history")) == before
    assert desk.load(file_834(purpose="4").encode()).counts == {"unchanged": 1}


def test_a_file_that_only_compares_writes_nothing_even_for_new_members(desk: Desk) -> None:
    file = desk.load(file_834(purpose="4").encode())
    assert (file.mode, file.counts, desk.count("members")) == ("compare", {"refused": 1}, 0)


def test_a_full_834_says_so_itself(desk: Desk) -> None:
    desk.load(file_834().encode())
    other = MEMBER.replace("FAMILY1", "FAMILY2").replace("900000001", "900000002").replace("robin@", "r2@")
    file = desk.load(file_834(other, purpose="RX").encode())
    assert (file.mode, file.counts) == ("full", {"created": 1, "ended": 1, "warned": 1})


def test_a_mapping_sends_rows_to_the_plan_that_they_name(desk: Desk) -> None:
    mapping = {"834": IDENTIFY | {"plan": "HD04"}, "plans": {"PPO 500": "plan-1"}}
    file = desk.load(file_834().encode(), mapping=mapping)
    assert file.counts == {"created": 1}
    [member] = desk.members().values()
    assert member["plan_id"] == desk.customer.plan_ids[1]
    nowhere = {"834": IDENTIFY | {"plan": "HD04"}, "plans": {"PPO 500": "plan-99"}}
    refused = desk.load(file_834(MEMBER).encode(), mapping=nowhere)
    assert [line["code"] for line in desk.report(refused)] == ["not_found"]


def test_a_mapping_that_means_nothing_is_refused_before_the_file(desk: Desk) -> None:
    with pytest.raises(Invalid):
        desk.hand_in(file_834().encode(), mapping={"834": {"plan": "X"}})
    assert desk.count("eligibility_files") == 0


def test_a_stored_mapping_that_means_nothing_fails_the_file(desk: Desk) -> None:
    """One that an earlier version took."""
    file = desk.hand_in(file_834().encode(), mapping={})
    with desk.db.write() as tx:
        tx.execute(update(eligibility_files).values(mapping={"834": {"plan": "X"}}))
    file = desk.work(file)
    assert file.state == "failed"
    assert file.problem is not None
    assert file.problem["code"] == "bad_mapping"


def test_a_wrong_count_at_the_end_applies_nothing(desk: Desk) -> None:
    content = file_834().replace("GE*1*3", "GE*2*3").encode()
    file = desk.load(content)
    assert (file.state, desk.count("members")) == ("failed", 0)
    assert file.problem is not None
    assert file.problem["code"] == "wrong_count"
