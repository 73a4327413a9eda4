"""One person, one record, whatever an 834 calls it: families, numbers that come later, loops that stand apart (docs/834.md)."""

import gzip
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.files import rows
from frontdesk.files.model import EligibilityFile, FileMode
from tests.factories import make_customer
from tests.files.loading import Desk
from tests.files.readers.reading import file_834

HOME = "N3*1 Example Street~N4*Boston*MA*02134~"
ADD = "HD*021**HLT*Gold~DTP*348*D8*20260101~"
CARD = "REF*23*W900000001~"
SSN = "987654321"


def person(first: str = "Robin", born: str = "19770111", **said: str) -> str:
    """An INS loop: relation (INS02), code (INS03), sequence (INS17), family (REF*0F), number (references), name (NM108 and
    NM109), home (N3 and N4), coverage."""
    relation = said.get("relation", "18")
    sequence = f"{'*' * 12}{said['sequence']}" if "sequence" in said else ""
    name = f"****{said['name']}" if "name" in said else ""
    return (
        f"INS*{'Y' if relation == '18' else 'N'}*{relation}*{said.get('code', '021')}*28*A{sequence}~"
        f"REF*0F*{said.get('family', 'FAMILY1')}~{said.get('number', '')}NM1*IL*1*Sample*{first}{name}~"
        f"{said.get('home', HOME)}DMG*D8*{born}*F~{said.get('coverage', ADD)}"
    )


def child(first: str = "Kim", born: str = "20150203", **said: str) -> str:
    return person(first, born, relation="19", **said)


def load(
    desk: Desk, *members: str, purpose: str = "2", mapping: dict[str, Any] | None = None, **options: Any
) -> EligibilityFile:
    return desk.load(file_834(*members, purpose=purpose).encode(), mapping=mapping, **options)


def codes(desk: Desk, file: EligibilityFile) -> list[tuple[str, str]]:
    return [(line["outcome"], line["code"]) for line in desk.report(file)]


def names(desk: Desk) -> dict[str, str]:
    return {key: stored["first_name"] for key, stored in desk.members().items()}


MATCHED = [("updated", ""), ("warned", "identity_matched")]


@pytest.mark.parametrize("born_as", [child(), child(sequence="1"), child(number="REF*17*02~")])
def test_a_newborn_who_gets_a_number_later_is_the_same_person(desk: Desk, born_as: str) -> None:
    load(desk, person(), born_as)
    file = load(desk, child("KIM", number=CARD))
    assert codes(desk, file) == MATCHED
    assert names(desk) == {"FAMILY1": "Robin", "W900000001": "KIM"}
    assert desk.members()["W900000001"]["member_id"] == "W900000001"
    assert codes(desk, load(desk, child("KIM", number=CARD))) == [("unchanged", "")]
    desk.undo(file)
    assert set(names(desk)) == {"FAMILY1", *(names(desk).keys() - {"FAMILY1", "W900000001"})}
    assert len(names(desk)) == 2


def test_a_file_that_omits_the_number_means_the_same_person_and_keeps_it(desk: Desk) -> None:
    load(desk, person(), child(number=CARD))
    city = child(home=HOME.replace("Boston", "Salem"))
    assert codes(desk, load(desk, city)) == MATCHED
    ended = child(code="024", coverage="HD*024**HLT~DTP*349*D8*20261031~")
    assert codes(desk, load(desk, ended)) == [("ended", ""), ("warned", "identity_matched")]
    stored = desk.members()["W900000001"]
    assert (stored["city"], stored["expiry_date"], stored["member_id"]) == (
        "Salem",
        "2026-10-31",
        "W900000001",
    )
    assert len(desk.members()) == 2


def test_a_full_file_ends_nobody_whom_it_calls_otherwise(desk: Desk) -> None:
    load(desk, person(), child(number=CARD), child("Toni", "20180506"))
    full = load(desk, person(), child(), child("Toni", "20180506", number="REF*23*W900000002~"), purpose="RX")
    assert full.counts == {"unchanged": 2, "updated": 1, "warned": 2}
    again = load(desk, person(), child(), child("Toni", "20180506"), purpose="RX")
    assert again.counts == {"unchanged": 3, "warned": 2}
    gone = load(desk, person(), child(), purpose="RX")
    assert gone.counts == {"unchanged": 2, "ended": 1, "warned": 1}
    assert desk.members()["W900000002"]["expiry_date"] == "2026-11-20"


def test_two_numbers_are_two_persons(desk: Desk) -> None:
    load(desk, person(), child(number=CARD))
    file = load(desk, child(number="REF*23*W900000002~"))
    assert codes(desk, file) == [("created", "")]
    assert codes(desk, load(desk, child())) == [("refused", "identity_ambiguous")]


@pytest.mark.parametrize("files", [1, 2])
def test_children_that_only_their_names_tell_apart_are_all_stored(desk: Desk, files: int) -> None:
    kim, toni = child(), child("Toni", "20180506")
    loads = [[person(), kim, toni]] if files == 1 else [[person(), kim], [toni]]
    for members in loads:
        assert {line["outcome"] for line in desk.report(load(desk, *members))} == {"created"}
    assert sorted(names(desk).values()) == ["Kim", "Robin", "Toni"]
    again = load(desk, person(), toni, kim, purpose="RX")
    assert {line["outcome"] for line in desk.report(again)} <= {"unchanged", "warned"}
    assert load(desk, toni.replace("Boston", "Salem")).counts["updated"] == 1
    assert {each["first_name"]: each["city"] for each in desk.members().values()} == {
        "Robin": "Boston", "Kim": "Boston", "Toni": "Salem",
    }  # fmt: skip


def test_a_name_or_a_birth_date_that_agrees_in_part_is_refused(desk: Desk) -> None:
    load(desk, person(), child())
    for other in (child("Toni"), child(born="20150204"), child("Toni", code="024", coverage="")):
        assert codes(desk, load(desk, other)) == [("refused", "identity_ambiguous")]
    assert desk.members()["FAMILY1-R19"]["expiry_date"] is None


def test_a_category_in_the_place_of_a_number_never_makes_one_person_of_two(desk: Desk) -> None:
    people = [
        person(name, born, number="REF*17*DIV0001~", family=f"F{born}")
        for name, born in (("Robin", "19770111"), ("Alex", "19780203"), ("Kim", "19900506"))
    ]
    load(desk, *people[:2])
    moved = load(desk, people[1].replace("Boston", "Salem"), people[2])
    assert moved.counts == {"updated": 1, "created": 1}
    assert {each["first_name"]: each["city"] for each in desk.members().values()} == {
        "Robin": "Boston", "Alex": "Salem", "Kim": "Boston",
    }  # fmt: skip
    full = load(desk, people[2], people[0], purpose="RX")
    assert (full.counts["unchanged"], full.counts["ended"], full.counts.get("created")) == (2, 1, None)


def test_families_of_two_accounts_never_meet(desk: Desk) -> None:
    load(desk, person(), child())
    other = Desk(desk.db, make_customer(desk.db), desk.clock)
    assert codes(other, load(other, child(number=CARD))) == [("created", "")]
    assert len(desk.members()) == 3


def test_the_stored_subscriber_with_a_number_of_its_own_gives_its_address(desk: Desk) -> None:
    load(desk, person(number="REF*23*W900000009~"))
    file = load(desk, child(home="", number=CARD))
    assert codes(desk, file) == [("created", ""), ("warned", "address_of_subscriber")]
    assert desk.members()["W900000001"]["city"] == "Boston"


def test_members_of_before_are_found_by_the_keys_that_they_had(desk: Desk) -> None:
    load(desk, person(number="REF*17*01~"), child(number="REF*17*02~"))
    with desk.db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET family_digest = NULL, row_digest = NULL")
    file = load(desk, child(number=f"REF*17*02~{CARD}"))
    assert codes(desk, file) == MATCHED
    assert set(names(desk)) == {"FAMILY1-01", "W900000001"}


DENTAL = "HD*021**DEN*Teeth~DTP*348*D8*20200101~"
NEXT = "HD*021**PPO*Next~DTP*348*D8*20270101~"
PADDING = [person(f"P{n}", family=f"F{n}") for n in range(30)]


@pytest.mark.parametrize("chunk_rows", [4, 1000])
def test_loops_that_stand_apart_are_one_row(desk: Desk, chunk_rows: int) -> None:
    desk.options = replace(desk.options, chunk_rows=chunk_rows)
    others = [person(f"P{n}", family=f"F{n}", coverage=DENTAL) for n in range(5)]
    end = person(code="024", coverage="HD*024**HLT*Gold~DTP*349*D8*20261231~")
    file = load(desk, person(), *PADDING, end, child(home=""), *others, person(coverage=NEXT), purpose="RX")
    assert file.counts == {"created": 32, "warned": 1}
    assert (file.rows_total, file.rows_done) == (32, 32)
    stored = desk.members()["FAMILY1"]
    assert (stored["effective_date"], stored["expiry_date"], stored["medical_plan_description"]) == (
        "2026-01-01", None, "Next",
    )  # fmt: skip
    assert [line["row"] for line in desk.report(file) if line["external_id"] == "FAMILY1"] == [8]
    assert desk.members()["FAMILY1-R19"]["city"] == "Boston"


def test_loops_apart_that_contradict_each_other_are_refused_once(desk: Desk) -> None:
    file = load(desk, person(), *PADDING, person(home=HOME.replace("Boston", "Salem")))
    assert file.counts == {"created": 30, "refused": 1}
    assert [line["code"] for line in desk.report(file) if line["outcome"] == "refused"] == [
        "repeated_differently"
    ]


def test_a_file_with_loops_apart_goes_on_after_a_kill(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [*PADDING, *(person(f"P{n}", family=f"F{n}", coverage=DENTAL) for n in range(30))]
    desk.options = replace(desk.options, chunk_rows=7)
    file = desk.hand_in(file_834(*members).encode())
    parsed = rows.parse_rows
    stops = iter([True, False])

    def broken(*given: Any, **options: Any) -> Any:
        for number, chunk in enumerate(parsed(*given, **options)):
            if number == 2 and next(stops, False):
                raise KeyboardInterrupt
            yield chunk

    monkeypatch.setattr("frontdesk.files.load.parse_rows", broken)
    with pytest.raises(KeyboardInterrupt):
        desk.try_to_work(file, lease_seconds=0)
    desk.try_to_work(file, lease_seconds=15)
    done = desk.reread(file)
    assert (done.state, done.counts) == ("done", {"created": 30})


KEPT_SSN = [({}, False), ({"834": {"ssn": "hashed"}}, False), ({"834": {"ssn": "plain"}}, True)]


@pytest.mark.parametrize(("mapping", "stands"), KEPT_SSN)
def test_a_social_security_number_stands_nowhere_unless_the_mapping_says_plain(
    desk: Desk, caplog: pytest.LogCaptureFixture, mapping: dict[str, Any], stands: bool
) -> None:
    content = file_834(person(name=f"34*{SSN}"), child(home="", name="34*987-65-4322"))
    files = [desk.load(gzip.compress(content.encode()), mapping=mapping) for _ in range(2)]
    said = repr([desk.report(file) for file in files]) + caplog.text + _every_row(desk.db)
    assert [number in said for number in (SSN, "987-65-4322", "987654322")] == [stands, stands, False]
    assert len(desk.members()) == 2


def test_a_hashed_number_is_the_same_in_every_file_and_hides_a_family_named_by_one(desk: Desk) -> None:
    hashed = {"834": {"ssn": "hashed"}}
    load(desk, person(name=f"34*{SSN}", family=SSN), child(family=SSN, sequence="1"), mapping=hashed)
    file = load(desk, person(name="34*987-65-4321", family=SSN), mapping=hashed)
    assert codes(desk, file) == [("unchanged", "")]
    assert all(key.startswith("ssn1-") for key in desk.members())
    assert SSN not in _every_row(desk.db)


@pytest.mark.parametrize("ssn", ["plain", "hashed"])
def test_a_stored_card_number_is_not_replaced_by_a_social_security_number(desk: Desk, ssn: str) -> None:
    card = {"external_id": "REF*0F+REF*17", "member_id": "REF*23"}
    load(desk, person(number=f"REF*17*01~{CARD}"), mapping=card)
    numbered = {"external_id": "REF*0F+REF*17", "member_id": "NM109", "834": {"ssn": ssn}}
    load(desk, person(number="REF*17*01~", name=f"34*{SSN}"), mapping=numbered)
    assert desk.members()["FAMILY1-01"]["member_id"] == "W900000001"
    load(desk, person(number="REF*17*01~", name=f"34*{SSN}", family="F2"), mapping=numbered)
    assert desk.members()["F2-01"]["member_id"] != "W900000001"


def _every_row(db: Database) -> str:
    with db.read() as tx:
        return repr([tx.execute(select(table)).fetchall() for table in metadata.sorted_tables])


def test_the_mode_of_a_full_file_counts_for_people_too(desk: Desk) -> None:
    load(desk, person(), child(number=CARD))
    file = load(desk, person(), child(), mode=FileMode.FULL)
    assert file.counts == {"unchanged": 2, "warned": 1}
