"""Dependents of an 834 with a REF*0F of their own and no address: the subscriber before them may be theirs (docs/834.md)."""

import pytest

from tests.files.loading import Desk
from tests.files.readers.reading import file_834, interchange, rows_of, transaction
from tests.files.test_834_people import codes, load, person

FAMILY_TIER = "HD*021**HLT*Gold*FAM~DTP*348*D8*20260101~"
TAKEN = [("created", ""), ("warned", "address_of_subscriber")]
REFUSED = [("refused", "required")]


def dependent(last: str = "Sample", family: str = "K7700A", **said: str) -> str:
    made = person("Kim", "20150203", relation="19", family=family, home="", **said)
    return made.replace("*Sample*", f"*{last}*")


def subscriber(family: str = "R1000Z", **said: str) -> str:
    return person(family=family, **said)


RELATED = {
    "name": (subscriber(), dependent()),
    "part of a name": (subscriber(), dependent("Doe-Sample")),
    "number of the subscriber": (subscriber(), dependent("Doe", number="REF*3H*R1000Z~")),
    "social security number": (subscriber(name="34*987654321"), dependent("Doe", number="REF*SY*987654321~")),
    "numbers that count": (subscriber("W100001"), dependent("Doe", "W100002")),
    "no number of a family": (subscriber(), dependent(family="", number="REF*23*W900000002~")),
}


def test_a_new_dependent_lives_with_the_subscriber_before_it(desk: Desk) -> None:
    file = load(desk, *RELATED["name"])
    assert codes(desk, file) == [("created", ""), *TAKEN]
    assert {each["zipcode"] for each in desk.members().values()} == {"02134"}
    assert codes(desk, load(desk, *RELATED["name"])) == [("unchanged", "")] * 2


@pytest.mark.parametrize("name", RELATED)
def test_what_a_dependent_has_in_common_with_its_subscriber(name: str) -> None:
    _, row = rows_of(file_834(*RELATED[name]))
    assert (row.values_of_new or {}).get("zipcode") == "02134"
    assert "zipcode" not in row.values


@pytest.mark.parametrize(
    "before",
    [
        subscriber(),
        subscriber(coverage=FAMILY_TIER),
        subscriber().replace("02134", "K1A 0B1"),
        subscriber(home=""),
        person("Alex", "19780203", relation="01", family="R1000Z").replace("*Sample*", "*Doe*"),
    ],
    ids=["nothing in common", "a plan in common", "no zip that can be used", "no address", "no subscriber"],
)
def test_nothing_is_guessed_without_a_sign(desk: Desk, before: str) -> None:
    assert codes(desk, load(desk, before, dependent("Muster", coverage=FAMILY_TIER)))[-1:] == REFUSED


def test_the_subscriber_of_another_transaction_is_not_meant(desk: Desk) -> None:
    content = interchange(transaction(subscriber()), transaction(dependent(), control="0002"))
    assert codes(desk, desk.load(content.encode())) == [("created", ""), *REFUSED]


def test_a_subscriber_that_a_change_file_names_without_its_address_is_the_stored_one(desk: Desk) -> None:
    load(desk, subscriber())
    assert codes(desk, load(desk, subscriber(home=""), dependent())) == [("unchanged", ""), *TAKEN]
    assert [each["city"] for each in desk.members().values()] == ["Boston", "Boston"]


def test_a_stored_dependent_keeps_its_address_and_its_own_family_goes_first(desk: Desk) -> None:
    salem = "N3*1 Example Street~N4*Salem*MA*01970~"
    load(desk, subscriber("K7700A", home=salem).replace("Robin", "Noor"), subscriber())
    assert codes(desk, load(desk, subscriber(), dependent())) == [("unchanged", ""), *TAKEN]
    load(desk, subscriber(home=salem.replace("Salem", "Lynn")), dependent())
    assert {each["first_name"]: each["city"] for each in desk.members().values()} == {
        "Noor": "Salem", "Robin": "Lynn", "Kim": "Salem",
    }  # fmt: skip


def test_a_dependent_with_loops_apart_lives_with_the_subscriber_before_its_first(desk: Desk) -> None:
    dental = "HD*021**DEN*Teeth~DTP*348*D8*20260101~"
    other = person("Lee", "19800203", family="F9", home="N4*Salem*MA*01970~").replace("*Sample*", "*Doe*")
    loops = (subscriber(), dependent(), other, dependent("Doe", coverage=dental).replace("Doe", "Sample"))
    file = load(desk, *loops)
    assert file.counts == {"created": 3, "warned": 1}
    assert {each["first_name"]: each["city"] for each in desk.members().values()}["Kim"] == "Boston"
