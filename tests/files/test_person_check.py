"""Sequences of files in which a row may be about another person than the member with its number
(docs/834.md, The person check).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.eligibility.store import find_similar
from frontdesk.files.model import EligibilityFile
from tests.files.loading import ON_SQLITE, Desk, as_in_a_real_run, csv_of, lines_of, row
from tests.formats.reading import person

BY_CARD = {"834": {"identify": "REF*23"}}
END = "HD*024**HLT~DTP*349*D8*20261031~"
CONFLICT = [("refused", "identity_conflict")]
SEXES = {"male": "M", "female": "F"}
Rows = Sequence[dict[str, Any]]
PEOPLE = [
    row(1, first_name="Ana", last_name="Reyes", dob="1971-02-03"),
    row(2, first_name="Bela", last_name="Ngata", dob="1982-05-16", gender="male"),
    row(3, first_name="Chidi", last_name="Okafor", dob="1993-07-28", gender="male"),
    row(4, first_name="Dora", last_name="Lind", dob="1964-11-09"),
    row(5, first_name="Emre", last_name="Kaya", dob="2005-09-21", gender="male"),
]


def loop(said: dict[str, Any], code: str = "021", **more: str) -> str:
    """An INS loop that says the same as the row of a table."""
    found = person(
        said["first_name"],
        said["dob"].replace("-", ""),
        last=said["last_name"],
        number=f"REF*23*{said['external_id']}~",
        family=more.pop("family", said["external_id"]),
        code=code,
        **more,
    )
    return found.replace("*F~", f"*{SEXES[said['gender']]}~")


def load_csv(desk: Desk, rows: Rows, **options: Any) -> EligibilityFile:
    columns = {name: None for each in rows for name in each}
    return desk.load(csv_of(rows, columns), **options)


def load_json(desk: Desk, rows: Rows, **options: Any) -> EligibilityFile:
    return desk.load(lines_of(rows), **options)


def load_834(desk: Desk, rows: Rows, **options: Any) -> EligibilityFile:
    return desk.load_834(*map(loop, rows), mapping=BY_CARD, **options)


DOORS = [load_csv, load_json, load_834]
Door = Callable[..., EligibilityFile]


def shifted(names: Sequence[str]) -> list[dict[str, Any]]:
    """The people with these columns of the next of them."""
    after = [*PEOPLE[1:], PEOPLE[0]]
    pairs = zip(PEOPLE, after, strict=True)
    return [each | {name: other[name] for name in names} for each, other in pairs]


@pytest.mark.parametrize("load", DOORS)
@pytest.mark.parametrize(
    "columns", [("first_name", "last_name", "dob", "gender"), ("first_name", "last_name")]
)
def test_a_column_that_was_sorted_alone_overwrites_nobody(
    desk: Desk, load: Door, columns: Sequence[str]
) -> None:
    load(desk, PEOPLE)
    before = desk.members()
    rows = shifted(columns)
    dry = load(desk, rows, dry_run=True)
    held = load(desk, rows)
    assert held.problem == dry.problem
    assert (held.problem or {})["code"] == "too_many_other_people"
    assert desk.codes(held) == [("would_be_other", "identity_conflict")] * len(PEOPLE)
    report = desk.report(dry)
    assert report[len(PEOPLE) :] == desk.report(held)
    file = desk.approve(held)
    assert desk.codes(file) == CONFLICT * len(PEOPLE)
    assert desk.members() == before
    assert as_in_a_real_run(report[: len(PEOPLE)]) == as_in_a_real_run(desk.report(file))


@pytest.mark.parametrize("load", DOORS)
def test_two_employers_with_the_same_numbers_stay_apart(desk: Desk, load: Door) -> None:
    load(desk, PEOPLE)
    before = desk.members()
    others = [
        row(n, first_name=name, last_name="Moore", dob=f"19{60 + 3 * n}-0{n}-1{n}")
        for n, name in enumerate(("Gia", "Hana", "Ida", "June"), 1)
    ]
    file = load(desk, others, plan=1)
    assert desk.codes(file) == CONFLICT * 4
    assert desk.members() == before


GABRIELA = row(1, first_name="Gabriela", last_name="Ortiz", dob="2014-03-02")
GABRIEL = GABRIELA | {"first_name": "Gabriel", "dob": "2010-03-02", "gender": "male"}
LEFT: dict[str, Any] = {"end": [{"column": "status", "equals": "left"}]}


@pytest.mark.parametrize("dob", ["2010-03-02", "2010-06-07", "2014-03-02"])
def test_an_end_for_gabriel_does_not_end_gabriela(desk: Desk, dob: str) -> None:
    load_csv(desk, [GABRIELA])
    ended = GABRIEL | {"dob": dob}
    by_834 = desk.load_834(loop(ended, "024", coverage=END), mapping=BY_CARD)
    assert desk.codes(by_834) == CONFLICT
    for load in (load_csv, load_json):
        assert desk.codes(load(desk, [ended | {"status": "left"}], mapping=LEFT)) == CONFLICT
    assert desk.ends() == {"E00001": None}
    own = load_csv(desk, [GABRIELA | {"status": "left"}], mapping=LEFT)
    assert own.counts == {"ended": 1, "lost": 1}


def test_an_end_without_a_person_or_with_an_unusable_date_counts(desk: Desk) -> None:
    load_csv(desk, PEOPLE[:2])
    bare = {"external_id": "E00001", "status": "left"}
    odd = PEOPLE[1] | {"dob": "unknown", "status": "left"}
    assert load_csv(desk, [bare], mapping=LEFT).counts == {"ended": 1, "lost": 1}
    assert load_csv(desk, [odd], mapping=LEFT).counts == {"ended": 1, "lost": 1}


KIM = row(1, first_name="Kim", last_name="Lee", dob="2014-08-05")


@pytest.mark.parametrize("first_name", ["Baby Boy", "Newborn", "K"])
def test_a_newborn_without_a_name_does_not_replace_a_sibling(desk: Desk, first_name: str) -> None:
    load_csv(desk, [KIM])
    before = desk.members()
    newborn = KIM | {"first_name": first_name, "dob": "2026-10-30", "gender": "male"}
    for load in DOORS:
        assert desk.codes(load(desk, [newborn])) == CONFLICT
    ended = desk.load_834(loop(newborn, "024", coverage=END), mapping=BY_CARD)
    assert desk.codes(ended) == CONFLICT
    assert desk.members() == before


def test_a_newborn_gets_its_name_without_a_warning(desk: Desk) -> None:
    newborn = KIM | {"first_name": "Baby Girl"}
    load_csv(desk, [newborn])
    assert desk.codes(load_csv(desk, [KIM])) == [("updated", "")]
    lost = load_csv(desk, [newborn])
    assert desk.codes(lost) == [("updated", ""), ("warned", "first_name_changed")]


@pytest.mark.parametrize("load", DOORS)
def test_john_is_not_replaced_by_his_son_john(desk: Desk, load: Door) -> None:
    john = row(1, first_name="John", last_name="Hill", dob="1950-04-12", gender="male")
    load(desk, [john])
    before = desk.members()
    assert desk.codes(load(desk, [john | {"dob": "2008-09-30"}])) == CONFLICT
    assert desk.members() == before


@pytest.mark.parametrize("load", DOORS)
def test_a_name_without_its_accents_is_the_same_name(desk: Desk, load: Door) -> None:
    jose = row(1, first_name="José", last_name="Muñoz", dob="1988-06-17", gender="male")
    load(desk, [jose])
    plain = jose | {"first_name": "JOSE", "last_name": "MUNOZ"}
    assert desk.codes(load(desk, [plain])) == [("updated", "")]
    ended = desk.load_834(loop(plain, "024", coverage=END), mapping=BY_CARD)
    assert ended.counts == {"ended": 1, "lost": 1}


def only(desk: Desk) -> dict[str, Any]:
    [member] = desk.members().values()
    return member


CHANGES: list[tuple[str, dict[str, str], list[str]]] = [
    ("a call name", {"first_name": "Bobbie"}, ["first_name_changed"]),
    ("a longer name", {"first_name": "Robin Lee"}, []),
    ("a marriage", {"last_name": "Doe"}, []),
    ("a corrected year", {"dob": "1981-02-03"}, ["dob_changed"]),
    ("day and month", {"dob": "1980-03-02"}, ["dob_changed"]),
    ("a time zone", {"dob": "1980-02-02"}, ["dob_shifted_one_day"]),
    ("another sex", {"gender": "male"}, []),
]


@pytest.mark.parametrize("load", DOORS)
@pytest.mark.parametrize(
    ("change", "warned"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES]
)
def test_a_corrected_person_stays_the_same_and_is_warned(
    desk: Desk, load: Door, change: dict[str, str], warned: list[str]
) -> None:
    load(desk, [row(1)])
    dry = load(desk, [row(1) | change], dry_run=True)
    file = load(desk, [row(1) | change])
    codes = [("warned", code) for code in warned]
    assert desk.codes(file) == [("updated", ""), *codes] == desk.codes(dry)
    member = only(desk)
    assert {name: member[name] for name in change} == change
    assert load(desk, [row(1) | change]).counts == {"unchanged": 1}


TWO_CHANGES: list[dict[str, str]] = [
    {"first_name": "Bobbie", "last_name": "Doe"},
    {"first_name": "Bobbie", "gender": "male"},
    {"first_name": "Bobbie", "dob": "1981-02-03"},
    {"dob": "1981-02-03", "last_name": "Doe"},
    {"dob": "1980-03-02", "gender": "male"},
    {"dob": "1992-02-04"},
]


@pytest.mark.parametrize("change", TWO_CHANGES, ids="+".join)
def test_a_row_in_which_two_things_differ_is_refused(desk: Desk, change: dict[str, str]) -> None:
    load_csv(desk, [row(1)])
    for load in DOORS:
        assert desk.codes(load(desk, [row(1) | change])) == CONFLICT
    partial = {"external_id": "E00001"} | change
    assert desk.codes(load_csv(desk, [partial])) == CONFLICT or "gender" in change


def test_a_table_of_ends_and_other_fields_alone_passes(desk: Desk) -> None:
    load_csv(desk, PEOPLE)
    bare = [{"external_id": each["external_id"], "expiry_date": "2027-06-30"} for each in PEOPLE]
    assert desk.approve(load_csv(desk, bare)).counts == {"updated": 5, "lost": 5}
    bare = [{"external_id": each["external_id"], "gender": "unknown"} for each in PEOPLE]
    assert load_json(desk, bare).counts == {"updated": 5, "warned": 5}


@pytest.mark.parametrize("load", DOORS)
def test_exchanged_numbers_of_stored_twins_are_refused(desk: Desk, load: Door) -> None:
    mia = row(1, first_name="Mia", last_name="Berg", dob="2016-01-20")
    lea = row(2, first_name="Lea", last_name="Berg", dob="2016-01-20")
    load(desk, [mia, lea])
    before = desk.members()
    numbers = ("external_id", "member_id")
    exchanged = [
        mia | {name: lea[name] for name in numbers},
        lea | {name: mia[name] for name in numbers},
    ]
    file = load(desk, exchanged)
    assert desk.codes(file) == CONFLICT * 2
    assert desk.members() == before
    hints = [line["hint"] for line in desk.report(file)]
    ids = [member["id"] for member in before.values()]
    assert [f"describes member {id_}" in hint for id_, hint in zip(ids, hints, strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize("load", DOORS)
def test_a_number_of_a_twin_who_is_not_in_the_file_is_refused(desk: Desk, load: Door) -> None:
    mia = row(1, first_name="Mia", last_name="Berg", dob="2016-01-20")
    lea = row(2, first_name="Lea", last_name="Berg", dob="2016-01-20")
    load(desk, [mia, lea])
    before = desk.members()
    wrong = mia | {"first_name": "LEA"}
    dry = load(desk, [wrong], dry_run=True)
    file = load(desk, [wrong])
    assert desk.codes(file) == CONFLICT == desk.codes(dry)
    assert f"describes member {before['E00002']['id']}" in desk.report(file)[0]["hint"]
    assert desk.members() == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_twin_of_an_earlier_chunk_is_found(desk: Desk, dry_run: bool) -> None:
    desk.options = replace(desk.options, chunk_rows=1)
    mia = row(1, first_name="Mia", last_name="Berg", dob="2016-01-20")
    lea = row(2, first_name="Lea", last_name="Berg", dob="2016-01-20")
    load_csv(desk, [mia])
    file = load_csv(desk, [lea, mia | {"first_name": "Lea"}], dry_run=dry_run)
    assert desk.codes(file) == [("created", ""), *CONFLICT]


def test_a_row_that_repeats_its_member_looks_for_nobody_else(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one whose name is written in other letters."""
    load_csv(desk, PEOPLE)
    asked: list[Sequence[str]] = []

    def note(tx: Any, keys: Sequence[str], today: str) -> Any:
        asked.append(keys)
        return find_similar(tx, keys, today)

    monkeypatch.setattr("frontdesk.eligibility.store.find_similar", note)
    load_csv(desk, [each | {"city": "Boston"} for each in PEOPLE])
    load_csv(desk, [each | {"first_name": each["first_name"].upper()} for each in PEOPLE])
    assert asked == []
    load_csv(desk, [PEOPLE[0] | {"first_name": "Ann"}])
    # The rehearsal asks the database and its scratch database, the load the database.
    assert [len(keys) for keys in asked] == [1, 1, 1]


def test_a_namesake_is_no_reason_to_refuse_a_row_that_fits(desk: Desk) -> None:
    first = row(1, first_name="Ana", last_name="Reyes", dob="1971-02-03")
    second = row(2, first_name="Ana", last_name="Reyes", dob="1990-08-14")
    load_csv(desk, [first, second])
    rows = [
        {"external_id": each["external_id"], "first_name": "Ana", "last_name": "Reyes", "city": "X"}
        for each in (first, second)
    ]
    assert load_csv(desk, rows).counts == {"updated": 2}


def test_a_post_replaces_the_person_with_a_warning_only(desk: Desk) -> None:
    load_csv(desk, [row(1)])
    desk.post(external_id="E00001", first_name="Noor", last_name="Doe", dob="2001-09-09")
    assert only(desk)["first_name"] == "Noor"


LOOPS = [
    ("another date", {"dob": "1980-02-13"}, True),
    ("another first name", {"first_name": "Bobbie"}, True),
    ("another last name", {"last_name": "Doe"}, False),
    ("a longer first name", {"first_name": "Robina"}, False),
]


@ON_SQLITE
@pytest.mark.parametrize(
    ("change", "are_two"), [each[1:] for each in LOOPS], ids=[each[0] for each in LOOPS]
)
def test_two_loops_that_are_one_only_if_nothing_else_differs_are_refused(
    desk: Desk, change: dict[str, str], are_two: bool
) -> None:
    loops = [loop(row(1)), loop(row(1) | change)]
    bare = person(number="REF*23*E00001~", family="", name="", born="", home="")
    for members in (loops, [*reversed(loops)], [bare, *loops]):
        file = desk.load_834(*members, mapping=BY_CARD)
        codes = {line["code"] for line in desk.report(file)}
        assert codes == {"identifier_shared" if are_two else "repeated_differently"}
    assert desk.members() == {}


@ON_SQLITE
def test_more_descriptions_than_one_person_has_are_refused(desk: Desk) -> None:
    loops = [loop(row(1), family=f"F{n}") for n in range(31)]
    file = desk.load_834(*loops, mapping=BY_CARD)
    assert {line["code"] for line in desk.report(file)} == {"identifier_shared"}


@ON_SQLITE
def test_a_comparison_refuses_another_person_and_warns_of_no_change(desk: Desk) -> None:
    load_csv(desk, [row(1)])
    compared = load_834(desk, [row(1) | {"first_name": "Bobbie"}], purpose="4")
    assert ("warned", "differs") in desk.codes(compared)
    assert "first_name_changed" not in compared.codes
    assert desk.codes(load_834(desk, [PEOPLE[0]], purpose="4")) == CONFLICT
