"""CSV: where the header is, delimiters, encodings, what a cell becomes, rows that are refused
alone, and reading by blocks.
"""

import gzip
import io
from typing import Any

import pytest

from frontdesk.eligibility.model import Action
from frontdesk.errors import Fault
from frontdesk.formats import source
from frontdesk.formats.model import Format, Unreadable
from frontdesk.mapping.model import ReadItem, Row, UnreadRows, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from tests.formats.reading import HEADER, codes, read, refused, rows_of

ROW = "AB 1,M-1,Robin,Sample\n"
PLAIN = HEADER + ROW
KEYS = {"external_id": "AB 1", "member_id": "M-1"}
EXPECTED: dict[str, object] = {**KEYS, "first_name": "Robin", "last_name": "Sample"}


@pytest.mark.parametrize("delimiter", [",", "\t", "|", ";"])
@pytest.mark.parametrize("titles", ["", "Members, all; of | them\t\n", '"a title\nof two lines"\n'])
def test_the_delimiter_is_that_of_the_header_whatever_the_titles_hold(
    delimiter: str, titles: str
) -> None:
    assert rows_of(titles + PLAIN.replace(",", delimiter)) == [
        Row(3 if titles else 2, dict(EXPECTED))
    ]


@pytest.mark.parametrize("line", ["sep=;\r\n", "SEP=;\n", '"sep=;"\n', "sep=;;;\n"])
def test_the_separator_line_of_excel_names_the_delimiter_and_is_no_row(line: str) -> None:
    [row] = rows_of(line + "external_id;city\n1;Boston, MA\n")
    assert (row.place, row.values) == (2, {"external_id": "1", "city": "Boston, MA"})


TITLES = (
    '"Eligibility, as of 11/20/2026",,,\n\nExample Health;"confidential"\n'
    "Plan: Gold,First name of contact: Kim\n"
)


def test_the_header_is_the_first_row_with_the_key() -> None:
    assert rows_of(TITLES + PLAIN) == [Row(6, EXPECTED)]
    assert [row.place for row in rows_of("external_id\nexternal_id,first_name,last_name\n")] == [2]
    mapping: dict[str, Any] = {"fields": {"external_id": {"column": ["Group", "No"], "join": "-"}}}
    mapping["columns"] = {"Surname": "last_name"}
    [row] = rows_of("Group list\n\nGroup,No,Surname\n7,8,Sample\n", mapping=mapping)
    assert row.values == {"external_id": "7-8", "last_name": "Sample"}
    code, sentence = refused(lambda: rows_of("A title\nfirst_name,last_name\nRobin,Sample\n"))
    assert (code, sentence[:6]) == ("no_key_column", "Row 2:"), "the row that names most"
    for far in ("x\n" * 60, ("x" * 60_000 + "\n") * 3):
        assert refused(lambda far=far: rows_of(far + PLAIN))[0] == "no_header"  # type: ignore[misc]
    content = "external_id,city\nexternal_id,state\n1,MA\n"
    [row] = rows_of(content, mapping={"header_row": 2})
    assert row.values == {"external_id": "1", "state": "MA"}
    for wrong in (3, 9):
        mapping = {"header_row": wrong}
        found = refused(lambda mapping=mapping: rows_of(content, mapping=mapping))  # type: ignore[misc]
        assert found[0] == "no_header"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("1,2,Robin,Sample", "no_header"),
        ('"1,2', "rows_run_together"),
        ("member_id,first_name", "no_key_column"),
        ("external_id,city,City", "repeated_column"),
        ("external_id,metadata,metadata.a", "repeated_column"),
    ],
)
def test_a_header_that_can_not_be_used_refuses_the_file(header: str, code: str) -> None:
    found, sentence = refused(lambda: read(f"{header}\n1,2,3,4\n", format_=Format.CSV))
    assert (found, sentence[:7]) == (code, "Row 1: ")


@pytest.mark.parametrize("name", ["EXTERNAL_ID", " externalId ", "external-id", '"external id"'])
def test_header_names_forgive_case_spaces_and_underscores(name: str) -> None:
    assert rows_of(f"{name},city\nAB 1,Boston\n")[0].values == {
        "external_id": "AB 1",
        "city": "Boston",
    }


def test_a_mapping_names_columns_and_the_rest_are_ignored() -> None:
    mapping = {"columns": {"Emp No": "external_id", "Div": "metadata.Division", "ZIP": "zipcode"}}
    head, rows = read(
        "emp no,,DIV,zip,Shoe size é, \n7,x,North,02134,42,z\n,y,,,500,\n", mapping=mapping
    )
    assert list(head.ignored) == ["(column 2)", "Shoe%20size%20%C3%A9", "(column 6)"]
    metadata = {"Division": "North"}
    assert rows == [
        Row(2, {"external_id": "7", "zipcode": "02134", "metadata": metadata}),
        Row(3, {}),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_every_kind_of_line_end_is_read_and_the_last_line_needs_none_packed_or_not(
    end: str,
) -> None:
    content = PLAIN.replace("\n", end) if end else PLAIN.rstrip("\n")
    head = content[:20].encode()
    rest = content[20:].encode()
    for raw in (head + rest, gzip.compress(head) + gzip.compress(rest) + b"\0" * 512):
        assert rows_of(raw)[0].values == EXPECTED


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [("utf-8", "utf-8-sig"), ("UTF8", "utf-8"), ("utf-16", "utf-16"),
     ("windows-1252", "cp1252"), ("latin-1", "iso8859-1")],
)  # fmt: skip
def test_a_declared_encoding_is_read_with_and_without_a_byte_order_mark(
    encoding: str, codec: str
) -> None:
    raw = PLAIN.replace("Robin", "Zoë").encode(codec)
    assert rows_of(raw, encoding=encoding, format_=Format.CSV)[0].values == EXPECTED | {
        "first_name": "Zoë"
    }


CELLS: list[tuple[str, str, Any]] = [
    ("city", "", ...),
    ("city", r"\N", None),
    ("city", "null", "null"),
    ("zipcode", "02134", "02134"),
    ("invite_immediately", "TRUE", True),
    ("invite_immediately", "yes", "yes"),
    ("relationship_code_hipaa", "1", 1),
    ("relationship_code_hipaa", "01", "01"),
    ("relationship_code_hipaa", "G8", "G8"),
    ("metadata", '"{""a"": ""b""}"', {"a": "b"}),
    ("metadata", '"{""a"": ""b"", ""a"": ""c""}"', '{"a": "b", "a": "c"}'),
    ("metadata", r"\N", None),
]


@pytest.mark.parametrize(("column", "cell", "value"), CELLS)
def test_a_cell_becomes_what_a_request_body_would_carry(
    column: str, cell: str, value: object
) -> None:
    [row] = rows_of(f"external_id,{column}\n1,{cell}\n")
    assert row.values.get(column, ...) == value
    assert (row.faults, row.action, row.plan) == ((), Action.ENROL, None)


def test_metadata_columns_become_one_object() -> None:
    rows = rows_of("external_id,metadata.a,Metadata.B b\n1,North,7\n2,North,\n3,,\n4,\\N,\n")
    found = [row.values.get("metadata") for row in rows]
    assert found == [{"a": "North", "B b": "7"}, {"a": "North"}, None, {}]


def test_rows_are_numbered_as_a_spreadsheet_does_and_empty_ones_are_passed_over() -> None:
    content = HEADER + '1,2,"a\nb",c\n\n,,,\n   ,,,\n  \n2,3,d,e\n'
    assert [(row.place, row.values["external_id"]) for row in rows_of(content)] == [
        (2, "1"),
        (7, "2"),
    ]


def test_a_row_with_bad_cells_is_refused_alone_under_its_key() -> None:
    few, many, bad, good, last = rows_of(
        HEADER + '1,2,3\n2,3,4,5,6\n3,2,"Ro"bin,d\n4,5,6,7\n5,3,"e,f'
    )
    assert [row.values for row in (few, many, bad)] == [{"external_id": key} for key in "123"]
    wrong = ("row", "wrong_column_count")
    quoting = ("row", "bad_quoting")
    found = [codes(row) for row in (few, many, bad, last, good)]
    assert found == [[wrong], [wrong], [quoting], [quoting], []]
    message = "has 3 cells where the header has 4 columns: quote a cell with a delimiter"
    assert few.faults[0].message == message


@pytest.mark.parametrize("tail", ['1,2,"Robin,d\n2,3,"e",f\n', '1,2,"Robin,d\n2,3,e,f\n'])
def test_an_open_quotation_mark_that_takes_in_other_rows_refuses_the_file(tail: str) -> None:
    code, sentence = refused(lambda: read(HEADER + "0,1,a,b\n" + tail))
    assert (code, sentence[:7]) == ("rows_run_together", "Row 3: ")


LINES = [f"AB{n},M-{n},Robin,Sample\n" for n in range(40)]
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
def test_rows_are_the_same_in_small_blocks(
    monkeypatch: pytest.MonkeyPatch, kind: str, encoding: str
) -> None:
    text = HEADER + "".join([*LINES[:20], ODD[kind], *LINES[20:], ODD[kind]])
    rows = told([*read_rows(items_of(text, encoding))])
    numbers = [row[1].get("member_id") for row in rows]
    assert [number for number in numbers if number not in ("M-99", None)] == [
        f"M-{n}" for n in range(40)
    ]
    for size in (16, 61, 500):
        monkeypatch.setattr(source, "_BLOCK", size)
        assert told([*read_rows(items_of(text, encoding))]) == rows


@pytest.mark.parametrize("kind", ["quoted", "letters", "no key", "two signs as the end"])
def test_rows_beside_an_odd_one_are_still_recognised_together(kind: str) -> None:
    [rows] = items_of(HEADER + "".join([*LINES[:20], ODD[kind], *LINES[20:]]))
    assert isinstance(rows, UnreadRows)
    assert (rows.place, len(rows)) == (2, 41)
    first, second, *_ = read_rows([rows.part(20)])
    assert [(row.place, row.values["member_id"]) for row in (first, second)] == [
        (22, "M-99"),
        (23, "M-20"),
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_line_too_long_or_wrongly_encoded_is_named(
    monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    above = HEADER + "".join(LINES * 10)  # more than the header is looked for in
    for bad, code in (("x" * source.LONGEST_LINE, "line_too_long"), ("\udcff", "wrong_encoding")):
        text = (above + f"AB99,M-99,{bad},Sample\n" + LINES[0]).replace("\n", ending)
        for size in (64, 64 * 1024):
            monkeypatch.setattr(source, "_BLOCK", size)
            content = io.BytesIO(text.encode("utf-8", "surrogateescape"))
            with pytest.raises(Unreadable, match="Line 402:") as error:
                [*open_unread(content, Format.CSV, "utf-8", parse_mapping({"delimiter": ","}))[1]]
            assert error.value.code == code
