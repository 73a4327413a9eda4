"""Numbers of an 834 that are not what they look like: social security numbers, cards of a family, lists, newborns' names."""

from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.db.schema import metadata
from frontdesk.files import report_csv
from tests.files.loading import Desk
from tests.files.test_834_people import HOME, MATCHED, child, codes, load, names, person

SSN, OTHERS = "987654321", "987654322"
BORN = "20261110"
NAMED = f"34*{SSN}"


def everything(desk: Desk, *loaded: Any) -> str:
    """Every row of the database, its history left out, and every report."""
    with desk.db.read() as tx:
        tables = [table for table in metadata.sorted_tables if table.name != "member_history"]
        rows = repr([tx.execute(select(table)).fetchall() for table in tables])
    return rows + repr([desk.report(file) for file in loaded])


def family(**said: str) -> tuple[str, str, str]:
    """A subscriber whose REF*0F is the social security number, and two children; the members of one file."""
    kim = child(family=SSN, home="", name=f"34*{OTHERS}")
    return person(family=SSN, name=NAMED, **said), kim, child("Toni", "20180506", family=SSN, home="")


@pytest.mark.parametrize("number", ["", f"REF*SY*{SSN}~", f"REF*23*{SSN}~"])
def test_a_subscriber_number_that_is_the_social_security_number_stands_nowhere(
    desk: Desk, caplog: pytest.LogCaptureFixture, number: str
) -> None:
    robin, *others = family(number=number)
    files = [load(desk, robin, *others) for _ in range(2)]
    later = load(desk, child("Toni", "20180506", family=SSN, number="REF*17*03~"), purpose="2")
    newborn = load(desk, child("Kai", BORN, family=SSN, home="", sequence="2"))
    gone = load(
        desk, child("Kim", "20150203", family=SSN, code="024", coverage="HD*024**HLT~DTP*349*D8*20261031~")
    )
    assert sorted(names(desk).values()) == ["Kai", "Kim", "Robin", "Toni"]
    assert [each["expiry_date"] for each in desk.members().values() if each["first_name"] == "Kim"] == [
        "2026-10-31"
    ]
    assert codes(desk, newborn) == [("created", ""), ("warned", "address_of_subscriber")]
    said = everything(desk, *files, later, newborn, gone) + caplog.text
    assert [each in said for each in (SSN, "987-65-4321", OTHERS)] == [False, False, False]


def test_members_who_were_stored_under_the_number_are_the_same_and_lose_it(desk: Desk) -> None:
    open_family = (person(family=SSN), child(family=SSN))
    load(desk, *open_family)
    assert set(names(desk)) == {SSN, f"{SSN}-R19"}
    file = load(desk, *family()[:2], purpose="RX")
    assert file.counts["updated"] == 2
    assert len(desk.members()) == 2
    assert SSN not in repr(desk.members())


def test_a_file_that_does_not_show_that_it_is_such_a_number_means_the_same_people(desk: Desk) -> None:
    load(desk, *family())
    before = set(desk.members())
    file = load(
        desk,
        person(family=SSN),
        child(family=SSN, home=""),
        child("Toni", "20180506", family=SSN),
        purpose="RX",
    )
    assert set(desk.members()) == before
    assert file.counts.get("ended") is None
    end = load(
        desk,
        person(family=SSN, code="024", coverage="HD*024**HLT~DTP*349*D8*20261031~").replace(
            "DMG*D8*19770111*F~", ""
        ),
    )
    assert file.counts["unchanged"] + file.counts.get("updated", 0) == 3
    assert end.counts["ended"] == 1
    assert SSN not in everything(desk, end)


def test_a_card_number_of_nine_digits_stays_as_it_is(desk: Desk) -> None:
    load(desk, person(family="123123123", name=NAMED), child(family="123123123", name=f"34*{OTHERS}"))
    load(desk, child("Toni", "20180506", family="123123123", sequence="2", home=""))
    assert set(desk.members()) == {"123123123", "123123123-R19", "123123123-B2"}


def test_the_mapping_may_say_that_the_number_is_plain(desk: Desk) -> None:
    load(desk, *family(), mapping={"834": {"ssn": "plain"}})
    assert SSN in desk.members() or OTHERS in desk.members()


REFUSED_NUMBERS = {
    "family": child(family=SSN, home=""),
    "family with hyphens": child(family="987-65-4321", home=""),
    "birth sequence": child(family=SSN, home="", sequence="2"),
    "unknown code": child(family=SSN, code="099"),
    "own number": child(number=f"REF*23*{SSN}~", home=""),
    "name": child(name=f"MI*{SSN}", home=""),
    "behind a subscriber": child(family=SSN, home="", coverage="").replace("Sample", "Doe"),
    "end": child(family=SSN, code="024"),
    "broken birth": person(family=SSN).replace("19770111", "1977"),
}


@pytest.mark.parametrize(
    "options", [{}, {"dry_run": True}, {"mapping": {"external_id": "REF*0F+person_code"}}]
)
def test_no_report_shows_a_number_that_looks_like_a_social_security_number_of_a_refused_row(
    desk: Desk, caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    if "mapping" in options:
        members = [each.replace("NM1*IL", "REF*17*1~NM1*IL") for each in REFUSED_NUMBERS.values()]
    else:
        members = [*REFUSED_NUMBERS.values()]
    for member in members:
        noor = person("Noor", "19900506", family="R1000Z", number="REF*17*1~").replace("Sample", "Doe")
        file = load(desk, noor, member, **options)
        report = desk.report(file)
        assert "refused" in {line["outcome"] for line in report}
        table = b"".join(report_csv(desk.db, file.id)).decode()
        said = everything(desk, file) + table + caplog.text + repr(file)
        assert [each in said for each in (SSN, "987-65-4321")] == [False, False]


def test_a_refused_row_shows_a_number_that_the_mapping_calls_plain(desk: Desk) -> None:
    file = load(desk, child(family=SSN, home=""), mapping={"834": {"ssn": "plain"}})
    assert [line["external_id"] for line in desk.report(file)] == [f"{SSN}-R19"]


CARD = "MI*CARD77001"


@pytest.mark.parametrize(
    "number", [{"name": CARD}, {"number": "REF*23*CARD77001~"}, {"number": "REF*ZZ*CARD77001~"}]
)
def test_a_card_number_of_the_whole_family_makes_nobody_someone_else(
    desk: Desk, number: dict[str, str]
) -> None:
    twins = [
        child(name, born, sequence=at, home="", **number)
        for name, born, at in (("Kim", BORN, "1"), ("Kai", BORN, "2"))
    ]
    everyone = [person(**number), person("Alex", "19780203", relation="01", home="", **number), *twins]
    assert load(desk, *everyone).counts["created"] == 4
    assert sorted(names(desk).values()) == ["Alex", "Kai", "Kim", "Robin"]
    assert load(desk, *everyone, purpose="RX").counts["unchanged"] == 4
    alone = load(
        desk, person("Alex", "19780203", relation="01", home=HOME.replace("Boston", "Salem"), **number)
    )
    assert alone.counts["updated"] == 1
    junior = load(desk, child("Robin", "20180506", **number))
    assert junior.counts["created"] == 1
    assert {(each["first_name"], each["dob"], each["city"]) for each in desk.members().values()} == {
        ("Robin", "1977-01-11", "Boston"), ("Alex", "1978-02-03", "Salem"), ("Kim", "2026-11-10", "Boston"),
        ("Kai", "2026-11-10", "Boston"), ("Robin", "2018-05-06", "Boston"),
    }  # fmt: skip


def test_a_number_that_a_whole_group_carries_makes_nobody_someone_else(desk: Desk) -> None:
    people = [person(name, born, number="REF*23*PLAN0004~", family=f"F{born}") for name, born in (
        ("Robin", "19770111"), ("Alex", "19780203"), ("Robin", "19900506"))]  # fmt: skip
    assert load(desk, *people).counts == {"created": 3, "warned": 1}
    assert load(desk, *reversed(people), purpose="RX").counts["unchanged"] == 3
    assert sorted(names(desk).values()) == ["Alex", "Robin", "Robin"]


def test_a_dependents_end_under_the_familys_card_does_not_end_the_subscriber(desk: Desk) -> None:
    load(desk, person(name=CARD), child(name=CARD))
    end = child("Kai", code="024", coverage="HD*024**HLT~DTP*349*D8*20261031~", name=CARD)
    file = load(desk, end.replace("DMG*D8*20150203*F~", ""))
    assert codes(desk, file) == [("refused", "identity_ambiguous")]
    assert {each["expiry_date"] for each in desk.members().values()} == {None}


@pytest.mark.parametrize("given", ["7;20220201;", "04|99999990|A", "E  1F", "REF 23"])
def test_lists_and_words_are_no_identifiers(desk: Desk, given: str) -> None:
    load(desk, person(number=f"REF*23*{given}~"), person("Alex", family="F2", number=f"REF*23*{given}~"))
    assert set(desk.members()) == {"FAMILY1", "F2"}


def test_the_code_of_the_plan_is_no_identifier(desk: Desk) -> None:
    plan = person(number="REF*23*PPO0500~", coverage="HD*021**HLT*PPO0500~DTP*348*D8*20260101~")
    load(desk, plan)
    assert set(desk.members()) == {"FAMILY1"}


@pytest.mark.parametrize(("called", "number"), [("BABY BOY", ""), ("BG", "REF*23*W900000001~")])
def test_a_newborn_without_a_name_is_the_child_that_has_one_later(
    desk: Desk, called: str, number: str
) -> None:
    load(desk, person(), child(called, BORN))
    assert codes(desk, load(desk, child("Kim", BORN, number=number))) == MATCHED
    assert sorted(names(desk).values()) == ["Kim", "Robin"]
    full = load(desk, person(), child(called, BORN), purpose="RX")
    assert full.counts == {"unchanged": 2, "warned": 1}
    assert sorted(names(desk).values()) == ["Kim", "Robin"]


def test_twins_without_names_are_two_and_a_name_alone_does_not_tell_them_apart(desk: Desk) -> None:
    born = [child("Baby", BORN, sequence=at) for at in "12"]
    assert load(desk, person(), *born).counts == {"created": 3}
    assert load(desk, *born).counts == {"unchanged": 2}
    assert codes(desk, load(desk, child("Kim", BORN, number="REF*23*W900000001~"))) == [
        ("refused", "identity_ambiguous")
    ]
    assert codes(desk, load(desk, child("Kim", BORN, sequence="1"))) == [("updated", "")]
    assert codes(desk, load(desk, child("Kai", BORN, number="REF*23*W900000002~"))) == MATCHED
    assert sorted(names(desk).values()) == ["Kai", "Kim", "Robin"]


def test_two_names_in_one_loop_refuse_it(desk: Desk) -> None:
    second = f"NM1*IL*1*Sample*Alex~{HOME}DMG*D8*19780203*F~"
    file = load(desk, person(coverage=second))
    assert codes(desk, file) == [("refused", "repeated_differently")]
