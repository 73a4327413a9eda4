"""Who a row of an 834 is: the way that the mapping says, and the person check beside the stored member (docs/834.md)."""

from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.db.schema import metadata
from frontdesk.files.model import EligibilityFile
from tests.factories import make_customer
from tests.files.loading import Desk
from tests.formats.reading import file_834, interchange, transaction

HOME = "N3*1 Example Street~N4*Boston*MA*02134~"
ADD = "HD*021**HLT*Gold~DTP*348*D8*20260101~"
END = "HD*024**HLT~DTP*349*D8*20261031~"
BY_ROLE = {"834": {"identify": {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}}}
CONFLICT = [("refused", "identity_conflict")]


def by(way: str, **said: Any) -> dict[str, Any]:
    return {"834": {"identify": way, **said}}


def person(first: str = "Robin", born: str = "19770111", **said: str) -> str:
    """An INS loop: relation (INS02), code (INS03), sequence (INS17), family (REF*0F), number (references), last name, name (NM1),
    home (N3 and N4), coverage."""
    relation = said.get("relation", "18")
    sequence = f"{'*' * 12}{said['sequence']}" if "sequence" in said else ""
    name = said.get("name", f"NM1*IL*1*{said.get('last', 'Sample')}*{first}~")
    family = said.get("family", "FAMILY1")
    return (
        f"INS*{'Y' if relation == '18' else 'N'}*{relation}*{said.get('code', '021')}*28*A{sequence}~"
        f"{f'REF*0F*{family}~' if family else ''}{said.get('number', '')}{name}"
        f"{said.get('home', HOME)}{f'DMG*D8*{born}*F~' if born else ''}{said.get('coverage', ADD)}"
    )


def child(first: str = "Kim", born: str = "20150203", **said: str) -> str:
    return person(first, born, relation="19", **said)


def load(
    desk: Desk, *members: str, purpose: str = "2", mapping: dict[str, Any] | None = None
) -> EligibilityFile:
    return desk.load(file_834(*members, purpose=purpose).encode(), mapping=mapping or BY_ROLE)


def codes(desk: Desk, file: EligibilityFile) -> list[tuple[str, str]]:
    return [(line["outcome"], line["code"]) for line in desk.report(file)]


def stored(desk: Desk, first_name: str) -> dict[str, Any]:
    [found] = [each for each in desk.members().values() if each["first_name"] == first_name]
    return found


MARIE, STRANGER, CASE = "F100234567", "F300777777", "CASE-CAT-001"
NAMES = {
    "no name": "",
    "another last name and no birth": "NM1*IL*1*Doe*Marie~N4*Salem*MA*01970~",
    "another first name and no birth": "NM1*IL*1*Roe*Noor~N4*Salem*MA*01970~",
    "the birth of another": "NM1*IL*1*Roe*Marie~N4*Salem*MA*01970~DMG*D8*19880101*F~",
    "no first name": "NM1*IL*1*Roe~DMG*D8*19870623*F~",
}


def marie(source: str) -> str:
    return person("Marie", "19870623", family=MARIE, last="Roe", number=f"REF*{source}*{CASE}~")


def stranger(source: str, code: str, name: str, *, family: str = STRANGER) -> str:
    of_family = f"REF*0F*{family}~" if family else ""
    return f"INS*Y*18*{code}*28*A~{of_family}REF*{source}*{CASE}~{NAMES[name]}{END}"


@pytest.mark.parametrize("code", ["024", "001", "021"])
@pytest.mark.parametrize("source", ["ZZ", "17", "23"])
def test_a_row_of_another_family_with_the_same_number_changes_and_ends_nobody(
    desk: Desk, source: str, code: str
) -> None:
    mapping = by(f"REF*{source}")
    load(desk, marie(source), mapping=mapping)
    before = desk.members()
    for name in NAMES:
        assert codes(desk, load(desk, stranger(source, code, name), mapping=mapping)) == CONFLICT
    strangers = [stranger(source, code, name) for name in ("no name", "another last name and no birth")]
    for members in ([marie(source), *strangers], [*strangers, marie(source)]):
        file = load(desk, *members, mapping=mapping)
        assert {line["code"] for line in desk.report(file)} == {"identifier_shared"}
    assert desk.members() == before


KNOWN = person("Kimberly", "19770111", number="REF*23*C-1~")
CHECKS: list[tuple[str, str, bool]] = [
    ("the same", person("Kimberly"), True),
    ("a shorter first name", person("Kim"), True),
    ("an initial", person("R"), True),
    ("a placeholder of a newborn", person("Baby Girl"), True),
    ("nothing about the person", person(name="", born="", home="", family=""), True),
    ("another first name", person("Noor"), False),
    ("another birth date, name and role agree", person("Kimberly", "19770112"), True),
    ("another birth date and last name", person("Kimberly", "19770112", last="Doe"), False),
    ("another birth date and role", person("Kimberly", "19770112", relation="01"), False),
    ("another family, name and birth agree", person("Kimberly", family="FAMILY2"), True),
    ("another family, no birth", person("Kimberly", "", family="FAMILY2"), False),
    ("another role, name and birth agree", person("Kimberly", relation="01"), True),
    ("another role and neither name nor birth", person(name="", born="", relation="01"), False),
    ("a corrected first name", person(name="NM1*70*1*Sample*Kimberly~NM1*74*1*Sample*Noor~"), True),
    ("a correction of somebody else", person(name="NM1*70*1*Sample*Toni~NM1*74*1*Sample*Noor~"), False),
]


@pytest.mark.parametrize(("row", "agrees"), [check[1:] for check in CHECKS], ids=[each[0] for each in CHECKS])
def test_the_person_check(desk: Desk, row: str, agrees: bool) -> None:
    mapping = by("REF*23")
    load(desk, KNOWN, mapping=mapping)
    row = row.replace("REF*0F*FAMILY", "REF*23*C-1~REF*0F*FAMILY") if "REF*0F" in row else row.replace(
        "*28*A~", "*28*A~REF*23*C-1~"
    )  # fmt: skip
    for code in ("001", "024"):
        text = row.replace("*021*28", f"*{code}*28")
        report = codes(desk, load(desk, text, mapping=mapping))
        assert report == CONFLICT if not agrees else report[0][0] in ("updated", "unchanged", "ended")
    assert len(desk.members()) == 1
    assert (desk.members()["C-1"]["expiry_date"] is None) is not agrees


@pytest.mark.parametrize("rows", [[0, 1], [1, 0]])
@pytest.mark.parametrize(
    "others", [{"first": "Toni"}, {"sequence": "2"}], ids=["another name", "another birth sequence"]
)
def test_two_people_of_a_file_with_one_identifier_are_both_refused(
    desk: Desk, others: dict[str, str], rows: list[int]
) -> None:
    mapping = by("REF*23")
    card = {"number": "REF*23*C-1~"}
    pair = [child(sequence="1", **card), child(**{"sequence": "1"} | others, **card)]
    apart = [person(f"P{n}", family=f"F{n}", number=f"REF*23*P{n}~") for n in range(3)]
    for members in ([pair[at] for at in rows], [pair[rows[0]], *apart, pair[rows[1]]]):
        file = load(desk, *members, mapping=mapping)
        shared = [line["row"] for line in desk.report(file) if line["code"] == "identifier_shared"]
        assert len(shared) == 2
        assert "C-1" not in desk.members()
        assert file.rows_total == file.rows_done == len(members)


def test_children_are_told_apart_by_name_and_birth_and_found_again(desk: Desk) -> None:
    kim, toni = child(), child("Toni", "20180506")
    assert load(desk, person(), kim, toni).counts == {"created": 3}
    assert load(desk, toni, person(), kim, purpose="RX").counts == {"unchanged": 3}
    assert load(desk, toni.replace("Boston", "Salem")).counts == {"updated": 1}
    assert [stored(desk, name)["city"] for name in ("Robin", "Kim", "Toni")] == ["Boston", "Boston", "Salem"]
    assert load(desk, child(code="024", coverage=END)).counts == {"ended": 1}
    assert [stored(desk, name)["expiry_date"] for name in ("Kim", "Toni")] == ["2026-10-31", None]


def test_a_correction_is_found_by_the_old_values_and_renames_the_identifier(desk: Desk) -> None:
    load(desk, person(), child())
    old = stored(desk, "Kim")
    corrected = child(name="NM1*70*1*Sample*Kim~NM1*74*1*Sample*Kym~")
    file = load(desk, corrected)
    assert codes(desk, file) == [("updated", "")]
    new = stored(desk, "Kym")
    assert new["id"] == old["id"]
    assert new["external_id"] == new["member_id"] != old["external_id"]
    assert codes(desk, load(desk, corrected)) == codes(desk, load(desk, child("Kym"))) == [("unchanged", "")]
    desk.undo(file)
    assert stored(desk, "Kim") == old


def test_a_corrected_birth_date_is_found_by_the_old_one(desk: Desk) -> None:
    load(desk, child())
    name = "NM1*70*1*Sample*Kim~DMG*D8*20150203*F~NM1*74*1*Sample*Kim~"
    load(desk, child("Kim", "20150302", name=name))
    assert stored(desk, "Kim")["dob"] == "2015-03-02"
    assert len(desk.members()) == 1


def test_a_full_file_ends_those_whom_it_does_not_name_and_no_one_whom_it_refuses(desk: Desk) -> None:
    mapping = by("REF*23")
    people = [person(f"P{n}", family=f"F{n}", number=f"REF*23*C-{n}~") for n in range(3)]
    load(desk, *people, mapping=mapping)
    other = person("Noor", family="F0", number="REF*23*C-0~")
    assert load(desk, other, people[1], purpose="RX", mapping=mapping).counts == {
        "refused": 1, "unchanged": 1, "ended": 1,
    }  # fmt: skip
    assert [desk.members()[f"C-{n}"]["expiry_date"] for n in range(3)] == [None, None, "2026-11-20"]


def test_another_accounts_member_with_the_identifier_tells_nothing_of_its_name(desk: Desk) -> None:
    mapping = by("REF*23")
    load(desk, KNOWN, mapping=mapping)
    other = Desk(desk.db, make_customer(desk.db), desk.clock)
    files = [
        load(other, person(name, number="REF*23*C-1~"), mapping=mapping) for name in ("Kimberly", "Noor")
    ]
    assert [codes(other, file) for file in files] == [[("refused", "not_unique")] * 2] * 2


SSN, KIDS_SSN = "123456789", "123456788"


@pytest.mark.parametrize(("ssn", "is_shown"), [({}, False), ({"ssn": "plain"}, True)])
def test_a_social_security_number_stands_nowhere_unless_the_mapping_says_plain(
    desk: Desk, caplog: pytest.LogCaptureFixture, ssn: dict[str, Any], is_shown: bool
) -> None:
    numbered = person(family=SSN, name=f"NM1*IL*1*Sample*Robin****34*{SSN}~")
    refused = child(family=SSN, coverage="", name=f"NM1*IL*1*Sample*Kim****34*{KIDS_SSN}~")
    files = [
        load(desk, numbered, refused, child("Toni", family=SSN), mapping={**BY_ROLE, **ssn}) for _ in "12"
    ]
    assert files[1].counts == {"unchanged": 2, "refused": 1}
    with desk.db.read() as tx:
        rows = repr([tx.execute(select(table)).fetchall() for table in metadata.sorted_tables])
    said = rows + repr([desk.report(file) for file in files]) + caplog.text
    assert [number in said for number in (SSN, "123-45-6789", KIDS_SSN)] == [is_shown, False, False]
    assert {key.partition("-")[0] for key in desk.members()} == {SSN if is_shown else "ssn1"}


def dependent(last: str = "Sample", family: str = "K7700A", **said: str) -> str:
    return child(family=family, last=last, home="", **said)


@pytest.mark.parametrize(
    ("members", "city"),
    [
        ([person(), dependent(family="FAMILY1")], "Boston"),
        ([dependent(family="FAMILY1"), person()], "Boston"),
        ([person(), dependent()], "Boston"),
        ([person(), dependent(family="", number="REF*23*C-9~")], "Boston"),
        ([person(), dependent("Doe")], None),
        ([person(home=""), dependent()], None),
        ([person().replace("02134", "K1A 0B1"), dependent()], None),
        ([person("Alex", relation="01"), dependent()], None),
    ],
    ids=["family", "family before", "last name", "no family number", "another name", "no address", "no zip", "no subscriber"],
)  # fmt: skip
def test_a_dependent_without_an_address_lives_with_its_subscriber(
    desk: Desk, members: list[str], city: str | None
) -> None:
    mapping = {"834": {"identify": {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}}}
    if "C-9" in "".join(members):
        mapping = by("REF*23")
        members = [members[0].replace("REF*0F", "REF*23*C-8~REF*0F"), members[1]]
    load(desk, *members, mapping=mapping)
    again = load(desk, *members, mapping=mapping)
    kims = [each["city"] for each in desk.members().values() if each["first_name"] == "Kim"]
    assert kims == ([] if city is None else [city])
    assert again.counts["unchanged"] == len(kims) + 1 if city else again.counts["refused"] >= 1


def test_the_subscriber_of_another_transaction_gives_no_address(desk: Desk) -> None:
    content = interchange(transaction(person()), transaction(dependent(), control="0002"))
    assert codes(desk, desk.load(content.encode(), mapping=BY_ROLE)) == [
        ("created", ""),
        ("refused", "required"),
    ]


def test_a_new_dependent_takes_the_address_of_the_stored_subscriber_and_a_stored_one_keeps_its_own(
    desk: Desk,
) -> None:
    load(desk, person())
    file = load(desk, dependent(family="FAMILY1"))
    assert codes(desk, file) == [("created", ""), ("warned", "address_of_subscriber")]
    load(desk, person(home=HOME.replace("Boston", "Lynn")))
    load(desk, dependent(family="FAMILY1", code="001"))
    assert stored(desk, "Kim")["city"] == "Boston"


FAMILY_TIER, NO_COVER = "HD*021**HLT*Gold*FAM~DTP*348*D8*20260101~", {"coverage": "", "home": ""}


def test_a_dependent_without_a_coverage_is_covered_by_the_family_where_the_mapping_says_so(
    desk: Desk,
) -> None:
    members = [person(coverage=FAMILY_TIER), child(**NO_COVER)]
    file = load(desk, *members)
    [line] = [line for line in desk.report(file) if line["outcome"] == "refused"]
    assert line["code"] == "no_medical_coverage"
    assert "FAM (HD05)" in line["hint"]
    assert '"family_coverage": "subscriber"' in line["hint"]
    said = {"834": BY_ROLE["834"] | {"family_coverage": "subscriber"}}
    assert load(desk, *members, mapping=said).counts == {"unchanged": 1, "created": 1, "warned": 1}
    assert stored(desk, "Kim")["effective_date"] == "2026-01-01"
    only_spouse = [
        person("Lee", family="F2", coverage=FAMILY_TIER.replace("FAM", "ESP")),
        child(family="F2", **NO_COVER),
    ]
    assert load(desk, *only_spouse, mapping=said).counts == {"created": 1, "refused": 1}


def test_dependents_inside_ls_and_le_are_reported(desk: Desk) -> None:
    nested = "LS*2700~LX*1~NM1*70*1*Sample*Kim~DMG*D8*20150203*F~LE*2700~"
    file = load(desk, person(coverage=ADD + nested))
    assert codes(desk, file) == [("refused", "nested_dependent"), ("created", "")]
    assert desk.report(file)[0]["row"] == 18


def test_an_addition_that_ends_every_coverage_is_warned_of(desk: Desk) -> None:
    load(desk, person())
    assert codes(desk, load(desk, person(coverage=END))) == [("updated", ""), ("warned", "added_and_ended")]


DENTAL = "HD*021**DEN*Teeth~DTP*348*D8*20200101~"
NEXT = "HD*021**PPO*Next~DTP*348*D8*20270101~"
PADDING = [person(f"P{n}", family=f"F{n}") for n in range(30)]


@pytest.mark.parametrize("chunk_rows", [4, 1000])
def test_loops_that_stand_apart_are_one_row(desk: Desk, chunk_rows: int) -> None:
    desk.options = desk.options.__class__(desk.options.uniqueness, chunk_rows=chunk_rows)
    others = [person(f"P{n}", family=f"F{n}", coverage=DENTAL) for n in range(5)]
    end = person(code="024", coverage="HD*024**HLT*Gold~DTP*349*D8*20261231~")
    file = load(desk, person(), *PADDING, end, child(home=""), *others, person(coverage=NEXT), purpose="RX")
    assert file.counts == {"created": 32, "warned": 1}
    assert (file.rows_total, file.rows_done) == (32, 32)
    robin = stored(desk, "Robin")
    assert (robin["effective_date"], robin["expiry_date"], robin["medical_plan_description"]) == (
        "2026-01-01", None, "Next",
    )  # fmt: skip
    assert [line["row"] for line in desk.report(file) if line["external_id"] == "FAMILY1"] == [8]
    assert stored(desk, "Kim")["city"] == "Boston"


def test_loops_apart_that_contradict_each_other_are_refused_once(desk: Desk) -> None:
    file = load(desk, person(), *PADDING, person(home=HOME.replace("Boston", "Salem")))
    assert file.counts == {"created": 30, "refused": 1}
    assert "repeated_differently" in {line["code"] for line in desk.report(file)}


def test_two_names_in_one_loop_refuse_it(desk: Desk) -> None:
    second = f"NM1*IL*1*Sample*Alex~{HOME}DMG*D8*19780203*F~"
    file = load(desk, person(name="NM1*IL*1*Sample*Robin~" + second))
    assert codes(desk, file) == [("refused", "repeated_differently")]
