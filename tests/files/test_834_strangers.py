"""A row of an 834 never changes or ends the member of another family with the same category, class or number (docs/834.md)."""

from typing import Any

import pytest

from tests.files.loading import Desk
from tests.files.test_834_people import HOME, child, codes, load, person

MARIE = "F100234567"
STRANGER = "F300777777"
CASE = "CASE-CAT-001"
END = "HD*024**HLT~DTP*349*D8*20261031~"
SOURCES = ["ZZ", "17", "23"]
CODES = ["024", "001", "021"]
NAMES = {
    "no name": "",
    "another last name and no birth": "NM1*IL*1*Doe*Marie~N4*Salem*MA*01970~",
    "another first name and no birth": "NM1*IL*1*Roe*Noor~N4*Salem*MA*01970~",
    "the birth of another": "NM1*IL*1*Roe*Marie~N4*Salem*MA*01970~DMG*D8*19880101*F~",
    "no first name": "NM1*IL*1*Roe~DMG*D8*19870623*F~",
}


def marie(source: str) -> str:
    reference = f"REF*{source}*{CASE}~"
    return person("Marie", "19870623", family=MARIE, number=reference).replace("Sample", "Roe")


def stranger(source: str, code: str, name: str, *, family: str = f"REF*0F*{STRANGER}~") -> str:
    return f"INS*Y*18*{code}*28*A~{family}REF*{source}*{CASE}~{NAMES[name]}{END}"


def mapped(source: str, *, is_mapped: bool) -> dict[str, Any] | None:
    reference = f"REF*{source}"
    return {"external_id": reference, "member_id": reference} if is_mapped else None


def loaded_marie(desk: Desk, source: str, mapping: dict[str, Any] | None) -> dict[str, Any]:
    load(desk, marie(source), mapping=mapping)
    [stored] = desk.members().values()
    return stored


@pytest.mark.parametrize("is_mapped", [False, True], ids=["default", "mapped"])
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_row_of_another_family_changes_and_ends_nobody(
    desk: Desk, source: str, code: str, is_mapped: bool
) -> None:
    mapping = mapped(source, is_mapped=is_mapped)
    before = loaded_marie(desk, source, mapping)
    for name in NAMES:
        file = load(desk, stranger(source, code, name), mapping=mapping)
        assert {outcome for outcome, _ in codes(desk, file)} == {"refused"}
        if is_mapped or source == "23":
            assert codes(desk, file) == [("refused", "identity_ambiguous")]
        assert [*desk.members().values()] == [before]


@pytest.mark.parametrize("is_mapped", [False, True], ids=["default", "mapped"])
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("source", SOURCES)
def test_neither_does_one_in_the_same_file(desk: Desk, source: str, code: str, is_mapped: bool) -> None:
    mapping = mapped(source, is_mapped=is_mapped)
    before = loaded_marie(desk, source, mapping)
    strangers = [stranger(source, code, name) for name in ("no name", "another last name and no birth")]
    for members in ([marie(source), *strangers], [*strangers, marie(source)]):
        load(desk, *members, mapping=mapping)
        assert [*desk.members().values()] == [before]


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_person_under_another_subscriber_is_found_by_name_and_birth(desk: Desk, source: str) -> None:
    mapping = mapped(source, is_mapped=True)
    loaded_marie(desk, source, mapping)
    end = stranger(source, "024", "no name").replace(END, f"NM1*IL*1*Doe*MARIE~DMG*D8*19870623*F~{END}")
    assert codes(desk, load(desk, end, mapping=mapping)) == [("ended", "")]


@pytest.mark.parametrize("name", ["another first name and no birth", "the birth of another"])
def test_a_row_without_a_family_must_name_the_person_of_its_number(desk: Desk, name: str) -> None:
    before = loaded_marie(desk, "23", None)
    other = NAMES[name].replace("*Roe*Marie", "*Roe*Noor")
    end = stranger("23", "024", "no name", family="").replace(END, other + END)
    assert {outcome for outcome, _ in codes(desk, load(desk, end))} == {"refused"}
    assert [*desk.members().values()] == [before]
    assert codes(desk, load(desk, stranger("23", "024", "no name", family=""))) == [("ended", "")]


def test_two_families_with_one_class_are_two_members_from_the_first_file_on(desk: Desk) -> None:
    load(desk, marie("23"))
    other = person("Noor", "19900506", family=STRANGER, number=f"REF*23*{CASE}~")
    assert codes(desk, load(desk, other)) == [("created", "")]
    assert sorted(each["first_name"] for each in desk.members().values()) == ["Marie", "Noor"]
    assert load(desk, marie("23"), other, purpose="RX").counts["unchanged"] == 2
    assert {each["expiry_date"] for each in desk.members().values()} == {None}


def test_a_full_file_does_not_end_the_second_member_of_a_class(desk: Desk) -> None:
    other = person("Noor", "19900506", family=STRANGER, number=f"REF*23*{CASE}~")
    load(desk, marie("23"))
    load(desk, other)
    load(desk, other, purpose="RX")
    assert {each["first_name"]: each["expiry_date"] for each in desk.members().values()}["Noor"] is None


FAMILY_CARD = "REF*ZZ*CARD77001~"


def test_a_plan_that_writes_the_familys_number_to_everybody_keeps_each_apart(desk: Desk) -> None:
    everyone = [
        person(number=f"REF*23*W900000001~{FAMILY_CARD}"),
        child(number=FAMILY_CARD),
    ]
    load(desk, *everyone)
    later = child("Toni", "20180506", number=FAMILY_CARD)
    assert codes(desk, load(desk, later)) == [("created", "")]
    end = child("Toni", "20180506", number=FAMILY_CARD, code="024", coverage=END)
    load(desk, end)
    assert {each["first_name"]: each["expiry_date"] for each in desk.members().values()} == {
        "Robin": None, "Kim": None, "Toni": "2026-10-31",
    }  # fmt: skip


def test_a_card_of_the_family_behind_the_subscribers_number_is_no_dependents_own(desk: Desk) -> None:
    card = {"name": "MI*CARD77001"}
    load(desk, person(number="REF*23*W900000001~", **card), child(**card))
    assert set(desk.members()) == {"W900000001", "FAMILY1-R19"}


@pytest.mark.parametrize("number", ["REF*23*CARD77001~", "REF*17*A~"], ids=["card", "class"])
def test_the_end_of_a_dependent_with_the_subscribers_number_does_not_end_the_subscriber(
    desk: Desk, number: str
) -> None:
    load(desk, person(number=number))
    for name in ("NM1*IL*1*Sample*Kim~", "NM1*IL*1*Sample*Robin~", ""):
        end = f"INS*N*19*024*28*A~REF*0F*FAMILY1~{number}{name}{END}"
        assert {outcome for outcome, _ in codes(desk, load(desk, end))} == {"refused"}
        load(desk, person(number=number), end)
        assert {each["expiry_date"] for each in desk.members().values()} == {None}


def test_the_end_of_a_sibling_with_the_same_number_ends_nobody_else_in_one_file(desk: Desk) -> None:
    number = "REF*23*CARD77001~"
    kim = child(number=number)
    end = child("Kai", number=number, code="024", coverage=END).replace("DMG*D8*20150203*F~", "")
    load(desk, person(), kim)
    file = load(desk, kim, end)
    assert codes(desk, file) == [("refused", "repeated_differently")]
    assert {each["expiry_date"] for each in desk.members().values()} == {None}
    assert codes(desk, load(desk, end)) == [("refused", "identity_ambiguous")]


@pytest.mark.parametrize("birth", ["DMG*D8*19770111*F~", ""])
def test_a_corrected_first_name_is_no_other_person(desk: Desk, birth: str) -> None:
    load(desk, person(number="REF*23*W900000001~"))
    correction = (
        f"INS*Y*18*001*25*A~REF*0F*FAMILY1~REF*23*W900000001~NM1*74*1*Sample*Robyn~{birth}"
        "NM1*70*1*Sample*Robin~"
    )
    assert codes(desk, load(desk, correction)) == [("updated", "")]
    assert codes(desk, load(desk, correction)) == [("unchanged", "")]
    assert desk.members()["W900000001"]["first_name"] == "Robyn"


def test_an_end_without_name_and_birth_ends_the_member_with_its_number_and_family(desk: Desk) -> None:
    load(desk, person(number="REF*23*W900000001~", home=HOME))
    end = f"INS*Y*18*024*28*A~REF*0F*FAMILY1~REF*23*W900000001~{END}"
    assert codes(desk, load(desk, end)) == [("ended", "")]
