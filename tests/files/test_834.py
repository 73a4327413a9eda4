"""What 834s do to members, from the file to the stored record: who has access from when until when (docs/834.md)."""

from typing import Any

import pytest

from frontdesk.files.model import EligibilityFile
from tests.files.loading import Desk
from tests.files.readers.reading import file_834

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
        member("001", "HD*002**HLT*Gold~DTP*348*D8*20260101~"),
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


def test_a_plan_switch_keeps_the_access_that_holds_until_then(desk: Desk) -> None:
    load(desk, member("021", ADD))
    switch = "HD*024**HLT*Gold~DTP*349*D8*20261130~HD*021**PPO*Next~DTP*348*D8*20261201~"
    load(desk, member("001", switch))
    assert access(desk) == ("2026-01-01", None, "Next")
    new = member("001", switch, number="02", person=PERSON.replace("robin@", "r2@"))
    load(desk, new)
    assert access(desk, "FAMILY1-02") == ("2026-12-01", None, "Next")


def test_rows_parsed_in_a_process_of_their_own_say_the_same(desk: Desk) -> None:
    switch = "HD*024**HLT*Gold~DTP*349*D8*20261130~HD*021**PPO*Next~DTP*348*D8*20261201~"
    desk.options = desk.options.__class__(desk.options.uniqueness, subprocess_from_rows=1)
    file = load(
        desk, member("001", switch), member("021", number="02", person=PERSON.replace("robin@", "r2@"))
    )
    assert desk.outcomes(file) == [(8, "created", ""), (20, "refused", "no_medical_coverage")]
    assert access(desk) == ("2026-12-01", None, "Next")
