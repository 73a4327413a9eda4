"""The 834 mapping, one rule a row: which segments become which fields, what each code asks for, the
access by coverages (docs/834.md); and pyx12's opinion on each field.
"""

import io
import re
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from frontdesk.eligibility.coverages import Coverage, apply_changes, derive
from frontdesk.eligibility.days import OPEN as OPEN_END
from frontdesk.eligibility.model import NO_CONTEXT, Action
from frontdesk.formats.model import FileMode, Format
from frontdesk.mapping.model import Row
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members
from tests.files.exports import names_in
from tests.formats.reading import (
    MEMBER,
    codes,
    file_834,
    interchange,
    read,
    rows_of,
    transaction,
    warned,
)

VALUES = names_in(
    "external_id: FAMILY1-01, member_id: FAMILY1-01, first_name: Robin, last_name: Sample, "
    "middle_name: Lee, dob: 1977-01-11, gender: female, email: robin@example.com, "
    "phone: 6175550100, zipcode: 02134, city: Boston, county: Suffolk, state: MA, "
    "medical_plan_description: PPO 500, payor_name: Example Mutual, "
    "relationship_code: Self, relationship_code_hipaa: 18, subscriber_relationship: Primary",
    ", ",
)
FULL_ROW: dict[str, object] = {**dict(value.split(": ") for value in VALUES)}
TODAY = "2026-11-20"


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


def access_of(row: Row, *stored: Coverage) -> tuple[str, str | None]:
    """The days of access of a member with these coverages after the row; of a new one without."""
    changes = row.context.coverages
    applied = apply_changes(stored, changes, today=TODAY, plan_id=1)
    record = derive(applied.coverages, TODAY)
    return record.effective_date, record.expiry_date


def test_a_complete_member() -> None:
    head, [row] = read(file_834())
    assert head.file_date == "2026-11-20"
    assert replace(row, context=NO_CONTEXT) == Row(8, FULL_ROW)


HD = "HD*021**HLT*PPO 500~DTP*348*D8*20260101~"
PER = "PER*IP**TE*6175550100*EM*robin@example.com~"
NM1 = "NM1*IL*1*Sample*Robin*Lee***34*900000001~"
DMG = "DMG*D8*19770111*F~"
OLD = "NM1*70*1*Wrong*Name~DMG*D8*19991231*M~N4*Nowhere*AK*99999~PER*IP**EM*old@example.com~"

# What is replaced, by what, and the fields that differ from the complete member then; ... stands
# for absent.
RULES: list[tuple[str, str, dict[str, Any]]] = [
    # INS
    ("INS*Y", "INS*N", {"subscriber_relationship": "Dependent"}),
    ("*18*021", "*01*021", {"relationship_code_hipaa": "01", "relationship_code": "Spouse"}),
    ("*18*021", "*77*021", {"relationship_code_hipaa": "77", "relationship_code": ...}),
    ("*18*021", "**021", {"relationship_code_hipaa": ..., "relationship_code": ...}),
    # Names
    # A correction clears a middle name that the right name does not have.
    (NM1, "NM1*74*1*Sample*Robyn~", {"first_name": "Robyn", "middle_name": None}),
    (
        NM1,
        "NM1*70*1*Wrong*Name~NM1*IL*1*Sample*Robyn~",
        {"first_name": "Robyn", "middle_name": None},
    ),
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
    ("*CY*Suffolk", "*RJ*Suffolk", {"county": ...}),
    (
        "N4*Boston*MA*02134**CY*Suffolk~",
        "",
        dict.fromkeys(("zipcode", "city", "state", "county"), ...),
    ),
    # Birth and sex
    ("*F~HD", "*U~HD", {"gender": "unknown"}),
    ("*19770111*", "*19770230*", {"dob": "1977-02-30"}),
    ("*19770111*", "*1977*", {"dob": "1977"}),
    # Coverage: HD04, else HD03
    ("HLT*PPO 500", "HLT", {"medical_plan_description": "HLT"}),
    # The day of a change is no date of the access
    ("DTP*348", "DTP*303*D8*20270101~DTP*348", {}),
    # A day that stands for no end is none
    *(
        (HD, f"{HD}DTP*349*{day}~", {})
        for day in ("D8*99991231", "D8*00000000", "D8*", "RD8*20260101-99991231")
    ),
    ("DTP*348*D8*20260101~", "DTP*348*RD8*20260101-99991231~", {}),
    # Codes without their zeros
    ("*18*021", "*1*21", {"relationship_code_hipaa": "01", "relationship_code": "Spouse"}),
    # What belongs to a provider, another payor or a reporting category is not the member's
    (HD, f"{HD}LX*1~NM1*P3*1*Doctor*Who~N4*Elsewhere*TX*73301~REF*0F*X~DTP*349*D8*20200101~", {}),
    (HD, f"{HD}COB*P*X*5~REF*60*X~DTP*349*D8*20200101~NM1*IN*2*Other~N4*A*TX*1~", {}),
    (HD, f"{HD}LS*2700~LX*1~N1*75*Division~REF*17*99~DTP*007*D8*20200101~LE*2700~", {}),
    (HD, f"NM1*31*1~N3*Box 1~N4*Mailing*TX*73301~NM1*M8*2*School~{HD}", {}),
    (
        HD,
        (
            "NM1*36*2*Employer~PER*EP**TE*9*EM*boss@example.com~NM1*S1*1*Parent~PER*PQ**HP*9~"
            f"NM1*QD*1*Agent~{HD}"
        ),
        {},
    ),
    (HD, f"DSB*1~DTP*360*D8*20200101~{HD}", {}),
    ("DMG*D8", "EC*01~ICM*7*1~AMT*P3*1~HLH*N~LUI*LE*en~DMG*D8", {}),
]


@pytest.mark.parametrize(("old", "new", "difference"), RULES)
def test_a_rule_of_the_mapping(old: str, new: str, difference: dict[str, Any]) -> None:
    expected = {name: value for name, value in (FULL_ROW | difference).items() if value is not ...}
    assert replace(one(member((old, new))), context=NO_CONTEXT) == Row(8, expected)


@pytest.mark.parametrize(
    ("purpose", "mode", "code", "action"),
    [
        *(
            ("2", FileMode.CHANGE, code, Action.ENROL)
            for code in ("021", "001", "025", "026", "030")
        ),
        ("2", FileMode.CHANGE, "024", Action.END),
        *(("RX", FileMode.FULL, code, Action.ENROL) for code in ("021", "001", "025", "030")),
        ("RX", FileMode.FULL, "024", Action.END),
        *(
            ("4", FileMode.COMPARE, code, Action.COMPARE)
            for code in ("021", "001", "025", "024", "030")
        ),
    ],
)
def test_bgn08_says_what_the_file_is_and_ins03_what_is_asked_for(
    purpose: str, mode: FileMode, code: str, action: Action
) -> None:
    head, [row] = read(file_834(member(("*021*28", f"*{code}*28")), purpose=purpose))
    assert (head.mode, row.action, row.faults) == (mode, action, ())


def test_the_letter_o_for_the_zero_of_0f_is_read_with_a_warning() -> None:
    good = one(MEMBER)
    misspelt = one(member(("REF*0F", "REF*OF")))
    [warning] = misspelt.warnings
    assert (warning.code, warning.detail) == ("untidy_file", "has REF*OF for REF*0F")
    assert misspelt == replace(good, warnings=misspelt.warnings)
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
def test_a_code_without_meaning_refuses_the_member_alone(
    old: str, new: str, fault: tuple[str, str]
) -> None:
    dependent = () if "INS*Y" in old else (("INS*Y", "INS*N"),)
    bad, good = rows_of(
        file_834(member((old, new), *dependent), MEMBER.replace("REF*17*01", "REF*17*02"))
    )
    assert (codes(bad), codes(good)) == ([fault], [])
    assert bad.place == 8


DEPENDENT = MEMBER.replace("INS*Y*18", "INS*N*19").replace("REF*17*01~", "")
BY_ROLE = {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}

KEYS: list[tuple[Any, str, str]] = [
    ("REF*23", MEMBER.replace("REF*17", "REF*23*C-23~REF*17"), "C-23"),
    ("REF*23", MEMBER, ""),
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
        one(DEPENDENT.replace("Robin", name), mapping={"834": {"identify": BY_ROLE}}).values[
            "external_id"
        ]
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
def test_an_identifier_has_a_digest_of_the_social_security_number(way: str, text: str) -> None:
    hidden = one(text, mapping={"834": {"identify": way}})
    assert re.fullmatch("ssn1-[0-9a-f]{20}", str(hidden.values["external_id"]))
    assert SSN not in repr(hidden).replace("-", "")
    plain = one(text, mapping={"ssn": "plain", "834": {"identify": way}})
    assert str(plain.values["external_id"]).replace("-", "") == SSN


def test_a_mapping_can_name_other_references_for_code_and_member_id() -> None:
    said = {"person_code": "REF*ZZ", "member_id": "REF*23"}
    text = MEMBER.replace("REF*17*01", "REF*23*C-23~REF*ZZ*7")
    row = one(text, mapping={"834": said})
    assert (row.values["external_id"], row.values["member_id"]) == ("FAMILY1-7", "C-23")


@pytest.mark.parametrize(
    ("rule", "plan"),
    [
        ("REF*1L", "COVERAGE"),
        ("REF*38", "POLICY"),
        ("HD03", "HLT"),
        ("HD04", "PPO 500"),
        ("REF*XX", None),
    ],
)
def test_a_reference_or_the_coverage_names_the_plan(rule: str, plan: str | None) -> None:
    text = MEMBER.replace("REF*17", "REF*1L*OWN~REF*17").replace(
        "DTP*348", "REF*1L*COVERAGE~DTP*348"
    )
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
    ends = [access_of(row, STORED)[1] for row in rows_of(content)]
    assert ends == ["2026-11-20", "2026-12-01"]


BEGIN = "effective_date"
END = "expiry_date"
OPEN = "HD*021**HLT*Gold~DTP*348*D8*20260101~"
DENTAL = "HD*021**DEN*Teeth~DTP*348*D8*20200101~"


def row_of(code: str, dates: str, coverages: str, mapping: dict[str, Any] | None = None) -> Row:
    text = f"INS*Y*18*{code}*28*A***FT~REF*0F*FAMILY1~REF*17*01~{dates}NM1*IL*1*Sample*Robin~{coverages}"
    [row] = rows_of(file_834(text), mapping=mapping)
    assert row.faults == ()
    return row


TWO_ENDED = (
    "HD*024**HMO*A~DTP*348*D8*20240101~DTP*349*D8*20251231~"
    "HD*024**PPO*B~DTP*348*D8*20250101~DTP*349*D8*20260131~"
)

STORED = Coverage("", "", 1, "2025-03-01", OPEN_END)

# INS03, dates of the member, coverages; begin, end (... for a stored one that stays), plan.
ENROLLED: list[tuple[str, str, str, Any, Any, Any]] = [
    ("021", "", OPEN, "2026-01-01", None, "Gold"),
    (
        "001",
        "",
        "HD*001**HMO~DTP*348*D8*20260101~DTP*349*D8*20261231~",
        "2026-01-01",
        "2026-12-31",
        "HMO",
    ),
    ("001", "", "HD*001**HLT*Gold~", ..., None, "Gold"),
    ("021", "DTP*356*D8*20250601~", "HD*021**HLT*Gold~", "2025-06-01", None, "Gold"),
    ("021", "DTP*356*D8*20250601~", OPEN, "2026-01-01", None, "Gold"),
    # A range of days says begin and end.
    (
        "021",
        "",
        "HD*021**HLT*Gold~DTP*348*RD8*20260101-20261231~",
        "2026-01-01",
        "2026-12-31",
        "Gold",
    ),
    (
        "021",
        "DTP*356*RD8*20250601-20270630~",
        "HD*021**HLT*Gold~",
        "2025-06-01",
        "2027-06-30",
        "Gold",
    ),
    # A day with a time, codes in small letters, and dates before the HD that they are about.
    ("021", "", "HD*021**HLT*Gold~DTP*348*DT*202601010830~", "2026-01-01", None, "Gold"),
    ("021", "", "HD*021**hlt*Gold~DTP*348*D8*20260101~", "2026-01-01", None, "Gold"),
    ("021", "DTP*348*D8*20260101~", "HD*021**HLT*Gold~", "2026-01-01", None, "Gold"),
    ("021", "DTP*348*D8*20250101~", OPEN, "2026-01-01", None, "Gold"),
    ("001", "DTP*349*D8*20261031~", "HD*024**HLT*Gold~", ..., "2026-10-31", "Gold"),
    ("001", "DTP*349*D8*20260731~", OPEN, "2026-01-01", None, "Gold"),
    # The end of a coverage: its own date, else the member's, else the file's.
    ("001", "", "HD*024**HLT*Gold~DTP*349*D8*20261031~", ..., "2026-10-31", "Gold"),
    ("001", "DTP*357*D8*20261015~", "HD*024**HLT*Gold~", ..., "2026-10-15", "Gold"),
    ("001", "", "HD*024**HLT*Gold~", ..., "2026-11-20", "Gold"),
    ("001", "", "HD*024**HLT*Gold~DTP*303*D8*20261031~", ..., "2026-10-31", "Gold"),
    ("001", "DTP*303*D8*20261031~", "HD*024**HLT*Gold~", ..., "2026-11-20", "Gold"),
    # No coverage outlasts the member.
    ("001", "DTP*357*D8*20261015~", OPEN, "2026-01-01", "2026-10-15", "Gold"),
    (
        "001",
        "DTP*357*D8*20261015~",
        OPEN + "DTP*349*D8*20261231~",
        "2026-01-01",
        "2026-10-15",
        "Gold",
    ),
    # What does not count changes nothing, wherever it stands.
    ("001", "", OPEN + "HD*024**DEN*Teeth~DTP*349*D8*20261031~", "2026-01-01", None, "Gold"),
    ("021", "", DENTAL + OPEN + DENTAL, "2026-01-01", None, "Gold"),
    # A coverage that was never effective is none.
    ("001", "", "HD*002**HLT*Old~DTP*348*D8*20200101~" + OPEN, "2026-01-01", None, "Gold"),
    # So is one that only the dependents have.
    ("021", "", OPEN + "HD*032**PPO*Other~DTP*348*D8*20200101~", "2026-01-01", None, "Gold"),
    # Several that overlap or touch are one access.
    ("001", "", OPEN + "HD*021**PPO*Next~DTP*348*D8*20270101~", "2026-01-01", None, "Next"),
    (
        "001",
        "",
        "HD*024**HMO*Old~DTP*348*D8*20240101~DTP*349*D8*20251231~" + OPEN,
        "2024-01-01",
        None,
        "Gold",
    ),
    (
        "001",
        "",
        "HD*024**HMO*Old~DTP*348*D8*20240101~DTP*349*D8*20261231~" + OPEN,
        "2024-01-01",
        None,
        "Gold",
    ),
    (
        "001",
        "",
        OPEN + "DTP*349*D8*20261231~HD*021**PPO*Next~DTP*348*D8*20270101~DTP*349*D8*20271231~",
        "2026-01-01",
        "2027-12-31",
        "Next",
    ),
    ("001", "", TWO_ENDED, "2024-01-01", "2026-01-31", "B"),
    # The old plan is in force still and does not say since when: a stored begin stays.
    (
        "001",
        "",
        "HD*024**HMO*Old~DTP*349*D8*20261130~HD*021**PPO*Next~DTP*348*D8*20261201~",
        ...,
        None,
        "Next",
    ),
    (
        "001",
        "",
        "HD*024**HMO*Old~DTP*349*D8*20261031~HD*021**PPO*Next~DTP*348*D8*20261101~",
        "2026-11-01",
        None,
        "Next",
    ),
    ("21", "", OPEN + "HD*24**PPO~DTP*349*D8*20261231~", ..., None, "Gold"),
    # Reinstated
    ("025", "", "HD*025**HLT*Gold~DTP*348*D8*20260101~", "2026-01-01", None, "Gold"),
]


@pytest.mark.parametrize(("code", "dates", "coverages", "begin", "end", "plan"), ENROLLED)
def test_the_coverages_that_count_give_the_access(
    code: str, dates: str, coverages: str, begin: Any, end: Any, plan: str
) -> None:
    row = row_of(code, dates, coverages)
    days = access_of(row, STORED) if begin is ... else access_of(row)
    description = {**(row.values_of_new or {}), **row.values}.get("medical_plan_description")
    expected = (STORED.begin if begin is ... else begin, end)
    assert (row.action, days, description) == (Action.ENROL, expected, plan)
    assert (warned(row), row.context.causes) == ((), ())


@pytest.mark.parametrize(
    ("dates", "coverage"),
    [
        ("", "DTP*303*D8*20261201~"),
        ("DTP*303*D8*20261201~", ""),
        ("DTP*303*D8*20261001~", "DTP*303*D8*20261201~"),
    ],
)
def test_without_a_begin_a_new_member_begins_on_the_day_of_the_change(
    dates: str, coverage: str
) -> None:
    row = row_of("021", dates, "HD*021**HLT*Gold~" + coverage)
    assert access_of(row) == ("2026-12-01", None)
    assert access_of(row, STORED) == (STORED.begin, None)
    begun = row_of("021", "DTP*356*D8*20260101~" + dates, "HD*021**HLT*Gold~" + coverage)
    assert access_of(begun) == ("2026-01-01", None)
    other = row_of(
        "001", "", "HD*024**HMO*Old~DTP*349*D8*20261130~HD*021**PPO~DTP*348*D8*20261201~"
    )
    assert access_of(other) == ("2026-12-01", None)  # the begin that is known


@pytest.mark.parametrize("line", ["DEN", "VIS", "HE", "PDG", "LTD", "LIF", "AD", ""])
@pytest.mark.parametrize("code", ["021", "001", "025", "024"])
def test_a_member_without_a_coverage_that_counts_keeps_its_access(code: str, line: str) -> None:
    dates = "DTP*356*D8*20200101~DTP*357*D8*20261015~"
    row = row_of(code, dates, f"HD*{code}**{line}*Other~DTP*349*D8*20261031~")
    assert (row.action, row.context.coverages) == (Action.ENROL, ())
    assert "medical_plan_description" not in row.values
    assert row.values["first_name"] == "Robin"
    assert warned(row) == ("no_medical_coverage",)
    assert [(cause.field, cause.code) for cause in row.context.causes] == [
        (BEGIN, "no_medical_coverage")
    ]


def test_a_change_without_any_coverage_of_the_member_is_no_news_of_the_access() -> None:
    row = row_of("021", "", "HD*032**HLT*Gold~DTP*348*D8*20260101~")  # of the dependents alone
    assert (warned(row), row.context.coverages) == (("no_medical_coverage",), ())
    row = row_of("001", "DTP*356*D8*20200101~", "")
    assert (row.context.coverages, warned(row)) == ((), ())
    assert [cause.code for cause in row.context.causes] == ["no_medical_coverage"]
    assert access_of(row_of("025", "", ""), STORED._replace(end="2026-06-30"))[1] is None


# Dates of the member, coverages, the last day.
ENDS: list[tuple[str, str, str]] = [
    ("", "", "2026-11-20"),
    ("DTP*357*D8*20261031~", "", "2026-10-31"),
    # A date of a coverage means nothing before HD.
    ("DTP*349*D8*20260930~", "", "2026-11-20"),
    ("DTP*357*D8*20261031~", "HD*024**HLT~DTP*349*D8*20260930~", "2026-10-31"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~", "2026-09-30"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~HD*024**PPO*B~DTP*349*D8*20261231~", "2026-12-31"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~HD*024**DEN~DTP*349*D8*20261231~", "2026-09-30"),
    ("", "HD*024**HLT~DTP*349*D8*20260930~HD*024**PPO*B~", "2026-09-30"),
    ("", "HD*024**HLT~", "2026-11-20"),
]


@pytest.mark.parametrize(("dates", "coverages", "day"), ENDS)
def test_the_end_of_a_member_carries_the_last_day_only(
    dates: str, coverages: str, day: str
) -> None:
    row = row_of("024", dates, coverages)
    assert (row.action, row.values) == (Action.END, {"external_id": "FAMILY1-01"})
    assert access_of(row, STORED) == (STORED.begin, day)


def test_an_account_may_count_every_line() -> None:
    every = {"834": {"coverages": "all"}}
    dental = row_of("021", "", DENTAL, every)
    assert (access_of(dental), warned(dental)) == (("2020-01-01", None), ())
    begun = row_of("021", "DTP*356*D8*20260301~DTP*357*D8*20270630~", "", every)
    assert access_of(begun) == ("2026-03-01", "2027-06-30")
    assert begun.context.causes == ()


def test_codes_in_small_letters_are_read() -> None:
    text = "INS*y*18*021*28*a***ft~REF*0F*FAMILY1~REF*17*01~NM1*il*1*Sample*Robin~"
    [row] = rows_of(file_834(text + "DMG*D8*19770111*f~" + OPEN))
    assert row.faults == ()
    found = (row.values["first_name"], row.values["gender"], access_of(row)[0])
    assert found == ("Robin", "female", "2026-01-01")


params, error_handler, x12context = (
    import_module(f"pyx12.{name}") for name in ("params", "error_handler", "x12context")
)

MEDICAL = {"HLT", "HMO", "PPO", "POS", "EPO", "MM", "IND", "PRA"}
SEXES = {"F": "female", "M": "male", "U": "unknown"}


def walked(text: str) -> list[Any]:
    """pyx12's trees of the members."""
    reader = x12context.X12ContextReader(
        params.params(), error_handler.errh_null(), io.StringIO(text.replace("\n", ""))
    )
    return [node for node in reader.iter_segments("2000") if node.id == "2000"]


def day(text: str | None) -> str | None:
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if text else None


PERSON = names_in(
    "first_name NM104,last_name NM103,middle_name NM105,city N401,state N402,zipcode N403,county N406"
)


def expected(node: Any) -> dict[str, Any]:
    """The fields of the member by pyx12's paths, and the access by the one medical coverage that
    the member has.
    """
    get = node.get_value
    told = {name: get(f"2100A/{path}") for name, path in (each.split() for each in PERSON)}
    told |= {"dob": day(get("2100A/DMG02")), "gender": SEXES.get(get("2100A/DMG03"))}
    told["relationship_code_hipaa"] = get("INS02")
    told["subscriber_relationship"] = {"Y": "Primary", "N": "Dependent"}[get("INS01")]
    contacts = {get(f"2100A/PER{n:02d}"): get(f"2100A/PER{n + 1:02d}") for n in (3, 5, 7)}
    told["email"] = contacts.get("EM")
    told["phone"] = next((contacts[kind] for kind in ("CP", "HP", "TE") if kind in contacts), None)
    for coverage in node.select("2300"):
        if coverage.get_value("HD03") in MEDICAL:
            begin, end = (coverage.get_value(f"DTP[{kind}]03") for kind in ("348", "349"))
            told |= {"effective_date": day(begin), "expiry_date": day(end)}
            told["medical_plan_description"] = coverage.get_value("HD04") or coverage.get_value(
                "HD03"
            )
    told["external_id"] = f"{get('REF[0F]02')}-{get('REF[17]02')}"
    return {name: value for name, value in told.items() if value}


def found(row: Row) -> dict[str, Any]:
    ours = {"member_id", "payor_name", "relationship_code"}
    begin, end = access_of(row)
    values = row.values | {BEGIN: begin, END: end}
    return {name: value for name, value in values.items() if value and name not in ours}


def test_each_field_is_what_pyx12_finds() -> None:
    out = io.BytesIO()
    list(write_sample(sample_members(60, seed=9), Format.X12, out))
    text = out.getvalue().decode()
    rows = rows_of(text)
    assert {row.action for row in rows} == {Action.ENROL}
    for row, node in zip(rows, walked(text), strict=True):
        assert found(row) == expected(node)
