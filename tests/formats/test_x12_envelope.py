"""The envelopes of an 834: delimiters, interchanges, groups and transactions, every count checked;
pyx12 agrees.
"""

import io
import re
from importlib import import_module
from typing import Any

import pytest

from frontdesk.eligibility.model import Action
from frontdesk.formats.model import FileMode
from tests.formats.reading import (
    GS,
    ISA,
    MEMBER,
    file_834,
    interchange,
    read,
    refused,
    rows_of,
    transaction,
    warned,
)

GOOD = file_834()
TIDY = [row.values for row in rows_of(GOOD)]


def other_delimiters(text: str) -> str:
    return text.replace("~", "\x1d").replace("*", "|").replace("^", "!").replace(":", ">")


@pytest.mark.parametrize(
    "text",
    [
        *(GOOD.replace("~", end) for end in ("~\n", "~\r\n", "\n", "\r\n")),
        "\n  " + GOOD + "\n\n",
        other_delimiters(GOOD),
        "\ufeff" + GOOD,
        GOOD + "\x1a" + "\0" * 512,
    ],
)
def test_the_isa_declares_the_delimiters_and_line_breaks_are_forgiven(text: str) -> None:
    [row] = rows_of(text)
    assert (row.place, [row.values], warned(row)) == (8, TIDY, ())


def test_places_count_segments_over_all_transactions_groups_and_interchanges() -> None:
    two = interchange(transaction(MEMBER), transaction(MEMBER, MEMBER, control="0002"))
    groups = ISA + 2 * f"{GS}{transaction(MEMBER)}GE*1*3~" + "IEA*2*000000007~"
    empty = f"{ISA}{GS}GE*0*3~IEA*1*000000007~{ISA}IEA*0*000000007~"
    text = empty + two + "\n" + groups + groups + empty
    segments = text.replace("\n", "").split("~")
    assert [row.place for row in rows_of(text)] == [
        at for at, segment in enumerate(segments, 1) if segment.startswith("INS*")
    ]
    assert len(rows_of(two + "\n" + other_delimiters(groups) + groups)) == 3 + 2 + 2


WRONG: list[tuple[str, str, str, str]] = [
    (
        "SE*16*",
        "SE*15*",
        "wrong_count",
        "Segment 18: SE01 is not the number of segments, which is 16",
    ),
    ("SE*16*0001", "SE*16*0002", "wrong_count", "Segment 18: SE02"),
    (
        "GE*1*",
        "GE*2*",
        "wrong_count",
        "Segment 19: GE01 is not the number of transactions, which is 1",
    ),
    ("GE*1*3", "GE*1*4", "wrong_count", "Segment 19: GE02"),
    ("IEA*1*", "IEA*2*", "wrong_count", "Segment 20: IEA01"),
    ("IEA*1*000000007", "IEA*1*000000008", "wrong_count", "Segment 20: IEA02"),
    ("*X*005010X220A1", "*X*004010X098A1", "wrong_version", "Segment 2: "),
    ("ST*834*", "ST*835*", "wrong_version", "Segment 3: "),
    ("0001*005010X220A1", "0001*005010X279A1", "wrong_version", "Segment 3: "),
    (GS, "", "wrong_order", "Segment 2: ST has no place here"),
    ("ST*834*0001*005010X220A1~", "", "wrong_order", "Segment 3: stands outside"),
    ("SE*16*0001~", "", "wrong_order", "Segment 18: GE has no place here"),
    ("BGN*00*REF1*20261120*0800****2~", "", "wrong_order", "Segment 7: INS stands before BGN"),
    ("****2~", "****15~", "unknown_purpose", "Segment 4: BGN08"),
    ("REF1*20261120", "REF1*20261320", "wrong_date", "Segment 4: BGN03"),
]


@pytest.mark.parametrize(("old", "new", "code", "sentence"), WRONG)
def test_a_wrong_envelope_is_refused_at_its_segment(
    old: str, new: str, code: str, sentence: str
) -> None:
    assert GOOD.count(old) == 1
    found, said = refused(lambda: read(GOOD.replace(old, new)))
    assert (found, said[: len(sentence)]) == (code, sentence)


def test_transactions_must_not_contradict_each_other_and_must_have_members() -> None:
    content = interchange(transaction(MEMBER), transaction(MEMBER, purpose="RX", control="0002"))
    code, sentence = refused(lambda: read(content))
    assert (code, sentence[:11]) == ("mixed_purposes", "Segment 20:")
    assert refused(lambda: read(interchange(transaction())))[0] == "no_rows"


@pytest.mark.parametrize("length", range(0, len(GOOD) - 1, 7))
def test_a_file_cut_off_anywhere_is_refused(length: int) -> None:
    code, _ = refused(lambda: read(GOOD[:length]))
    assert code == ("empty" if length == 0 else "cut_off" if length >= 3 else "no_header")


FAMILY = file_834(MEMBER, MEMBER).partition("SE*")[0]
MAILED = re.sub(" {2,}", "", GOOD)  # an ISA without its padding


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (FAMILY, f"Segment {FAMILY.count('~') + 1}: the file ends here, before its IEA"),
        (GOOD + "GARBAGE" * 40, "Segment 21: an ISA segment is expected here: send"),
        (GOOD.replace("*ZZ*SENDER         *", "*SENDER*"), "Segment 1: "),
        (GOOD.replace("*:~", "**~"), "Segment 1: "),
        (GOOD.replace("ISA*", "ISA "), "Segment 1: "),
        (GOOD.replace("*:~", "*:A"), "Segment 1: "),
        *(
            (MAILED.replace("*T*:~", end, 1), "text of a mail")
            for end in ("*T*~", "*T*:", "*T*::~", "*T*A1")
        ),
    ],
)
def test_what_is_no_whole_interchange_is_refused_at_its_segment(text: str, sentence: str) -> None:
    code, said = refused(lambda: read(text))
    assert code in ("not_x12", "cut_off")
    assert sentence in said


OLDER = GOOD.replace("*005010X220A1~BGN", "~BGN").replace("00501*", "00401*")


@pytest.mark.parametrize(
    "text",
    [
        *(GOOD.replace("~", end) for end in ("~\n    ", "~\n\n \n", "\n\n")),
        GOOD[:-1].replace("~", "~~") + "~",
        GOOD[:-1],
        GOOD.replace("~", "~\n")[:-2],
        GOOD.replace(GS, "TA1*000000007*261120*0800*A*000~" + GS),
        # An ISA that has lost its padding, whole or in part
        MAILED,
        MAILED.replace("~", "~\r\n"),
        GOOD.replace(ISA, re.sub(" +", " ", ISA)),
        GOOD.replace("~", "~\r\n").replace(ISA, re.sub(" +", " ", ISA)),
        # Another version, tags in small letters
        GOOD.replace("3*X*005010X220A1", "3*X*005010"),
        OLDER.replace("*X*005010X220A1", "*X*004010X095A1"),
        OLDER.replace("*X*005010X220A1", "*X*004010X095"),
        re.sub(r"(?<=~)[A-Z0-9]+\*", lambda found: found[0].lower(), GOOD),
    ],
)
def test_an_untidy_file_is_read_and_warned_of_once(text: str) -> None:
    rows = rows_of(text)
    assert [row.values for row in rows] == TIDY
    assert [warned(row) for row in rows] == [("untidy_file",)]


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
    assert ([row.values], warned(row)) == (TIDY, ("untidy_file",))


@pytest.mark.parametrize("block", [11, 64 * 1024])
def test_lines_that_are_broken_anywhere_are_put_together(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.formats.source._BLOCK", block)
    body = GOOD.removeprefix(ISA)
    for width in range(5, 90):
        [row] = rows_of(
            ISA + "".join(f"{body[at : at + width]}\r\n" for at in range(0, len(body), width))
        )
        assert ([row.values], warned(row)) == (TIDY, ())


def test_without_a_date_of_its_own_a_transaction_has_that_of_its_group() -> None:
    assert GOOD.count("*20261120*0800*3*X*") == 1
    text = GOOD.replace("*20261120*0800*3*X*", "*20261119*0800*3*X*").replace(
        "REF1*20261120", "REF1*"
    )
    head, [row] = read(text)
    assert (str(head.file_date), warned(row)) == ("2026-11-19", ("untidy_file",))
    for wrong in ("*20261320*0800*3*X*", "**0800*3*X*"):
        found, said = refused(lambda: read(text.replace("*20261119*0800*3*X*", wrong)))  # noqa: B023
        assert (found, said[:17]) == ("wrong_date", "Segment 4: BGN03,")


@pytest.mark.parametrize(
    ("old", "new"), [("SE*16*", "SE*15*"), ("GE*1*3", "GE*2*3"), ("IEA*1*", "IEA*9*")]
)
def test_an_account_may_take_wrong_counts_but_never_wrong_numbers(old: str, new: str) -> None:
    lenient = {"834": {"counts": "lenient"}}
    [row] = rows_of(GOOD.replace(old, new), mapping=lenient)
    assert warned(row) == ("untidy_file",)
    for wrong in (
        GOOD.replace("GE*1*3", "GE*1*4"),
        GOOD.replace("IEA*1*000000007", "IEA*1*000000008"),
    ):
        code, said = refused(lambda: read(wrong, mapping=lenient))  # noqa: B023
        assert (code, "has to send the file again" in said) == ("wrong_count", True)


def test_a_lenient_account_may_have_another_number_in_se02_than_in_st02() -> None:
    text = GOOD.replace("SE*16*0001", "SE*16*0002")
    code, said = refused(lambda: read(text))
    assert (code, '{"counts": "lenient"}' in said) == ("wrong_count", True)
    [row] = rows_of(text, mapping={"834": {"counts": "lenient"}})
    assert [row.values] == TIDY
    [warning] = row.warnings
    assert warning.detail == "has another control number in SE02 than in ST02"


def test_the_warning_of_an_untidy_file_names_each_small_fault_once() -> None:
    text = GOOD.replace("SE*16*", "SE*15*").replace("****2~", "~").replace("~", "~\n \n")
    [row] = rows_of(text[:-4], mapping={"834": {"counts": "lenient"}})
    [warning] = row.warnings
    assert warning.detail == (
        "has space or blank segments between segments, no BGN08, a wrong count (SE01), "
        "no terminator at its end"
    )


def test_interchanges_for_production_and_for_a_test_do_not_stand_in_one_file() -> None:
    first = interchange(transaction(MEMBER))
    assert read(first)[0].is_test
    assert not read(first.replace("*0*T*:", "*0*P*:"))[0].is_test
    assert not read(first, mapping={"834": {"tests": "apply"}})[0].is_test
    code, said = refused(lambda: read(first + first.replace("*0*T*:", "*0*P*:")))
    assert (code, "ISA15" in said) == ("mixed_purposes", True)


@pytest.mark.parametrize(
    ("blank", "mode"),
    [("", "change"), ("****", "change"), ("***2", "change"), ("***rx", "full"),
     ("**4*", "compare"), ("***ES", "change")],
)  # fmt: skip
def test_a_file_without_bgn08_is_a_change_unless_the_code_stands_one_early(
    blank: str, mode: str
) -> None:
    head, rows = read(GOOD.replace("****2~", blank + "~"))
    assert (str(head.mode), [warned(row) for row in rows]) == (mode, [("untidy_file",)])


@pytest.mark.parametrize(("old", "new"), [each[:2] for each in WRONG if each[2] == "wrong_count"])
def test_a_wrong_count_is_wrong_for_pyx12_too(old: str, new: str) -> None:
    reader: Any = import_module("pyx12.x12file").X12Reader(io.StringIO(GOOD.replace(old, new)))
    assert [*reader]
    reader.cleanup()
    assert reader.pop_errors()


def test_a_file_in_small_letters_says_the_same() -> None:
    [small] = rows_of(GOOD.lower())
    assert warned(small) == ("untidy_file",)
    told = [
        {name: str(value).casefold() for name, value in each.items()}
        for each in (small.values, *TIDY)
    ]
    assert told[0] == told[1]


def test_an_account_may_say_that_a_file_to_verify_is_its_full_file() -> None:
    audit = file_834(MEMBER.replace("*021*28", "*030*28"), purpose="4")
    assert read(audit)[0].mode is FileMode.COMPARE
    head, [row] = read(audit, mapping={"834": {"verify": "full"}})
    assert (head.mode, row.action) == (FileMode.FULL, Action.ENROL)
