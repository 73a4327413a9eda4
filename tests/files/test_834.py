"""What 834s do to members, from the file to the stored record: who has access from when until when (docs/834.md)."""

from typing import Any

import pytest

from frontdesk.files.model import EligibilityFile
from tests.files.loading import Desk
from tests.formats.reading import file_834

PERSON = (
    "PER*IP**TE*6175550100*EM*robin@example.com~N3*1 Example Street~N4*Boston*MA*02134~DMG*D8*19770111*F~"
)
ADD = "HD*021**HLT*Gold~DTP*348*D8*20260101~"


def member(
    code: str, coverages: str = "", *, dates: str = "", person: str = PERSON, number: str = "01"
) -> str:
    who = f"NM1*IL*1*Sample*Robin*Lee~{person}" if person else "NM1*IL*1*Sample*Robin*Lee~"
    return f"INS*Y*18*{code}*28*A***FT~REF*0F*FAMILY1~REF*17*{number}~{dates}{who}{coverages}"


def load(desk: Desk, *members: str, purpose: str = "2", **options: Any) -> EligibilityFile:
    return desk.load(file_834(*members, purpose=purpose).encode(), **options)


def access(desk: Desk, key: str = "FAMILY1-01") -> tuple[str, str | None, str]:
    stored = desk.members()[key]
    return stored["effective_date"], stored["expiry_date"], stored["medical_plan_description"]


@pytest.mark.parametrize(
    "change",
    [
        member("001", "HD*024**DEN*Teeth~DTP*349*D8*20260630~"),
        member("001", "HD*001**VIS*Eyes~DTP*348*D8*20270101~DTP*349*D8*20271231~"),
        member("021", "HD*021**DEN*Teeth~DTP*348*D8*20270101~"),
        member("024", "HD*024**DEN*Teeth~DTP*349*D8*20260630~"),
        member("001", "HD*002**DEN*Teeth~DTP*348*D8*20260101~"),
    ],
    ids=["dental-ends", "vision-changes", "dental-begins", "dental-ends-the-member", "never-effective"],
)
def test_what_does_not_count_leaves_a_known_members_access_and_applies_the_rest(
    desk: Desk, change: str
) -> None:
    load(desk, member("021", ADD))
    before = access(desk)
    file = load(desk, change.replace("Boston", "Salem"))
    assert desk.outcomes(file) == [(8, "updated", ""), (8, "warned", "no_medical_coverage")]
    assert access(desk) == before == ("2026-01-01", None, "Gold")
    assert desk.members()["FAMILY1-01"]["city"] == "Salem"


@pytest.mark.parametrize("coverages", ["", "HD*021**DEN*Teeth~DTP*348*D8*20260101~"])
def test_a_new_member_without_a_coverage_that_counts_is_refused(desk: Desk, coverages: str) -> None:
    file = load(
        desk,
        member("021", coverages),
        member("021", ADD, number="02", person=PERSON.replace("robin@", "r2@")),
    )
    [refused] = [line for line in desk.report(file) if line["outcome"] == "refused"]
    assert (refused["row"], refused["field"], refused["code"]) == (8, "effective_date", "no_medical_coverage")
    assert desk.members().keys() == {"FAMILY1-02"}


def test_an_end_and_a_later_beginning_in_two_files_leave_access_open(desk: Desk) -> None:
    load(desk, member("021", ADD))
    load(desk, member("024", "HD*024**HLT*Gold~DTP*349*D8*20261031~"))
    assert access(desk)[1] == "2026-10-31"
    load(desk, member("021", "HD*021**PPO*Next~DTP*348*D8*20261101~"))
    assert access(desk) == ("2026-11-01", None, "Next")


DELETED = "HD*002**HLT*Gold~DTP*348*D8*20260101~"


@pytest.mark.parametrize(
    ("deleted", "told"),
    [
        (member("001", DELETED), ("updated", "")),
        (member("024", DELETED), ("ended", "")),
        (member("024", DELETED, dates="DTP*357*D8*20261031~"), ("ended", "")),
        (member("001", f"HD*021**HLT*Gold~DTP*348*D8*20260101~{DELETED}"), ("updated", "")),
        (member("001", f"{DELETED}HD*021**DEN*Teeth~DTP*348*D8*20260101~"), ("updated", "")),
        (member("001", "HD*002**HLT*Gold~"), ("warned", "ends_on_first_day")),
        (member("001", DELETED.replace("20260101", "20251201")), ("warned", "ends_on_first_day")),
    ],
    ids=["coverage", "member", "last-day", "added-before", "dental-stays", "no-begin", "begin-before"],
)
def test_a_deletion_of_the_only_coverage_that_counts_ends_access_on_its_first_day(
    desk: Desk, deleted: str, told: tuple[str, str]
) -> None:
    load(desk, member("021", ADD))
    file = load(desk, deleted)
    assert desk.outcomes(file)[-1] == (8, *told)
    assert access(desk) == ("2026-01-01", "2026-01-01", "Gold")


@pytest.mark.parametrize(
    ("coverages", "found"),
    [
        (f"{DELETED}HD*021**PPO*Next~DTP*348*D8*20260101~", ("2026-01-01", None, "Next")),
        (f"HD*021**PPO*Next~DTP*348*D8*20260101~{DELETED}", ("2026-01-01", None, "Next")),
        (f"{DELETED}HD*021**HLT*Gold~DTP*348*D8*20260201~", ("2026-02-01", None, "Gold")),
        (
            f"{DELETED}HD*024**PPO*Next~DTP*348*D8*20260101~DTP*349*D8*20261031~",
            ("2026-01-01", "2026-10-31", "Next"),
        ),
    ],
    ids=["another", "another-before", "the-same-later", "another-that-ends"],
)
def test_a_deletion_beside_another_coverage_that_counts_leaves_the_access_to_that(
    desk: Desk, coverages: str, found: tuple[str, str | None, str]
) -> None:
    load(desk, member("021", ADD))
    load(desk, member("001", coverages))
    assert access(desk) == found


def test_a_new_member_of_a_deleted_coverage_alone_is_refused(desk: Desk) -> None:
    assert desk.outcomes(load(desk, member("021", DELETED))) == [(8, "refused", "no_medical_coverage")]


def test_a_plan_switch_keeps_the_access_that_holds_until_then(desk: Desk) -> None:
    load(desk, member("021", ADD))
    switch = "HD*024**HLT*Gold~DTP*349*D8*20261130~HD*021**PPO*Next~DTP*348*D8*20261201~"
    load(desk, member("001", switch))
    assert access(desk) == ("2026-01-01", None, "Next")
    new = member("001", switch, number="02", person=PERSON.replace("robin@", "r2@"))
    load(desk, new)
    assert access(desk, "FAMILY1-02") == ("2026-12-01", None, "Next")


HOME = "N3*1 Example Street~N4*Boston*MA*02134~"
SUBSCRIBER = (
    f"INS*Y*18*021*28*A***FT~REF*0F*FAMILY1~REF*17*01~NM1*IL*1*Sample*Robin~{HOME}DMG*D8*19770111*F~{ADD}"
)


def child(name: str = "Kim", number: str = "02", code: str = "021") -> str:
    reference = f"REF*17*{number}~" if number else ""
    return f"INS*N*19*{code}*28*A~REF*0F*FAMILY1~{reference}NM1*IL*1*Sample*{name}~DMG*D8*20150203*F~{ADD}"


@pytest.mark.parametrize(
    "files",
    [[[SUBSCRIBER, child()]], [[child(), SUBSCRIBER]], [[SUBSCRIBER], [child()]]],
    ids=["after", "before", "stored"],
)
def test_a_dependent_without_an_address_takes_that_of_its_subscriber(
    desk: Desk, files: list[list[str]]
) -> None:
    report: list[Any] = []
    for members in files:
        report = desk.report(load(desk, *members))
    [warned] = [line for line in report if line["outcome"] == "warned"]
    assert (warned["code"], warned["field"]) == ("address_of_subscriber", "zipcode")
    stored = desk.members()["FAMILY1-02"]
    assert (stored["zipcode"], stored["city"], stored["state"]) == ("02134", "Boston", "MA")


def test_a_dependent_keeps_its_own_address_and_one_without_a_family_is_refused(desk: Desk) -> None:
    own = child().replace("DMG*", "N4*Salem*MA*01970~DMG*")
    load(desk, SUBSCRIBER, own)
    file = load(desk, child(code="001"), child().replace("FAMILY1", "FAMILY2"))
    assert desk.outcomes(file) == [(8, "unchanged", ""), (15, "refused", "required")]
    assert desk.members()["FAMILY1-02"]["zipcode"] == "01970"


HMO_ENDS = SUBSCRIBER.replace(ADD, "HD*024**HLT*Gold~DTP*349*D8*20261031~").replace("*021*28", "*024*28")
PPO_BEGINS = SUBSCRIBER.replace(ADD, "HD*021**PPO*Next~DTP*348*D8*20261101~")
DENTAL = SUBSCRIBER.replace(ADD, "HD*021**DEN*Teeth~DTP*348*D8*20200101~")


@pytest.mark.parametrize(
    ("loops", "found"),
    [
        ([HMO_ENDS, PPO_BEGINS], ("2026-11-01", None, "Next")),
        ([PPO_BEGINS, HMO_ENDS], ("2026-11-01", None, "Next")),
        ([DENTAL, SUBSCRIBER], ("2026-01-01", None, "Gold")),
        ([SUBSCRIBER, DENTAL], ("2026-01-01", None, "Gold")),
        ([SUBSCRIBER, HMO_ENDS], ("2026-01-01", "2026-10-31", "Gold")),
        ([SUBSCRIBER, HMO_ENDS.replace("HD*024**HLT*Gold~DTP*349*D8*20261031~", "")],
         ("2026-01-01", "2026-11-20", "Gold")),
    ],
)  # fmt: skip
def test_several_loops_of_a_member_are_one_outcome(
    desk: Desk, loops: list[str], found: tuple[str, str | None, str]
) -> None:
    load(desk, SUBSCRIBER)
    file = load(desk, *loops)
    assert [line["row"] for line in desk.report(file)] == [8]
    assert access(desk) == found


def test_two_values_for_the_same_day_contradict_each_other_and_those_of_a_later_day_do_not(
    desk: Desk,
) -> None:
    load(desk, SUBSCRIBER)
    moved = DENTAL.replace("Boston", "Salem")
    assert desk.outcomes(load(desk, SUBSCRIBER, moved)) == [(8, "refused", "repeated_differently")]
    later = moved.replace("REF*0F", "DTP*303*D8*20261121~REF*0F")
    assert desk.outcomes(load(desk, SUBSCRIBER, later)) == [(8, "updated", "")]
    assert desk.members()["FAMILY1-01"]["city"] == "Salem"
