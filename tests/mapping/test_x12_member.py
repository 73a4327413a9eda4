"""The 834 mapping, one rule a row: which segments become which fields, what each code asks for (docs/834.md)."""

import re
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.eligibility.model import NO_CONTEXT, Action
from frontdesk.formats.model import FileMode
from frontdesk.mapping.model import Row
from tests.files.exports import names_in
from tests.formats.reading import MEMBER, codes, file_834, interchange, read, rows_of, transaction

VALUES = names_in(
    "external_id: FAMILY1-01, member_id: FAMILY1-01, first_name: Robin, last_name: Sample, middle_name: Lee, dob: 1977-01-11, "
    "gender: female, email: robin@example.com, phone: 6175550100, zipcode: 02134, city: Boston, county: Suffolk, state: MA, "
    "effective_date: 2026-01-01, medical_plan_description: PPO 500, payor_name: Example Mutual, relationship_code: Self, "
    "relationship_code_hipaa: 18, subscriber_relationship: Primary",
    ", ",
)
FULL_ROW: dict[str, object] = {**dict(value.split(": ") for value in VALUES), "expiry_date": None}


def member(*changes: tuple[str, str]) -> str:
    """The complete member with parts of its text replaced; each part must be there."""
    text = MEMBER
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def one(text: str, *, purpose: str = "2", mapping: dict[str, Any] | None = None) -> Row:
    [row] = rows_of(file_834(text, purpose=purpose), mapping=mapping)
    return row


def test_a_complete_member() -> None:
    head, [row] = read(file_834())
    assert (head.mode, head.file_date) == (FileMode.CHANGE, "2026-11-20")
    assert replace(row, context=NO_CONTEXT) == Row(8, FULL_ROW)


HD = "HD*021**HLT*PPO 500~DTP*348*D8*20260101~"
INS = "INS*Y*18*021*28*A***FT~"
PER = "PER*IP**TE*6175550100*EM*robin@example.com~"
NM1 = "NM1*IL*1*Sample*Robin*Lee***34*900000001~"
DMG = "DMG*D8*19770111*F~"
OLD = "NM1*70*1*Wrong*Name~DMG*D8*19991231*M~N4*Nowhere*AK*99999~PER*IP**EM*old@example.com~"

# What is replaced, by what, and the fields that differ from the complete member then; ... stands for absent.
RULES: list[tuple[str, str, dict[str, Any]]] = [
    # INS
    ("INS*Y", "INS*N", {"subscriber_relationship": "Dependent"}),
    ("*18*021", "*01*021", {"relationship_code_hipaa": "01", "relationship_code": "Spouse"}),
    ("*18*021", "*G8*021", {"relationship_code_hipaa": "G8", "relationship_code": "Other Relationship"}),
    ("*18*021", "*77*021", {"relationship_code_hipaa": "77", "relationship_code": ...}),
    ("*18*021", "**021", {"relationship_code_hipaa": ..., "relationship_code": ...}),
    # Names
    # A correction clears a middle name that the right name does not have.
    (NM1, "NM1*74*1*Sample*Robyn~", {"first_name": "Robyn", "middle_name": None}),
    (NM1, "NM1*70*1*Wrong*Name~NM1*IL*1*Sample*Robyn~", {"first_name": "Robyn", "middle_name": None}),
    (NM1, "NM1*IL*1*Sample*Robyn~", {"first_name": "Robyn", "middle_name": ...}),
    (DMG, DMG + OLD, {}),
    (NM1, OLD + NM1, {}),
    (NM1, "NM1*IL*1*Sample*Robin*Lee**JR~", {"last_name": "Sample JR"}),
    (NM1, "NM1*IL*1*Sample*Robin*Lee**34*900000001~", {"last_name": "Sample"}),
    (NM1, "NM1*IL*1* Sample * Robin *Lee~", {}),
    # Contacts: a cell phone before the one at home before any other
    (PER, "", {"phone": ..., "email": ...}),
    (PER, "PER*IP**TE*1*HP*2*CP*3~", {"phone": "3", "email": ...}),
    (PER, "PER*IP**TE*1*HP*2~", {"phone": "2", "email": ...}),
    (PER, "PER*IP**WP*1*EX*2*EM*a@b~", {"phone": ..., "email": "a@b"}),
    (PER, "PER*IP**EM~", {"phone": ..., "email": ...}),
    # Address
    ("*CY*Suffolk", "", {"county": ...}),
    ("*CY*Suffolk", "*RJ*Suffolk", {"county": ...}),
    ("N4*Boston*MA*02134**CY*Suffolk~", "", dict.fromkeys(("zipcode", "city", "state", "county"), ...)),
    # Birth and sex
    ("*F~HD", "*M~HD", {"gender": "male"}),
    ("*F~HD", "*U~HD", {"gender": "unknown"}),
    ("*F~HD", "*X~HD", {"gender": "X"}),
    ("*19770111*", "*19770230*", {"dob": "1977-02-30"}),
    ("*19770111*", "*1977*", {"dob": "1977"}),
    # Coverage: HD04, else HD03
    ("HLT*PPO 500", "HLT", {"medical_plan_description": "HLT"}),
    (HD, f"HD*021**DEN*Teeth~DTP*348*D8*20200101~{HD}", {}),
    (HD, f"{HD}HD*021**DEN*Teeth~DTP*348*D8*20200101~", {}),
    # Dates: the coverage's go before the member's
    ("NM1*IL", "DTP*356*D8*20250601~NM1*IL", {}),
    ("DTP*348*D8*20260101~", "", {"effective_date": ...}),
    ("NM1*IL", "DTP*357*D8*20270630~NM1*IL", {"expiry_date": "2027-06-30"}),
    ("DTP*348*D8*20260101~", "DTP*348*D8*20260101~DTP*349*D8*20261231~", {"expiry_date": "2026-12-31"}),
    ("DTP*348", "DTP*303*D8*20270101~DTP*348", {}),
    # What belongs to a provider, another payor or a reporting category is not the member's
    (HD, f"{HD}LX*1~NM1*P3*1*Doctor*Who~N4*Elsewhere*TX*73301~REF*0F*X~DTP*349*D8*20200101~", {}),
    (HD, f"{HD}COB*P*X*5~REF*60*X~DTP*349*D8*20200101~NM1*IN*2*Other~N4*A*TX*1~", {}),
    (HD, f"{HD}LS*2700~LX*1~N1*75*Division~REF*17*99~DTP*007*D8*20200101~LE*2700~", {}),
    (HD, f"NM1*31*1~N3*Box 1~N4*Mailing*TX*73301~NM1*M8*2*School~{HD}", {}),
    (HD, f"DSB*1~DTP*360*D8*20200101~{HD}", {}),
    ("DMG*D8", "EC*01~ICM*7*1~AMT*P3*1~HLH*N~LUI*LE*en~DMG*D8", {}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "difference"), RULES)
def test_a_rule_of_the_mapping(old: str, new: str, difference: dict[str, Any]) -> None:
    expected = {name: value for name, value in (FULL_ROW | difference).items() if value is not ...}
    assert replace(one(member((old, new))), context=NO_CONTEXT) == Row(8, expected)


@pytest.mark.parametrize(
    ("purpose", "mode", "code", "action"),
    [
        *(("2", FileMode.CHANGE, code, Action.ENROL) for code in ("021", "001", "025", "026", "030")),
        ("2", FileMode.CHANGE, "024", Action.END),
        *(("RX", FileMode.FULL, code, Action.ENROL) for code in ("021", "001", "025", "030")),
        ("RX", FileMode.FULL, "024", Action.END),
        *(("4", FileMode.COMPARE, code, Action.COMPARE) for code in ("021", "001", "025", "024", "030")),
    ],
)
def test_bgn08_says_what_the_file_is_and_ins03_what_is_asked_for(
    purpose: str, mode: FileMode, code: str, action: Action
) -> None:
    head, [row] = read(file_834(member(("*021*28", f"*{code}*28")), purpose=purpose))
    assert (head.mode, row.action, row.faults) == (mode, action, ())


def test_the_letter_o_for_the_zero_of_0f_is_read_with_a_warning() -> None:
    good, misspelt = one(MEMBER), one(member(("REF*0F", "REF*OF")))
    assert misspelt == replace(good, warnings=("untidy_file",))
    assert one(member(("REF*0F", "REF*OF*OTHER~REF*0F"))).values == good.values


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("*021*28", "*002*28", ("INS03", "unknown_code")),
        ("*021*28", "**28", ("INS03", "unknown_code")),
        ("INS*Y", "INS*X", ("INS01", "unknown_code")),
        ("REF*0F*FAMILY1~", "REF*0F~", ("external_id", "no_identifier")),
    ],
)
def test_a_code_without_meaning_refuses_the_member_alone(old: str, new: str, fault: tuple[str, str]) -> None:
    dependent = () if "INS*Y" in old else (("INS*Y", "INS*N"),)
    bad, good = rows_of(file_834(member((old, new), *dependent), MEMBER.replace("REF*17*01", "REF*17*02")))
    assert (codes(bad), codes(good)) == ([fault], [])
    assert bad.place == 8


DEPENDENT = MEMBER.replace("INS*Y*18", "INS*N*19").replace("REF*17*01~", "")
BY_ROLE = {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}

KEYS: list[tuple[Any, str, str]] = [
    ("REF*23", MEMBER.replace("REF*17", "REF*23*C-23~REF*17"), "C-23"),
    ("REF*23", MEMBER, ""),
    ("REF*ZZ", MEMBER.replace("REF*17", "REF*ZZ*Z-1~REF*17"), "Z-1"),
    ("NM109", MEMBER.replace("***34*900000001", "***MI*W9000001"), "W9000001"),
    ("REF*0F + person_code", MEMBER, "FAMILY1-01"),
    # A longer code says something about a group.
    ("REF*0F+person_code", MEMBER.replace("REF*17*01~", "REF*17*DIVISION~"), ""),
    ("REF*0F+relationship", DEPENDENT, "FAMILY1-R19"),
    ("REF*0F+birth_sequence", DEPENDENT.replace("***FT~", "***FT*********2~"), "FAMILY1-B2"),
    ("REF*38+NM109", MEMBER.replace("***34*900000001", "***MI*W9000001"), "POLICY-W9000001"),
    (BY_ROLE, MEMBER, "FAMILY1"),
    (BY_ROLE, MEMBER.replace("REF*0F*FAMILY1~", ""), ""),
    (BY_ROLE, DEPENDENT.replace("DMG*D8*19770111*F~", ""), ""),
    ("ssn", MEMBER.replace("*34*900000001", "*34*999999999"), ""),  # stands for no number
    # A reference of the coverage is not the member's.
    ("REF*1L+REF*23", MEMBER.replace("DTP*348", "REF*23*GROUP~DTP*348"), ""),
]


@pytest.mark.parametrize(("way", "text", "key"), KEYS)
def test_the_identifier_is_made_as_the_mapping_says(way: Any, text: str, key: str) -> None:
    row = one(text, mapping={"834": {"identify": way}})
    assert row.values.get("external_id", "") == row.values.get("member_id", "") == key
    assert codes(row) == ([] if key else [("external_id", "no_identifier")])


def test_names_and_births_stand_in_an_identifier_as_a_short_digest() -> None:
    kim, also_kim, toni = (
        one(DEPENDENT.replace("Robin", name), mapping={"834": {"identify": BY_ROLE}}).values["external_id"]
        for name in ("Kim", "KIM", "Toni")
    )
    assert kim == also_kim != toni
    assert re.fullmatch("FAMILY1-[0-9a-f]{8}", str(kim))


SSN = "123456789"


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("ssn", MEMBER.replace("*34*900000001", f"*34*{SSN}")),
        ("ssn", MEMBER.replace("REF*17*01", "REF*SY*123-45-6789").replace("***34*900000001", "")),
        ("NM109", MEMBER.replace("*34*900000001", f"*34*{SSN}")),
        ("NM109", MEMBER.replace("*34*900000001", f"*MI*{SSN}")),
        ("REF*0F", MEMBER.replace("FAMILY1", "123-45-6789")),
        ("REF*23", MEMBER.replace("REF*17*01", f"REF*23*{SSN}")),
    ],
)
def test_a_social_security_number_stands_in_an_identifier_as_a_digest_unless_the_mapping_says_plain(
    way: str, text: str
) -> None:
    hidden = one(text, mapping={"834": {"identify": way}})
    assert re.fullmatch("ssn1-[0-9a-f]{20}", str(hidden.values["external_id"]))
    assert SSN not in repr(hidden).replace("-", "")
    plain = one(text, mapping={"ssn": "plain", "834": {"identify": way}})
    assert str(plain.values["external_id"]).replace("-", "") == SSN


def test_another_reference_can_carry_the_person_code_and_another_way_makes_the_member_id() -> None:
    said = {"person_code": "REF*ZZ", "member_id": "REF*23"}
    text = MEMBER.replace("REF*17*01", "REF*23*C-23~REF*ZZ*7")
    row = one(text, mapping={"834": said})
    assert (row.values["external_id"], row.values["member_id"]) == ("FAMILY1-7", "C-23")


@pytest.mark.parametrize(
    ("rule", "plan"),
    [("REF*1L", "COVERAGE"), ("REF*38", "POLICY"), ("HD03", "HLT"), ("HD04", "PPO 500"), ("REF*XX", None)],
)
def test_a_reference_or_the_coverage_names_the_plan(rule: str, plan: str | None) -> None:
    text = MEMBER.replace("REF*17", "REF*1L*OWN~REF*17").replace("DTP*348", "REF*1L*COVERAGE~DTP*348")
    assert one(text, mapping={"834": {"plan": rule}}).plan == plan
    assert one(text).plan is None


def test_the_mapping_translates_plans_and_one_it_does_not_know_is_refused() -> None:
    mapping = {"834": {"plan": "HD04"}, "plans": {"PPO 500": "gold"}}
    other = MEMBER.replace("PPO 500", "HMO").replace("*17*01", "*17*02")
    known, unknown = rows_of(file_834(MEMBER, other), mapping=mapping)
    assert (known.plan, codes(known)) == ("gold", [])
    assert (unknown.plan, codes(unknown)) == (None, [("plan", "unknown_plan")])


def test_chosen_insurance_lines_count_as_medical() -> None:
    text = MEMBER.replace(HD, HD + "HD*021**VIS*Eyes~DTP*348*D8*20200101~")
    row = one(text, mapping={"834": {"coverages": ["vis"]}})
    assert row.values["medical_plan_description"] == "Eyes"


def test_each_transaction_has_its_own_date_and_payor() -> None:
    end = MEMBER.replace("*021*28", "*024*28").replace("HD*021", "HD*024")
    other = end.replace("REF*17*01", "REF*17*02")
    content = interchange(transaction(end), transaction(other, control="0002", day="20261201"))
    assert [row.values["expiry_date"] for row in rows_of(content)] == ["2026-11-20", "2026-12-01"]


def test_codes_without_their_zeros_are_read() -> None:
    row = one(member(("INS*Y*18*021", "INS*N*1*21"), ("HD*021**", "HD*21**")))
    assert (row.action, row.values["relationship_code_hipaa"]) == (Action.ENROL, "01")
    ended = one(member((HD, f"{HD}HD*24**PPO~DTP*349*D8*20261231~")))
    assert ended.values["expiry_date"] is None


@pytest.mark.parametrize("end", ["D8*99991231", "D8*00000000", "D8*", "RD8*20260101-99991231"])
def test_a_day_that_stands_for_no_end_is_none(end: str) -> None:
    assert one(member((HD, f"{HD}DTP*349*{end}~"))).values["expiry_date"] is None


def test_a_range_without_an_end_is_open() -> None:
    row = one(member(("DTP*348*D8*20260101~", "DTP*348*RD8*20260101-99991231~")))
    assert (row.values["effective_date"], row.values["expiry_date"]) == ("2026-01-01", None)
