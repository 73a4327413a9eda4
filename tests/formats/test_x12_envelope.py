"""The envelopes of an 834: delimiters, several interchanges, groups and transactions, and every count and number checked."""

import re

import pytest

from frontdesk.eligibility.model import Action
from frontdesk.formats.model import FileMode
from tests.formats.reading import GS, ISA, MEMBER, file_834, interchange, read, refused, rows_of, transaction

GOOD = file_834()
PLACES = [8]


def other_delimiters(text: str) -> str:
    return text.replace("~", "\x1d").replace("*", "|").replace("^", "!").replace(":", ">")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("~", "~\n"),
        GOOD.replace("~", "~\r\n"),
        GOOD.replace("~", "\n"),
        GOOD.replace("~", "\r\n"),
        "\n  " + GOOD + "\n\n",
        other_delimiters(GOOD),
        "\ufeff" + GOOD,
        GOOD + "\x1a" + "\0" * 512,
    ],
    ids=[
        "plain",
        "lf",
        "crlf",
        "lf-terminates",
        "cr-terminates",
        "space-around",
        "other-delimiters",
        "bom",
        "filler",
    ],
)
def test_the_isa_declares_the_delimiters_and_line_breaks_are_forgiven(text: str) -> None:
    [row] = rows_of(text)
    assert row.place == 8
    assert row.values["last_name"] == "Sample"
    assert row.values["effective_date"] == "2026-01-01"


def test_several_transactions_groups_and_interchanges_follow_each_other() -> None:
    two = interchange(transaction(MEMBER), transaction(MEMBER, MEMBER, control="0002"))
    groups = ISA + 2 * f"{GS}{transaction(MEMBER)}GE*1*3~" + "IEA*2*000000007~"
    rows = rows_of(two + "\n" + other_delimiters(groups) + groups)
    assert len(rows) == 3 + 2 + 2
    assert [row.place for row in rows] == sorted({row.place for row in rows})


def test_places_count_segments_over_the_whole_file() -> None:
    assert [row.place for row in rows_of(GOOD + GOOD)] == [8, 8 + GOOD.count("~")]


WRONG: list[tuple[str, str, str, str]] = [
    ("SE*16*", "SE*15*", "wrong_count", "Segment 18: SE01 is not the number of segments, which is 16"),
    ("SE*16*", "SE**", "wrong_count", "Segment 18: SE01"),
    ("SE*16*", "SE*-16*", "wrong_count", "Segment 18: SE01"),
    ("SE*16*0001", "SE*16*0002", "wrong_count", "Segment 18: SE02"),
    ("GE*1*", "GE*2*", "wrong_count", "Segment 19: GE01 is not the number of transactions, which is 1"),
    ("GE*1*3", "GE*1*4", "wrong_count", "Segment 19: GE02"),
    ("IEA*1*", "IEA*2*", "wrong_count", "Segment 20: IEA01"),
    ("IEA*1*000000007", "IEA*1*000000008", "wrong_count", "Segment 20: IEA02"),
    ("N3*1 Example Street~", "", "wrong_count", "Segment 17: SE01"),
    ("*X*005010X220A1", "*X*004010X098A1", "wrong_version", "Segment 2: "),
    ("ST*834*", "ST*835*", "wrong_version", "Segment 3: "),
    ("0001*005010X220A1", "0001*005010X279A1", "wrong_version", "Segment 3: "),
    (GS, "", "wrong_order", "Segment 2: ST has no place here"),
    ("ST*834*0001*005010X220A1~", "", "wrong_order", "Segment 3: stands outside"),
    ("SE*16*0001~", "", "wrong_order", "Segment 18: GE has no place here"),
    ("BGN*00*REF1*20261120*0800****2~", "", "wrong_order", "Segment 7: INS stands before BGN"),
    ("****2~", "****15~", "unknown_purpose", "Segment 4: BGN08"),
    ("****2~", "****RG~", "unknown_purpose", "Segment 4: BGN08"),
    ("REF1*20261120", "REF1*20261320", "wrong_date", "Segment 4: BGN03"),
    (MEMBER, "", "wrong_count", "Segment 8: SE01"),
]


@pytest.mark.parametrize(("old", "new", "code", "sentence"), WRONG)
def test_a_wrong_envelope_refuses_the_file_and_names_the_segment(
    old: str, new: str, code: str, sentence: str
) -> None:
    assert GOOD.count(old) == 1
    found, said = refused(lambda: read(GOOD.replace(old, new)))
    assert (found, said[: len(sentence)]) == (code, sentence)


def test_transactions_must_not_contradict_each_other() -> None:
    content = interchange(transaction(MEMBER), transaction(MEMBER, purpose="RX", control="0002"))
    code, sentence = refused(lambda: read(content))
    assert (code, sentence[:11]) == ("mixed_purposes", "Segment 20:")


def test_a_file_without_members_is_refused() -> None:
    assert refused(lambda: read(interchange(transaction())))[0] == "no_rows"


@pytest.mark.parametrize("length", range(0, len(GOOD) - 1, 7))
def test_a_file_cut_off_anywhere_is_refused(length: int) -> None:
    code, _ = refused(lambda: read(GOOD[:length]))
    assert code == ("empty" if length == 0 else "cut_off" if length >= 3 else "no_header")


def test_a_file_that_ends_behind_a_whole_family_names_the_segment_that_is_missing() -> None:
    text = file_834(MEMBER, MEMBER).partition("SE*")[0]
    assert (
        refused(lambda: read(text))[1] == f"Segment {text.count('~') + 1}: the file ends here, before its IEA"
    )


@pytest.mark.parametrize(
    ("old", "new"), [("*ZZ*SENDER         *", "*SENDER*"), ("*:~", "**~"), ("ISA*", "ISA "), ("*:~", "*:A")]
)
def test_a_damaged_isa_is_refused(old: str, new: str) -> None:
    code, sentence = refused(lambda: read(GOOD.replace(old, new)))
    assert code in ("not_x12", "cut_off")
    assert "Segment 1: " in sentence


def test_what_follows_an_interchange_must_be_another() -> None:
    code, sentence = refused(lambda: read(GOOD + "GARBAGE" * 40))
    assert (code, sentence) == (
        "not_x12",
        "Segment 21: an ISA segment is expected here: send the file as it was written",
    )


TIDY = [row.values for row in rows_of(GOOD)]


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("~", "~\n    "),
        GOOD.replace("~", "~\t"),
        GOOD.replace("~", "~\n\n \n"),
        GOOD[:-1].replace("~", "~~") + "~",
        GOOD.replace("~", "\n\n"),
        GOOD[:-1],
        GOOD.replace("~", "~\n")[:-2],
        GOOD.replace(GS, "TA1*000000007*261120*0800*A*000~" + GS),
    ],
    ids=["indented", "tabs", "blank-lines", "blank-segments", "blank-lf", "no-end", "no-end-lf", "ta1"],
)
def test_an_untidy_file_is_read_and_warned_of_once(text: str) -> None:
    rows = rows_of(text)
    assert [row.values for row in rows] == TIDY
    assert [row.warnings for row in rows] == [("untidy_file",)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", " \n"])
@pytest.mark.parametrize("block", [1, 2, 7, 64 * 1024])
def test_a_terminator_that_is_missing_at_the_end_of_a_line_is_found(
    line_end: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.formats.source._BLOCK", block)
    lines = GOOD.replace("~", "~\r\n")
    for tag in ("REF", "DTP", "HD", "N4", "INS", "SE", "GE"):
        lines = lines.replace(f"~\r\n{tag}*", f"{line_end}{tag}*")
    [row] = rows_of(lines)
    assert ([row.values], row.warnings) == (TIDY, ("untidy_file",))


@pytest.mark.parametrize("block", [11, 64 * 1024])
def test_lines_that_are_broken_anywhere_are_put_together(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.formats.source._BLOCK", block)
    body = GOOD.removeprefix(ISA)
    for width in range(5, 90):
        [row] = rows_of(ISA + "".join(f"{body[at : at + width]}\r\n" for at in range(0, len(body), width)))
        assert ([row.values], row.warnings) == (TIDY, ())


def test_without_a_date_of_its_own_a_transaction_has_that_of_its_group() -> None:
    assert GOOD.count("*20261120*0800*3*X*") == 1
    text = GOOD.replace("*20261120*0800*3*X*", "*20261119*0800*3*X*").replace("REF1*20261120", "REF1*")
    head, [row] = read(text)
    assert (str(head.file_date), row.warnings) == ("2026-11-19", ("untidy_file",))
    for wrong in ("*20261320*0800*3*X*", "**0800*3*X*"):
        found, said = refused(lambda: read(text.replace("*20261119*0800*3*X*", wrong)))  # noqa: B023 - used at once
        assert (found, said[:17]) == ("wrong_date", "Segment 4: BGN03,")


def test_empty_groups_and_interchanges_are_read() -> None:
    empty = f"{ISA}{GS}GE*0*3~IEA*1*000000007~{ISA}IEA*0*000000007~"
    assert [row.values for row in rows_of(empty + GOOD + empty)] == TIDY


@pytest.mark.parametrize(("old", "new"), [("SE*16*", "SE*15*"), ("GE*1*3", "GE*2*3"), ("IEA*1*", "IEA*9*")])
def test_an_account_may_take_wrong_counts_but_never_wrong_numbers(old: str, new: str) -> None:
    lenient = {"834": {"counts": "lenient"}}
    [row] = rows_of(GOOD.replace(old, new), mapping=lenient)
    assert row.warnings == ("untidy_file",)
    wrong = GOOD.replace("SE*16*0001", "SE*16*0002")
    assert refused(lambda: read(wrong, mapping=lenient))[0] == "wrong_count"


def test_an_account_may_say_that_a_file_to_verify_is_its_full_file() -> None:
    audit = file_834(MEMBER.replace("*021*28", "*030*28"), purpose="4")
    assert read(audit)[0].mode is FileMode.COMPARE
    head, [row] = read(audit, mapping={"834": {"verify": "full"}})
    assert (head.mode, row.action) == (FileMode.FULL, Action.ENROL)


@pytest.mark.parametrize(("padding", "left"), [(" +", " "), (" {2,}", "")])
@pytest.mark.parametrize("breaks", ["", "\r\n"])
def test_an_isa_that_has_lost_its_padding_is_read_with_one_warning(
    padding: str, left: str, breaks: str
) -> None:
    text = GOOD.replace("~", "~" + breaks)
    _, rows = read(text.replace(ISA, re.sub(padding, left, ISA)))
    assert [row.values for row in rows] == [row.values for row in read(GOOD)[1]]
    assert [row.warnings for row in rows][-1] == ("untidy_file",)


@pytest.mark.parametrize("wrong", ["*T*~", "*T*:", "*T*::~", "*T*A1"])
def test_an_isa_without_padding_whose_terminator_is_not_certain_is_refused(wrong: str) -> None:
    damaged = re.sub(" {2,}", "", GOOD).replace("*T*:~", wrong, 1)
    code, sentence = refused(lambda: read(damaged))
    assert (code, "not as the text of a mail" in sentence) == ("not_x12", True)


@pytest.mark.parametrize(
    ("blank", "mode"),
    [
        ("", "change"),
        ("****", "change"),
        ("***2", "change"),
        ("***RX", "full"),
        ("***rx", "full"),
        ("**4*", "compare"),
        ("***ES", "change"),
    ],
)
def test_a_file_without_bgn08_is_a_change_unless_the_code_stands_one_element_early(
    blank: str, mode: str
) -> None:
    head, rows = read(GOOD.replace("****2~", blank + "~"))
    assert (str(head.mode), [row.warnings for row in rows]) == (mode, [("untidy_file",)])


def test_a_group_may_name_the_version_without_the_guide() -> None:
    [row] = rows_of(GOOD.replace("3*X*005010X220A1", "3*X*005010"))
    assert (row.faults, row.warnings) == ((), ("untidy_file",))


def test_a_file_in_small_letters_says_the_same() -> None:
    [small], [row] = rows_of(GOOD.lower()), rows_of(GOOD)
    assert small.warnings == ("untidy_file",)
    assert {name: str(value).casefold() for name, value in small.values.items()} == {
        name: str(value).casefold() for name, value in row.values.items()
    }
    [tags] = rows_of(re.sub(r"(?<=~)[A-Z0-9]+\*", lambda found: found[0].lower(), GOOD))
    assert (tags.values, tags.warnings) == (row.values, ("untidy_file",))


@pytest.mark.parametrize("version", ["004010X095A1", "004010X095"])
def test_the_older_version_is_read_with_one_warning(version: str) -> None:
    older = (
        GOOD.replace("*X*005010X220A1", f"*X*{version}")
        .replace("*005010X220A1~BGN", "~BGN")
        .replace("00501", "00401")
    )
    assert older.count("005010") == 0
    _, rows = read(older)
    assert [row.values for row in rows] == [row.values for row in read(GOOD)[1]]
    assert [row.warnings for row in rows][-1] == ("untidy_file",)
