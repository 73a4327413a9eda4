"""The rows of a CSV are the same however its content falls into blocks, and whatever stands beside them in one."""

import csv
import io

import pytest

from frontdesk.errors import Fault
from frontdesk.formats import source
from frontdesk.formats.model import Format, Unreadable
from frontdesk.mapping.model import ReadItem, Row, UnreadRows, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from tests.formats.reading import HEADER

PLAIN = [f"AB{n},M-{n},Robin,Sample\n" for n in range(40)]
# Lines that are no rows, that are rows of another kind, and that end in other ways.
ODD = {
    "blank": "\n",
    "blank cells": " ,,, \n",
    "no key": ",M-99,Robin,Sample\n",
    "too few cells": "AB99,M-99\n",
    "quoted": '"AB99","M-99","Ro, bin","Sample"\n',
    "two lines": '"AB99",M-99,"Robin\n\nJane",Sample\n',
    "bad quoting": '"AB99"x,M-99,Robin,Sample\n',
    "two signs as the end": "AB99,M-99,Robin,Sample\r\n",
    "old end": "AB99,M-99,Robin,Sample\r",
    "no end of a line": "AB99,M-99,Rob\x0b\x1c\u2028in,Sam\x85ple\n",
    "letters": "AB99,M-99,Zo\u00eb \U0001f600,Sample\n",
    "cleared key": "\\N,M-99,Robin,Sample\n",
}


def items_of(text: str, encoding: str = "utf-8") -> list[ReadItem]:
    content = io.BytesIO(text.encode(encoding))
    return [*open_unread(content, Format.CSV, encoding, parse_mapping({"delimiter": ","}))[1]]


def told(rows: list[Row]) -> list[tuple[int, dict[str, object], tuple[Fault, ...]]]:
    return [(row.place, row.values, row.faults) for row in rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("kind", ODD)
def test_rows_are_the_same_in_small_blocks_and_in_one(
    monkeypatch: pytest.MonkeyPatch, kind: str, encoding: str
) -> None:
    text = HEADER + "".join([*PLAIN[:20], ODD[kind], *PLAIN[20:], ODD[kind]])
    rows = told([*read_rows(items_of(text, encoding))])
    values = [row[1] for row in rows]
    assert values[:20] == [cells_of(line) for line in PLAIN[:20]]
    assert [each for each in values if str(each.get("member_id")) < "M-99"][-20:] == values[
        -21:-1
    ] or kind in ("blank", "blank cells")
    for size in (16, 61, 500):
        monkeypatch.setattr(source, "_BLOCK", size)
        assert told([*read_rows(items_of(text, encoding))]) == rows


def cells_of(line: str) -> dict[str, str]:
    [cells] = csv.reader([line])
    return dict(zip(HEADER.strip().split(","), cells, strict=True))


@pytest.mark.parametrize("kind", ["quoted", "letters", "no key", "two signs as the end"])
def test_rows_beside_an_odd_one_are_still_recognised_together(kind: str) -> None:
    [rows] = items_of(HEADER + "".join([*PLAIN[:20], ODD[kind], *PLAIN[20:]]))
    assert isinstance(rows, UnreadRows)
    assert (rows.place, len(rows)) == (2, 41)
    first, second, *_ = read_rows([rows.part(20)])
    assert [(row.place, row.values["member_id"]) for row in (first, second)] == [(22, "M-99"), (23, "M-20")]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_line_that_is_too_long_or_not_in_the_encoding_is_named(
    monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    above = HEADER + "".join(PLAIN * 10)  # more than the header is looked for in
    for bad, code in (("x" * source.LONGEST_LINE, "line_too_long"), ("\udcff", "wrong_encoding")):
        text = (above + f"AB99,M-99,{bad},Sample\n" + PLAIN[0]).replace("\n", ending)
        for size in (64, 64 * 1024):
            monkeypatch.setattr(source, "_BLOCK", size)
            content = io.BytesIO(text.encode("utf-8", "surrogateescape"))
            with pytest.raises(Unreadable, match="Line 402:") as error:
                [*open_unread(content, Format.CSV, "utf-8", parse_mapping({"delimiter": ","}))[1]]
            assert error.value.code == code
