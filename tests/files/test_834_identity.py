"""Who a row of an 834 is: the way that the mapping says, the suggestion without one, and the person
check (docs/834.md).
"""

import io
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.db.schema import metadata
from frontdesk.errors import Invalid
from frontdesk.files import list_mappings
from frontdesk.files.actions import accept_mapping
from frontdesk.files.model import EligibilityFile, FileKey, WrongState
from frontdesk.mapping.suggest.suggestion import suggest_mapping
from frontdesk.reach import EVERY
from tests.files.loading import ON_SQLITE, Desk
from tests.formats.reading import ADD, HOME, child, file_834, interchange, person, transaction

END = "HD*024**HLT~DTP*349*D8*20261031~"
BY_FAMILY = {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}
BY_ROLE = {"834": {"identify": BY_FAMILY}}
BY_CARD = {"834": {"identify": "REF*23"}}
CONFLICT = [("refused", "identity_conflict")]


def load(desk: Desk, *members: str, **options: Any) -> EligibilityFile:
    return desk.load_834(*members, **{"mapping": BY_ROLE} | options)


def stored(desk: Desk, first_name: str) -> dict[str, Any]:
    [found] = [each for each in desk.members().values() if each["first_name"] == first_name]
    return found


CASE = "CASE-CAT-001"
NAMES = {
    "no name": "",
    "another last name and no birth": "NM1*IL*1*Doe*Marie~N4*Salem*MA*01970~",
    "another first name and no birth": "NM1*IL*1*Roe*Noor~N4*Salem*MA*01970~",
    "the birth of another": "NM1*IL*1*Roe*Marie~N4*Salem*MA*01970~DMG*D8*19880101*F~",
    "no first name": "NM1*IL*1*Roe~DMG*D8*19870623*F~",
}


@ON_SQLITE
@pytest.mark.parametrize("code", ["024", "001", "021"])
@pytest.mark.parametrize("source", ["ZZ", "17", "23"])
def test_a_row_of_another_family_with_a_known_number_is_refused(
    desk: Desk, source: str, code: str
) -> None:
    mapping = {"834": {"identify": f"REF*{source}"}}
    number = f"REF*{source}*{CASE}~"
    marie = person("Marie", "19870623", family="F100234567", last="Roe", number=number)
    strangers = [
        f"INS*Y*18*{code}*28*A~REF*0F*F300777777~{number}{name}{END}" for name in NAMES.values()
    ]
    load(desk, marie, mapping=mapping)
    before = desk.members()
    for stranger in strangers:
        assert desk.codes(load(desk, stranger, mapping=mapping)) == CONFLICT
    for members in ([marie, *strangers[:2]], [*strangers[:2], marie]):
        file = load(desk, *members, mapping=mapping)
        assert {line["code"] for line in desk.report(file)} == {"identifier_shared"}
    assert desk.members() == before


carded = partial(person, number="REF*23*C-1~")
OTHER_DAY = "19770112"
CHECKS: list[tuple[str, str, bool]] = [
    ("the same", carded("Kimberly"), True),
    ("a shorter first name", carded("Kim"), True),
    ("an initial", carded("R"), True),
    ("a placeholder of a newborn", carded("Baby Girl"), True),
    ("nothing about the person", carded(name="", born="", home="", family=""), True),
    ("another first name, all else agrees", carded("Noor"), True),
    ("another first name and last name", carded("Noor", last="Doe"), False),
    ("another first name and role", carded("Noor", relation="01"), False),
    ("another first name and no birth date", carded("Noor", ""), False),
    ("another birth date, name and role agree", carded("Kimberly", OTHER_DAY), True),
    ("another birth date and last name", carded("Kimberly", OTHER_DAY, last="Doe"), False),
    ("another birth date and role", carded("Kimberly", OTHER_DAY, relation="01"), False),
    ("another family, name and birth agree", carded("Kimberly", family="FAMILY2"), True),
    ("another family, no birth", carded("Kimberly", "", family="FAMILY2"), False),
    ("another role, name and birth agree", carded("Kimberly", relation="01"), True),
    ("another role and neither name nor birth", carded(name="", born="", relation="01"), False),
    ("a corrected first name", carded(name="NM1*70*1*Sample*Kimberly~NM1*74*1*Sample*Noor~"), True),
    ("a correction of somebody else", carded(name="NM1*70*1*Doe*Toni~NM1*74*1*Doe*Noor~"), False),
]


@ON_SQLITE
@pytest.mark.parametrize(
    ("row", "agrees"), [check[1:] for check in CHECKS], ids=[each[0] for each in CHECKS]
)
def test_the_person_check(desk: Desk, row: str, agrees: bool) -> None:
    load(desk, carded("Kimberly"), mapping=BY_CARD)
    for code in ("001", "024"):
        report = desk.codes(load(desk, row.replace("*021*28", f"*{code}*28"), mapping=BY_CARD))
        assert (
            report == CONFLICT if not agrees else report[0][0] in ("updated", "unchanged", "ended")
        )
    assert desk.members().keys() == {"C-1"}
    assert (desk.ends()["C-1"] is None) is not agrees


@ON_SQLITE
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("others", [{"first": "Toni"}, {"sequence": "2"}])
def test_two_people_with_one_identifier_are_both_refused(
    desk: Desk, others: Any, is_turned: bool
) -> None:
    card = {"number": "REF*23*C-1~"}
    pair = [child(sequence="1", **card), child(**{"sequence": "1"} | others, **card)]
    first, second = reversed(pair) if is_turned else pair
    apart = [person(f"P{n}", family=f"F{n}", number=f"REF*23*P{n}~") for n in range(3)]
    for members in ([first, second], [first, *apart, second]):
        file = load(desk, *members, mapping=BY_CARD)
        assert [line["code"] for line in desk.report(file)].count("identifier_shared") == 2
        assert "C-1" not in desk.members()
        assert file.rows_total == file.rows_done == len(members)


def test_children_are_told_apart_by_name_and_birth_and_found_again(desk: Desk) -> None:
    kim = child()
    toni = child("Toni", "20180506")
    assert load(desk, person(), kim, toni).counts == {"created": 3}
    assert load(desk, toni, person(), kim, purpose="RX").counts == {"unchanged": 3}
    assert load(desk, toni.replace("Boston", "Salem")).counts == {"updated": 1}
    assert [stored(desk, name)["city"] for name in ("Robin", "Kim", "Toni")] == [
        "Boston",
        "Boston",
        "Salem",
    ]
    assert load(desk, child(code="024", coverage=END)).counts == {"ended": 1, "lost": 1}
    assert [stored(desk, name)["expiry_date"] for name in ("Kim", "Toni")] == ["2026-10-31", None]


def test_a_correction_is_found_by_the_old_values_and_renames_the_identifier(desk: Desk) -> None:
    load(desk, person(), child())
    old = stored(desk, "Kim")
    corrected = child(name="NM1*70*1*Sample*Kim~NM1*74*1*Sample*Kym~")
    file = load(desk, corrected)
    assert desk.codes(file) == [("updated", "")]
    new = stored(desk, "Kym")
    assert new["id"] == old["id"]
    assert new["external_id"] == new["member_id"] != old["external_id"]
    for again in (corrected, child("Kym")):
        assert desk.codes(load(desk, again)) == [("unchanged", "")]
    desk.undo(file)
    assert stored(desk, "Kim") == old
    name = "NM1*70*1*Sample*Kim~DMG*D8*20150203*F~NM1*74*1*Sample*Kim~"
    load(desk, child("Kim", "20150302", name=name))
    assert (stored(desk, "Kim")["dob"], len(desk.members())) == ("2015-03-02", 2)


def test_a_full_file_ends_those_whom_it_does_not_name_and_no_one_whom_it_refuses(
    desk: Desk,
) -> None:
    people = [person(f"P{n}", family=f"F{n}", number=f"REF*23*C-{n}~") for n in range(3)]
    load(desk, *people, mapping=BY_CARD)
    other = person("Noor", family="F0", last="Doe", number="REF*23*C-0~")
    file = load(desk, other, people[1], purpose="RX", mapping=BY_CARD)
    assert file.counts == {"refused": 1, "unchanged": 1, "ended": 1, "lost": 1}
    assert desk.ends() == {"C-0": None, "C-1": None, "C-2": "2026-11-20"}


def test_another_accounts_member_with_the_identifier_tells_no_name(desk: Desk, other: Desk) -> None:
    load(desk, carded("Kimberly"), mapping=BY_CARD)
    for name in ("Kimberly", "Noor"):
        assert (
            other.codes(load(other, carded(name), mapping=BY_CARD))
            == [("refused", "not_unique")] * 2
        )


SSN = "123456789"
KIDS_SSN = "123456788"


@pytest.mark.parametrize(("ssn", "is_shown"), [({}, False), ({"ssn": "plain"}, True)])
def test_a_social_security_number_stands_nowhere_unless_the_mapping_says_plain(
    desk: Desk, caplog: pytest.LogCaptureFixture, ssn: dict[str, Any], is_shown: bool
) -> None:
    numbered = person(family=SSN, name=f"NM1*IL*1*Sample*Robin****34*{SSN}~")
    refused = child(family=SSN, coverage="", name=f"NM1*IL*1*Sample*Kim****34*{KIDS_SSN}~")
    members = [numbered, refused, child("Toni", family=SSN)]
    files = [load(desk, *members, mapping={**BY_ROLE, **ssn}) for _ in "12"]
    assert files[1].counts == {"unchanged": 2, "refused": 1}
    with desk.db.read() as tx:
        rows = repr([tx.execute(select(table)).fetchall() for table in metadata.sorted_tables])
    said = rows + repr([desk.report(file) for file in files]) + caplog.text
    assert [number in said for number in (SSN, "123-45-6789", KIDS_SSN)] == [is_shown, False, False]
    assert {key.partition("-")[0] for key in desk.members()} == {SSN if is_shown else "ssn1"}


def dependent(last: str = "Sample", family: str = "K7700A", **said: str) -> str:
    return child(family=family, last=last, home="", **said)


HOMES: list[tuple[str, list[str], str | None]] = [
    ("family", [person(), dependent(family="FAMILY1")], "Boston"),
    ("family before", [dependent(family="FAMILY1"), person()], "Boston"),
    ("last name", [person(), dependent()], "Boston"),
    ("a double name", [person(), dependent("Doe-Sample")], "Boston"),
    ("another name", [person(), dependent("Doe")], None),
    ("family of another name", [person(), dependent("Doe", family="FAMILY1")], None),
    ("family of another name before", [dependent("Doe", family="FAMILY1"), person()], None),
    ("a particle in common", [person(last="van Dyke"), dependent("van Gogh")], None),
    (
        "another town",
        [person(), dependent().replace("NM1*IL*1*Sample*Kim~", "NM1*IL*1*Sample*Kim~N4*Salem~")],
        None,
    ),
    ("no address", [person(home=""), dependent()], None),
    ("no zip", [person().replace("02134", "K1A 0B1"), dependent()], None),
    ("no subscriber", [person("Alex", relation="01"), dependent()], None),
]


@ON_SQLITE
@pytest.mark.parametrize(
    ("members", "city"), [each[1:] for each in HOMES], ids=[each[0] for each in HOMES]
)
def test_a_dependent_lives_with_its_subscriber(
    desk: Desk, members: list[str], city: str | None
) -> None:
    told = desk.codes(load(desk, *members))
    again = load(desk, *members)
    kims = [each["city"] for each in desk.members().values() if each["first_name"] == "Kim"]
    assert kims == ([] if city is None else [city])
    assert ("warned", "address_of_subscriber") in told or city is None
    assert again.counts["unchanged"] == len(kims) + 1 if city else again.counts["refused"] >= 1


def test_a_new_dependent_takes_the_address_of_the_stored_subscriber(desk: Desk) -> None:
    load(desk, person())
    file = load(desk, dependent(family="FAMILY1"))
    assert desk.codes(file) == [("created", ""), ("warned", "address_of_subscriber")]
    load(desk, person(home=HOME.replace("Boston", "Lynn")))
    load(desk, dependent(family="FAMILY1", code="001"))
    assert stored(desk, "Kim")["city"] == "Boston"
    toni = child("Toni", family="", number="REF*23*C-9~", home="")
    unknown = load(desk, person("Lee", family="F2", number="REF*23*C-8~"), toni, mapping=BY_CARD)
    assert desk.codes(unknown)[1:] == [("created", ""), ("warned", "address_of_subscriber")]
    other = interchange(transaction(person()), transaction(dependent(), control="0002"))
    apart = desk.codes(desk.load(other.encode(), mapping=BY_ROLE))
    assert apart[1:] == [("refused", "required")], "the subscriber of another transaction"


@pytest.mark.parametrize("family", ["FAMILY1", "K7700A"])
def test_a_stored_dependent_keeps_its_own_zip_when_its_subscriber_has_another(
    desk: Desk, family: str
) -> None:
    own = dependent(family=family).replace("DMG", "N4*Salem*MA*01970~DMG")
    load(desk, person(), own)
    moved = person(home=HOME.replace("Boston*MA*02134", "Lynn*MA*01901"))
    file = load(desk, moved, dependent(family=family, code="001"))
    assert (file.counts, stored(desk, "Kim")["zipcode"]) == (
        {"updated": 1, "unchanged": 1},
        "01970",
    )
    assert "address_of_subscriber" not in file.codes


def test_a_dependent_follows_its_subscriber_until_it_has_its_own_zip(desk: Desk) -> None:
    kim = dependent(family="FAMILY1")
    load(desk, person(), kim)
    load(desk, person(home=HOME.replace("02134", "01901")), kim)
    assert stored(desk, "Kim")["zipcode"] == "01901"
    desk.post(external_id=stored(desk, "Kim")["external_id"], zipcode="01901")
    file = load(desk, person(home=HOME.replace("02134", "01970")), kim)
    assert (file.counts, stored(desk, "Kim")["zipcode"]) == (
        {"updated": 1, "unchanged": 1},
        "01901",
    )
    compared = load(desk, person(home=HOME), dependent(family="FAMILY1", code="030"), purpose="4")
    assert compared.codes.get("differs") == 1, "the zip code of the subscriber"
    shown = [each for line in desk.report(file) for each in line["changed"]]
    assert shown == ["zipcode"]


def test_a_stored_subscriber_of_another_name_gives_no_address(desk: Desk) -> None:
    load(desk, person())
    file = load(desk, dependent("Doe", family="FAMILY1"))
    [line] = desk.report(file)
    assert (line["outcome"], line["field"], line["code"]) == ("refused", "zipcode", "required")
    assert "REF*0F and last name" in line["hint"]


FAMILY_TIER = "HD*021**HLT*Gold*FAM~DTP*348*D8*20260101~"
NO_COVER = {"coverage": "", "home": ""}


def test_a_mapping_can_cover_dependents_by_the_family(desk: Desk) -> None:
    members = [person(coverage=FAMILY_TIER), child(**NO_COVER)]
    [line] = [line for line in desk.report(load(desk, *members)) if line["outcome"] == "refused"]
    assert line["code"] == "no_medical_coverage"
    assert "FAM (HD05)" in line["hint"]
    assert '"family_coverage": "subscriber"' in line["hint"]
    said = {"834": BY_ROLE["834"] | {"family_coverage": "subscriber"}}
    assert load(desk, *members, mapping=said).counts == {"unchanged": 1, "created": 1, "warned": 1}
    assert stored(desk, "Kim")["effective_date"] == "2026-01-01"
    spouse = person("Lee", family="F2", coverage=FAMILY_TIER.replace("FAM", "ESP"))
    only_spouse = load(desk, spouse, child(family="F2", **NO_COVER), mapping=said)
    assert only_spouse.counts == {"created": 1, "refused": 1}


NESTED = "LS*2700~LX*1~NM1*70*1*Sample*Kim~DMG*D8*20150203*F~LE*2700~"
SECOND = f"NM1*IL*1*Sample*Robin~NM1*IL*1*Sample*Alex~{HOME}DMG*D8*19780203*F~"


@ON_SQLITE
def test_what_a_loop_must_not_hold_is_reported_at_its_place(desk: Desk) -> None:
    file = load(desk, person(coverage=ADD + NESTED))
    assert desk.outcomes(file) == [(18, "refused", "nested_dependent"), (8, "created", "")]
    assert desk.codes(load(desk, person(name=SECOND))) == [("refused", "repeated_differently")]
    ended = load(desk, person(coverage=END))
    assert desk.codes(ended) == [("updated", ""), ("warned", "added_and_ended")]


PADDING = [person(f"P{n}", family=f"F{n}") for n in range(30)]


@pytest.mark.parametrize("chunk_rows", [4, 1000])
def test_loops_that_stand_apart_are_one_row_or_refused_once(desk: Desk, chunk_rows: int) -> None:
    desk.options = replace(desk.options, chunk_rows=chunk_rows)
    contradictory = load(desk, person(), *PADDING, person(home=HOME.replace("Boston", "Salem")))
    assert contradictory.counts == {"created": 30, "refused": 1}
    assert "repeated_differently" in contradictory.codes
    dental = "HD*021**DEN*Teeth~DTP*348*D8*20200101~"
    others = [person(f"P{n}", family=f"F{n}", coverage=dental) for n in range(5)]
    end = person(code="024", coverage="HD*024**HLT*Gold~DTP*349*D8*20261231~")
    later = person(coverage="HD*021**PPO*Next~DTP*348*D8*20270101~")
    file = load(desk, person(), *PADDING, end, child(home=""), *others, later, purpose="RX")
    assert file.counts == {"created": 2, "unchanged": 30, "warned": 1}
    assert (file.rows_total, file.rows_done) == (32, 32)
    robin = stored(desk, "Robin")
    found = robin["effective_date"], robin["expiry_date"], robin["medical_plan_description"]
    assert found == ("2026-01-01", None, "Next")
    assert [line["row"] for line in desk.report(file) if line["external_id"] == "FAMILY1"] == [8]
    assert stored(desk, "Kim")["city"] == "Boston"


def unnamed(desk: Desk, *members: str, **options: Any) -> EligibilityFile:
    return desk.load_834(*members, mapping={}, **options)


def accept(
    desk: Desk, file: EligibilityFile, mapping: Any = None, **options: Any
) -> EligibilityFile:
    with desk.db.write() as tx:
        accept_mapping(
            tx, FileKey(file.id, EVERY), desk.requester(), mapping=mapping or {}, **options
        )
    return desk.work(file)


KIM = child(number="REF*23*C-2~")
TONI = child("Toni", "20180506")
CARDS = [carded(), KIM, child("Toni", "20180506", number="REF*23*C-3~")]
CODED = [person(number="REF*17*01~"), child(number="REF*17*02~")]
SHARED = child("Toni", "20180506", number="REF*23*C-2~REF*SY*123456789~")
WAYS: list[tuple[str, list[str], Any]] = [
    ("a number of everybody's own", CARDS, "REF*23"),
    ("a number that two share", [carded(), KIM, SHARED], BY_FAMILY),
    ("a number that somebody lacks", [carded(), KIM, TONI], BY_FAMILY),
    ("family and person code", CODED, "REF*0F+person_code"),
    ("subscribers alone", [person(), person("Lee", family="F2")], BY_FAMILY),
    ("a family number each, of two", [person(), child(family="F2")], BY_FAMILY),
    (
        "a family number each, of many",
        [person(), *(child(family=f"F{n}") for n in range(20))],
        "REF*0F",
    ),
    ("a dependent alone", [child()], BY_FAMILY),
    (
        "categories alone with everybody",
        [person(number="REF*ZZ*A~"), child(number="REF*ZZ*B~")],
        BY_FAMILY,
    ),
    ("members with two loops", [*CARDS, CARDS[0].replace("HLT", "DEN")], "REF*23"),
]


@ON_SQLITE
@pytest.mark.parametrize(
    ("members", "way"), [each[1:] for each in WAYS], ids=[each[0] for each in WAYS]
)
def test_a_file_without_a_way_is_held_with_the_strongest(
    desk: Desk, members: list[str], way: Any
) -> None:
    file = unnamed(desk, *members)
    assert (file.state, desk.members(), file.rows_done) == ("held", {}, 0)
    assert file.problem is not None
    suggestion = file.problem["suggestion"]
    assert (file.problem["code"], suggestion["mapping"]) == (
        "needs_mapping",
        {"834": {"identify": way}},
    )
    assert suggestion["reasons"]
    assert not [
        value for value in ("C-1", "FAMILY1", "Robin", "123456789") if value in repr(suggestion)
    ]


def test_a_suggestion_has_figures_and_can_be_asked_for_before_a_file_is_loaded() -> None:
    content = file_834(carded(), KIM, SHARED).encode()
    found = {
        each.pop("reference"): each
        for each in suggest_mapping(io.BytesIO(content), today="2026-11-20")["references"]
    }
    assert found["REF*23"] == {"people": 3, "with_others": 2, "looks_like_ssn": False}
    assert (found["REF*0F"]["with_others"], found["REF*SY"]["looks_like_ssn"]) == (3, True)
    part = suggest_mapping(io.BytesIO(content[: content.index(b"Toni")]), today="2026-11-20")
    assert (part["mapping"], part["people"]) == ({"834": {"identify": "REF*23"}}, 2)


def test_a_held_file_goes_on_with_the_accepted_mapping(desk: Desk) -> None:
    dry = unnamed(desk, *CARDS, dry_run=True)
    assert (dry.state, dry.needs_mapping) == ("done", True)
    held = unnamed(desk, *CARDS)
    with pytest.raises(WrongState, match="Accept the suggested one"):
        desk.approve(held)
    with pytest.raises(Invalid):
        accept(desk, held, {"834": {"verify": "full"}})
    done = accept(
        desk, held, {"834": {"identify": "REF*0F+relationship+birth_sequence"}}, keep=False
    )
    assert done.counts == {"refused": 3}
    with desk.db.read() as tx:
        assert list_mappings(tx, desk.customer.account_id) == []
    with pytest.raises(WrongState):
        accept(desk, held)
    done = accept(desk, unnamed(desk, *CARDS))
    assert (done.state, done.counts, done.problem) == ("done", {"created": 3}, None)
    assert desk.members().keys() == {"C-1", "C-2", "C-3"}
    later = desk.load_834(*CARDS, mapping_name=None, mapping=None)
    assert later.counts == {"unchanged": 3}
