"""Which descriptions are of one person: the table of docs/834.md (The person check), cell by cell."""

from datetime import date
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.eligibility.model import StatedPerson
from frontdesk.eligibility.same_person import compare_people, spellings

KIM = StatedPerson("Kimberly", "Sample", "2014-03-09", "female", "Dependent", "family-1")
OTHERS = {"last_name": "Doe", "gender": "male", "role": "Primary", "family": "family-2"}
FIRST_NAMES = {"equal": "KIMBERLY", "close": "Kim", "absent": "", "different": "Bobbie"}
DOBS = {"equal": "2014-03-09", "close": "2014-03-19", "absent": "", "different": "1950-01-02"}
ANYTHING = frozenset(OTHERS)
# What must not differ, or None for another person; as the page has it.
TABLE: dict[tuple[str, str], frozenset[str] | None] = {
    ("equal", "equal"): frozenset(),
    ("equal", "close"): ANYTHING,
    ("equal", "absent"): frozenset(("gender", "role", "family")),
    ("equal", "different"): None,
    ("close", "equal"): frozenset(("gender",)),
    ("close", "close"): ANYTHING,
    ("close", "absent"): frozenset(("gender", "role", "family")),
    ("close", "different"): None,
    ("absent", "equal"): frozenset(("gender", "family")),
    ("absent", "close"): None,
    ("absent", "absent"): frozenset(("role", "family")),
    ("absent", "different"): None,
    ("different", "equal"): ANYTHING,
    ("different", "close"): None,
    ("different", "absent"): None,
    ("different", "different"): None,
}


def is_same(one: StatedPerson, other: StatedPerson = KIM) -> bool:
    return compare_people(one, other).is_same


@pytest.mark.parametrize(("names", "dobs"), [*product(FIRST_NAMES, DOBS)])
def test_each_cell_of_the_table(names: str, dobs: str) -> None:
    same_unless = TABLE[names, dobs]
    row = KIM._replace(first_name=FIRST_NAMES[names], dob=DOBS[dobs])
    assert is_same(row) is (same_unless is not None)
    for field, value in OTHERS.items():
        differing = row._replace(**{field: value})
        assert is_same(differing) is (same_unless is not None and field not in same_unless), field
        lacking = row._replace(**{field: ""})
        assert is_same(lacking) is (same_unless is not None), field
    is_certain = same_unless is not None and same_unless != ANYTHING
    assert compare_people(row, KIM).is_certain is is_certain


NAMES = [
    ("José", "JOSE"),
    ("Muñoz", "MUNOZ"),
    ("O'Neil-Smith", "oneil smith"),
    ("Strauß", "STRAUSS"),
    ("Łukasz", "Lukasz"),
    ("Sørensen", "Sorensen"),
    ("Sørensen", "Soerensen"),
    ("Bjørn", "Bjorn"),
    ("Kjær", "KJAER"),
    ("Cœur", "Coeur"),
    ("Müller", "Mueller"),
    ("Müller", "Muller"),
    ("Mu\u0308ller", "MUELLER"),
    ("Jörg", "Joerg"),
    ("Käthe", "Kaethe"),
    ("Åse", "Aase"),
    ("Ka\u02bbiulani", "Kaiulani"),
    ("Nguyễn", "NGUYEN"),
]


@pytest.mark.parametrize(("one", "other"), NAMES)
def test_a_name_is_the_same_however_it_is_spelt(one: str, other: str) -> None:
    assert is_same(KIM._replace(first_name=one, dob=""), KIM._replace(first_name=other))
    row = KIM._replace(last_name=one, dob=DOBS["close"])
    assert is_same(row, KIM._replace(last_name=other))


@pytest.mark.parametrize(("one", "other"), [("Muller", "Miller"), ("राम", "रमा"), ("Ana", "Ane")])
def test_other_letters_make_another_name(one: str, other: str) -> None:
    assert spellings(one).isdisjoint(spellings(other))


SUFFIXES = [
    ("Smith Jr", "Smith", True),
    ("Smith, Jr.", "SMITH JUNIOR", True),
    ("Smith Jr", "Smith Sr", False),
    ("Smith II", "Smith III", False),
    ("Smith II", "Smith 2nd", True),
]


@pytest.mark.parametrize(("one", "other", "agree"), SUFFIXES)
def test_a_junior_differs_from_a_senior_only(one: str, other: str, agree: bool) -> None:
    for dob in ("", DOBS["close"]):
        assert is_same(KIM._replace(last_name=one, dob=dob), KIM._replace(last_name=other)) is agree


@pytest.mark.parametrize("name", ["K", "k.", "Baby Boy", "BABYGIRL", "Newborn", "Infant"])
def test_an_initial_or_a_placeholder_is_no_first_name(name: str) -> None:
    row = KIM._replace(first_name=name)
    assert is_same(row)
    assert not is_same(row._replace(gender="male"))
    assert not is_same(row._replace(dob=DOBS["close"])), "one side has no name"
    assert is_same(row._replace(dob=DOBS["close"]), row), "both are equal"


def test_one_sign_of_another_script_is_a_first_name() -> None:
    assert not is_same(KIM._replace(first_name="伟", dob=""), KIM._replace(first_name="芳"))


DATES = [
    ("2014-09-03", True),  # day and month exchanged
    ("2013-03-09", True),
    ("2014-04-09", True),
    ("2014-03-29", True),
    ("2014-03-08", True),
    ("2013-04-09", False),
    ("2013-09-03", False),
]


@pytest.mark.parametrize(("dob", "agrees"), DATES)
def test_a_birth_date_may_differ_in_one_part(dob: str, agrees: bool) -> None:
    assert is_same(KIM._replace(dob=dob)) is agrees


def test_a_shift_by_one_day_may_cross_a_month() -> None:
    assert is_same(KIM._replace(dob="2014-02-28"), KIM._replace(dob="2014-03-01"))
    assert is_same(KIM._replace(dob="2013-12-31"), KIM._replace(dob="2014-01-01"))


@pytest.mark.parametrize("dob", ["2014-02-30", "0000-00-00", "20140309", "2014-03-0x"])
def test_a_text_that_is_no_date_says_nothing(dob: str) -> None:
    assert is_same(KIM._replace(dob=dob))
    assert not is_same(KIM._replace(dob=dob, first_name="Bobbie"))


def test_only_male_and_female_are_two_sexes() -> None:
    for gender in ("unknown", "non-binary", ""):
        assert is_same(KIM._replace(dob=DOBS["close"], gender=gender))


def test_a_correction_fits_by_its_new_or_its_former_values() -> None:
    corrected = StatedPerson("Kym", "Doe", "1950-01-02", "male", "Dependent", "family-1")
    assert not is_same(corrected)
    former = corrected._replace(
        former_first_name="Kimberly",
        former_last_name="Sample",
        former_dob="2014-03-09",
        former_gender="female",
    )
    assert is_same(former)
    assert is_same(KIM, former)
    assert is_same(former, corrected)
    assert not is_same(former._replace(former_first_name="Bobbie", former_dob="2001-01-01"))


def test_another_birth_sequence_is_another_person() -> None:
    first = KIM._replace(sequence="1")
    assert is_same(first)
    assert not is_same(first, KIM._replace(sequence="2"))


def some(*values: str) -> Any:
    return st.sampled_from(["", *values])


PEOPLE = st.builds(
    StatedPerson,
    first_name=some("Kim", "Kimberly", "K", "Baby Boy", "Jörg", "Joerg", "John Jr") | st.text(),
    last_name=some("Sample", "Sample Jr", "Sample Sr", "Müller", "MUELLER") | st.text(),
    dob=some("2014-03-09", "2014-09-03", "1950-01-02")
    | st.dates(min_value=date(1900, 1, 1)).map(str),
    gender=some("male", "female", "unknown"),
    role=some("Primary", "Dependent"),
    family=some("family-1", "family-2"),
    sequence=some("1", "2"),
    former_first_name=some("Kim", "Bobbie"),
    former_dob=some("2014-03-09"),
)


@given(PEOPLE, PEOPLE)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_order_of_the_two_does_not_matter(one: StatedPerson, other: StatedPerson) -> None:
    assert compare_people(one, other) == compare_people(other, one)


@given(PEOPLE)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_everybody_is_certainly_the_same_as_themselves(person: StatedPerson) -> None:
    assert compare_people(person, person).is_certain


@given(PEOPLE, PEOPLE)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_what_one_side_lacks_of_the_rest_never_makes_two_people(
    one: StatedPerson, other: StatedPerson
) -> None:
    if compare_people(one, other).is_same:
        for field in ("gender", "role", "family", "sequence"):
            assert is_same(one._replace(**{field: ""}), other), field
