"""A full file keeps the members that one of its refused rows may be about (docs/files.md, Full
files).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.load import ChunkWriter
from frontdesk.files.model import ChunkItem, EligibilityFile
from tests.files.loading import ON_SQLITE, Desk, as_in_a_real_run, csv_of, lines_of, row
from tests.formats.reading import file_834, person
from tests.formats.workbooks import workbook

BY_FAMILY = {"834": {"identify": {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}}}
BY_CARD = {"834": {"identify": "REF*23"}}
KEPT = ("kept", "kept_because_of")


def load(desk: Desk, content: bytes, **options: Any) -> EligibilityFile:
    """The full file, after a dry run with the same report."""
    dry = desk.load(content, full=True, dry_run=True, **options)
    file = desk.load(content, full=True, **options)
    assert as_in_a_real_run(desk.report(dry)) == as_in_a_real_run(desk.report(file))
    assert (dry.codes, dry.counts.get("kept")) == (file.codes, file.counts.get("kept"))
    return file


def load_834(desk: Desk, *members: str, mapping: Any = BY_FAMILY) -> EligibilityFile:
    return load(desk, file_834(*members, purpose="RX").encode(), mapping=mapping)


def open_keys(desk: Desk) -> set[str]:
    return {key for key, day in desk.ends().items() if day is None}


def kept_rows(desk: Desk, file: EligibilityFile) -> dict[str, str]:
    """The first words of the line of each kept member: the number of its refused row."""
    lines = [line for line in desk.report(file) if line["outcome"] == "kept"]
    assert {(line["row"], line["code"]) for line in lines} <= {(None, "kept_because_of")}
    assert file.counts.get("kept", 0) == len(lines)
    return {line["external_id"]: line["hint"].partition(" was")[0] for line in lines}


JOHN = person("John", "19500412", family="F400")
LEE = person("Lee", "19810707", last="Muster", family="F500")
MARY_AS_WIFE = person("Mary", "19521103", family="F400", relation="01")
MARY_AS_WIDOW = person("Mary", "19521103", family="F400")


def test_a_widow_under_the_familys_number_ends_nobody_until_her_husband_is_renamed(
    desk: Desk,
) -> None:
    load_834(desk, JOHN, MARY_AS_WIFE, LEE)
    [hers] = [key for key in open_keys(desk) if key.startswith("F400-")]
    file = load_834(desk, MARY_AS_WIDOW, LEE)
    assert desk.codes(file) == [("refused", "identity_conflict"), ("unchanged", ""), KEPT]
    assert kept_rows(desk, file) == {hers: "Row 8"}
    assert open_keys(desk) == {"F400", hers, "F500"}
    desk.rename("F400", "F400-John")
    desk.rename(hers, "F400")
    done = load_834(desk, MARY_AS_WIDOW, LEE)
    assert done.counts == {"updated": 1, "unchanged": 1, "ended": 1, "lost": 1}
    assert open_keys(desk) == {"F400", "F500"}
    assert desk.members()["F400"]["first_name"] == "Mary"
    assert desk.members()["F400"]["subscriber_relationship"] == "Primary"


def test_a_widow_under_a_number_of_her_own_is_the_same_person_in_another_role(desk: Desk) -> None:
    numbers = {"John": "REF*23*C1~", "Mary": "REF*23*C2~", "Lee": "REF*23*C3~"}

    def numbered(loop: str, name: str) -> str:
        return loop.replace("NM1*", f"{numbers[name]}NM1*", 1)

    lee = numbered(LEE, "Lee")
    load_834(desk, numbered(JOHN, "John"), numbered(MARY_AS_WIFE, "Mary"), lee, mapping=BY_CARD)
    file = load_834(desk, numbered(MARY_AS_WIDOW, "Mary"), lee, mapping=BY_CARD)
    assert file.counts == {"updated": 1, "unchanged": 1, "ended": 1, "lost": 1}
    assert open_keys(desk) == {"C2", "C3"}
    assert desk.members()["C2"]["subscriber_relationship"] == "Primary"


def test_the_refused_rows_of_a_family_keep_its_other_members_with_one_line_each(desk: Desk) -> None:
    """The subscriber's number is another person's by now, the children have no coverage."""
    family = [
        JOHN,
        MARY_AS_WIFE,
        *(person(n, "20010203", family="F400", relation="19") for n in "AB"),
    ]
    load_834(desk, *family, LEE)
    before = open_keys(desk)
    rows = [
        person("Noor", "19900101", last="Doe", family="F400"),
        *(person(n, "20110203", family="F400", relation="19", coverage="") for n in ("Ida", "Ole")),
    ]
    file = load_834(desk, *rows, LEE)
    assert file.counts == {"refused": 3, "unchanged": 1, "kept": 3}
    assert set(kept_rows(desk, file).values()) == {"Row 8"}
    assert open_keys(desk) == before


def test_two_people_with_one_identifier_keep_both_of_their_families(desk: Desk) -> None:
    ana = person("Ana", "19710101", family="F1", number="REF*23*C1~")
    bela = person("Bela", "19720202", last="Muster", family="F2", number="REF*23*C2~")
    load_834(desk, ana, bela, mapping=BY_CARD)
    shared = [each.replace("*C1~", "*C9~").replace("*C2~", "*C9~") for each in (ana, bela)]
    for loops in (shared, [shared[0], LEE.replace("NM1*", "REF*23*C3~NM1*", 1), shared[1]]):
        file = load_834(desk, *loops, mapping=BY_CARD)
        assert file.codes["identifier_shared"] == 2
        assert set(kept_rows(desk, file)) == {"C1", "C2"}
    assert open_keys(desk) == {"C1", "C2", "C3"}


def test_the_family_of_a_dependent_inside_another_loop_is_kept(desk: Desk) -> None:
    load_834(desk, JOHN, MARY_AS_WIFE)
    nested = JOHN + "LS*2700~NM1*70*1*Sample*Mary~LE*2700~"
    content = file_834(nested, purpose="RX").encode()
    dry = desk.load(content, mapping=BY_FAMILY, dry_run=True)
    assert dry.codes == {"nested_dependent": 1, "kept_because_of": 1}
    assert dry.problem is None, "nobody is omitted"


def test_a_correction_keeps_the_member_with_the_former_name(desk: Desk) -> None:
    ana = person("Ana", "19710101", family="", number="REF*23*C1~")
    load_834(desk, ana, mapping=BY_CARD)
    corrected = person(
        "Ana", "19710101", family="", number="REF*23*C9~", coverage="", name="NM1*74*1*Reyes*Ana~"
    ).replace("DMG*", "NM1*70*1*Sample*Ana~DMG*", 1)
    file = load_834(desk, corrected, mapping=BY_CARD)
    assert "C1" in kept_rows(desk, file)
    assert open_keys(desk) == {"C1"}


JOSE = row(1, first_name="José", last_name="Muñoz", dob="1988-06-17", gender="male")
RENUMBERED = JOSE | {"external_id": "N1", "member_id": "N1", "zipcode": "1"}
ROWS: list[tuple[str, dict[str, Any], bool]] = [
    ("another number", {}, True),
    ("another number and no accents", {"first_name": "JOSE", "last_name": "MUNOZ"}, True),
    ("another number and a bad date", {"dob": "1988-06-31"}, True),
    ("another number and a date to come", {"dob": "2088-06-17"}, True),
    ("another number and no date", {"dob": ""}, True),
    ("another number and no names", {"first_name": "", "last_name": ""}, True),
    ("another number and no last name", {"last_name": ""}, True),
    ("another number and an initial", {"first_name": "J."}, True),
    ("another number and a newborn's name", {"first_name": "Baby Boy"}, True),
    ("another name", {"last_name": "Moore"}, False),
    ("another date", {"dob": "1990-01-05"}, False),
]


@pytest.mark.parametrize(
    ("change", "is_kept"), [each[1:] for each in ROWS], ids=[each[0] for each in ROWS]
)
def test_a_refused_row_of_a_table_keeps_the_member_with_its_names_and_birth_date(
    desk: Desk, change: dict[str, Any], is_kept: bool
) -> None:
    desk.load(csv_of([JOSE, row(2)]))
    file = load(desk, csv_of([row(2), RENUMBERED | change]))
    assert kept_rows(desk, file) == ({"E00001": "Row 3"} if is_kept else {})
    assert open_keys(desk) == ({"E00001", "E00002"} if is_kept else {"E00002"})


def test_a_named_child_keeps_the_newborn_without_a_name(desk: Desk) -> None:
    desk.load(csv_of([JOSE | {"first_name": "Baby Boy"}, row(2)]))
    file = load(desk, csv_of([row(2), RENUMBERED]))
    assert kept_rows(desk, file) == {"E00001": "Row 3"}


WITHOUT_NAMES = [name for name in JOSE if name not in ("first_name", "last_name")]


def test_a_widow_in_a_table_without_names_is_kept_by_her_birth_date(desk: Desk) -> None:
    """Her row has the number of the dead, and no names; her own number is not listed any more."""
    her = row(1, first_name="Mary", dob="1952-11-03", gender="female")
    desk.load(csv_of([JOSE, her | {"external_id": "E1-02", "member_id": "E1-02"}, row(3)]))
    rows = [{name: each[name] for name in WITHOUT_NAMES} for each in (her, row(3))]
    file = load(desk, csv_of(rows, WITHOUT_NAMES))
    assert file.counts == {"refused": 1, "unchanged": 1, "kept": 1}
    assert kept_rows(desk, file) == {"E1-02": "Row 2"}


def test_a_refused_row_without_an_identifier_keeps_its_person(desk: Desk) -> None:
    """Without it the file would be held, since the row may be about the omitted member."""
    desk.load(csv_of([JOSE, row(2), row(3)]))
    nameless = JOSE | {"external_id": ""}
    dry = desk.load(csv_of([row(2), row(3), nameless]), full=True, dry_run=True)
    assert dry.counts == {"unchanged": 2, "refused": 1, "kept": 1}
    assert dry.problem is None


ENDS = {"end": [{"column": "status", "equals": "left"}]}
PLANS = {"fields": {"plan": {"column": "plan"}}, "plans": {"a": "b"}}
COLUMNS = (*JOSE, "expiry_date", "status", "plan")


@ON_SQLITE
@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (ENDS, {"status": "left", "expiry_date": "soon"}),
        (PLANS, {"plan": "none of these"}),
        (PLANS, {"plan": "a"}),
        (ENDS | PLANS, {"status": "left", "plan": "none of these"}),
    ],
    ids=["an end", "an unknown name of a plan", "an unknown plan", "an end of an unknown plan"],
)
def test_rows_that_the_reader_refuses_keep_their_person(
    desk: Desk, mapping: dict[str, Any], said: dict[str, str]
) -> None:
    desk.load(csv_of([JOSE, row(2)]))
    refused = RENUMBERED | said
    file = load(desk, csv_of([row(2), refused], COLUMNS), mapping=mapping)
    assert file.counts == {"unchanged": 1, "refused": 1, "kept": 1}


@ON_SQLITE
def test_a_row_of_a_workbook_with_a_broken_cell_keeps_its_person(desk: Desk) -> None:
    desk.load(csv_of([JOSE, row(2)]))
    rows = [row(2), RENUMBERED | {"zipcode": "#N/A"}]
    cells = [[*JOSE], *([*each.values()] for each in rows)]
    file = load(desk, workbook(cells))
    assert file.counts == {"unchanged": 1, "refused": 1, "kept": 1}


def test_a_family_that_was_refused_whole_is_kept_among_many(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the omitted members are looked at in several parts."""
    monkeypatch.setattr("frontdesk.files.kept.OMITTED_TOGETHER", 2)
    monkeypatch.setattr("frontdesk.files.absence.LISTED_TOGETHER", 2)
    monkeypatch.setattr("frontdesk.files.kept.CHUNKS_TOGETHER", 1)
    desk.options = replace(desk.options, chunk_rows=2)
    desk.load(csv_of(row(n) for n in range(20)))
    listed = [row(n) for n in range(10)]
    renumbered = [row(n, external_id=f"N{n}", member_id=f"N{n}", zipcode="1") for n in (11, 15, 19)]
    file = load(desk, csv_of([renumbered[0], *listed, *renumbered[1:]]))
    assert file.counts == {"unchanged": 10, "refused": 3, "kept": 3, "ended": 7, "lost": 7}
    assert kept_rows(desk, file) == {"E00011": "Row 2", "E00015": "Row 13", "E00019": "Row 14"}


@pytest.mark.parametrize("dies", ["before the ends", "between two of them"])
def test_a_worker_that_dies_leaves_the_kept_members_to_the_next(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    monkeypatch.setattr("frontdesk.files.absence.ENDED_TOGETHER", 2)
    desk.load(csv_of(row(n) for n in range(20)))
    renumbered = [row(n, external_id=f"N{n}", member_id=f"N{n}", zipcode="1") for n in (15, 16)]
    file = desk.hand_in(csv_of([*(row(n) for n in range(14)), *renumbered]), full=True)
    write = ChunkWriter.write
    writes = 0

    def die(writer: ChunkWriter, rows: Sequence[ChunkItem]) -> None:
        nonlocal writes
        writes += bool(rows) and rows[0].place is None
        if writes == (1 if dies == "before the ends" else 2):
            raise KeyboardInterrupt
        write(writer, rows)

    with monkeypatch.context() as broken:
        broken.setattr(ChunkWriter, "write", die)
        with pytest.raises(KeyboardInterrupt):
            desk.try_to_work(file, lease_seconds=0.0)
    assert desk.reread(file).step == "end"
    done = desk.work(file)
    assert done.counts == {"unchanged": 14, "refused": 2, "ended": 4, "kept": 2, "lost": 4}
    assert set(kept_rows(desk, done)) == {"E00015", "E00016"}
    undone = desk.undo(done)
    assert undone.counts == {"restored": 4, "gained": 4}


def test_a_file_without_refused_rows_is_read_twice_only(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is one that omits nobody."""
    desk.load(csv_of(row(n) for n in range(4)))

    def refuse(*_args: Any) -> Iterable[Any]:
        raise AssertionError

    monkeypatch.setattr("frontdesk.files.kept._rows_at", refuse)
    assert desk.load(csv_of(row(n) for n in range(3)), full=True).counts["ended"] == 1
    bad = row(9, zipcode="1")
    whole = lines_of([*(row(n) for n in range(3)), bad])
    assert desk.load(whole, full=True).counts == {"unchanged": 3, "refused": 1}
