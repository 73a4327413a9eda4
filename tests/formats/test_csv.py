"""CSV: delimiters, encodings, header names, mappings, what a cell becomes, and rows that are refused by themselves."""

import csv
import gzip
import io
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.eligibility import read_external_id, read_external_ids
from frontdesk.eligibility.model import Action
from frontdesk.formats.model import Format, Unreadable
from frontdesk.mapping.model import Row, UnreadRows, read_loops, read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from tests.formats.reading import HEADER, codes, read, refused, rows_of

PLAIN = HEADER + "AB 1,M-1,Robin,Sample\n"
EXPECTED = {"external_id": "AB 1", "member_id": "M-1", "first_name": "Robin", "last_name": "Sample"}


@pytest.mark.parametrize("delimiter", [",", "\t", "|", ";"])
def test_the_delimiter_is_found_in_the_header(delimiter: str) -> None:
    assert rows_of(PLAIN.replace(",", delimiter)) == [Row(2, dict(EXPECTED))]


def test_a_declared_delimiter_goes_before_what_the_header_looks_like() -> None:
    content = "external_id|a,first_name,last_name\n1,2,3\n"
    [row] = rows_of(content, mapping={"delimiter": "|", "columns": {"a,first_name,last_name": "city"}})
    assert codes(row) == [("row", "wrong_column_count")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_read(end: str) -> None:
    assert rows_of(PLAIN.replace("\n", end))[0].values == EXPECTED


def test_the_last_line_needs_no_end() -> None:
    assert rows_of(PLAIN.rstrip("\n"))[0].values == EXPECTED


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("UTF8", "utf-8"),
        ("utf-16", "utf-16"),
        ("cp1252", "cp1252"),
        ("windows-1252", "cp1252"),
        ("latin-1", "iso8859-1"),
        ("iso-8859-15", "iso8859-15"),
        ("mac-roman", "mac-roman"),
    ],
)
def test_a_declared_encoding_is_read_with_and_without_a_byte_order_mark(encoding: str, codec: str) -> None:
    raw = PLAIN.replace("Robin", "Zoë").encode(codec)
    assert rows_of(raw, encoding=encoding, format_=Format.CSV)[0].values == EXPECTED | {"first_name": "Zoë"}


def test_a_packed_file_is_known_by_its_content() -> None:
    two_members = gzip.compress(HEADER.encode()) + gzip.compress(b"AB 1,M-1,Robin,Sample\n") + b"\0" * 512
    assert rows_of(two_members)[0].values == EXPECTED


@pytest.mark.parametrize(
    "name", ["External ID", "EXTERNAL_ID", " externalId ", "external-id", '"external id"']
)
def test_header_names_forgive_case_spaces_and_underscores(name: str) -> None:
    assert rows_of(f"{name},city\nAB 1,Boston\n")[0].values == {"external_id": "AB 1", "city": "Boston"}


def test_a_mapping_names_the_columns_of_an_account() -> None:
    mapping = {"columns": {"Emp No": "external_id", "Div": "metadata.Division", "ZIP": "zipcode"}}
    [row] = rows_of("emp no,DIV,zip\n7,North,02134\n", mapping=mapping)
    assert row.values == {"external_id": "7", "zipcode": "02134", "metadata": {"Division": "North"}}


def test_a_column_without_a_field_is_ignored_and_named() -> None:
    head, [row] = read("external_id,Shoe size é,city\n1,42,Boston\n")
    assert head.ignored == ("Shoe%20size%20%C3%A9",)
    assert row.values == {"external_id": "1", "city": "Boston"}


CELLS: list[tuple[str, str, Any]] = [
    ("city", "", ...),
    ("city", "   ", ...),
    ("city", r"\N", None),
    ("city", "null", "null"),
    ("city", '"New\nYork"', "New\nYork"),
    ("city", '"a ""b"" c"', 'a "b" c'),
    ("city", "=1+1", "=1+1"),
    ("city", "@SUM(A1)", "@SUM(A1)"),
    ("zipcode", "02134", "02134"),
    ("phone", "(617) 555-0100", "(617) 555-0100"),
    ("invite_immediately", "TRUE", True),
    ("invite_immediately", "false", False),
    ("invite_immediately", "yes", "yes"),
    ("relationship_code_hipaa", "1", 1),
    ("relationship_code_hipaa", "01", "01"),
    ("relationship_code_hipaa", "G8", "G8"),
    ("metadata", '"{""a"": ""b""}"', {"a": "b"}),
    ("metadata", '"{""a"": ""b"", ""a"": ""c""}"', '{"a": "b", "a": "c"}'),
    ("metadata", "text", "text"),
    ("metadata", r"\N", None),
]


@pytest.mark.parametrize(("column", "cell", "value"), CELLS)
def test_a_cell_becomes_what_a_request_body_would_carry(column: str, cell: str, value: object) -> None:
    [row] = rows_of(f"external_id,{column}\n1,{cell}\n")
    assert row.values.get(column, ...) == value
    assert (row.faults, row.action, row.plan) == ((), Action.ENROL, None)


def test_the_clearing_word_can_be_chosen() -> None:
    [row] = rows_of(f"external_id,city,county\n1,CLEAR,{chr(92)}N\n", mapping={"clear": "CLEAR"})
    assert row.values == {"external_id": "1", "city": None, "county": r"\N"}


@pytest.mark.parametrize(
    ("cells", "metadata"),
    [("North,7", {"a": "North", "B b": "7"}), ("North,", {"a": "North"}), (",", ...), (r"\N,", {})],
)
def test_metadata_columns_become_one_object(cells: str, metadata: object) -> None:
    [row] = rows_of(f"external_id,metadata.a,Metadata.B b\n1,{cells}\n")
    assert row.values.get("metadata", ...) == metadata


def test_rows_are_numbered_as_a_spreadsheet_does_and_empty_ones_are_passed_over() -> None:
    content = HEADER + '1,2,"a\nb",c\n\n,,,\n   ,,,\n  \n2,3,d,e\n'
    assert [(row.place, row.values["external_id"]) for row in rows_of(content)] == [(2, "1"), (7, "2")]


def test_a_row_with_values_in_ignored_columns_only_is_a_row() -> None:
    assert rows_of("external_id,total\n,500\n") == [Row(2, {})]


def test_a_row_with_other_than_the_headers_columns_is_refused_and_keeps_its_key() -> None:
    few, many, good = rows_of(HEADER + "1,2,3\n2,3,4,5,6\n3,4,5,6\n")
    assert [codes(row) for row in (few, many, good)] == [[("row", "wrong_column_count")]] * 2 + [[]]
    assert (few.values, many.values) == ({"external_id": "1"}, {"external_id": "2"})
    assert (
        few.faults[0].message == "has 3 cells where the header has 4 columns: quote a cell with a delimiter"
    )


def test_bad_quoting_on_one_line_refuses_that_row_only() -> None:
    bad, good = rows_of(HEADER + '1,2,"Ro"bin,d\n2,3,e,f\n')
    assert (bad.place, bad.values, codes(bad)) == (2, {"external_id": "1"}, [("row", "bad_quoting")])
    assert good.values["external_id"] == "2"


def test_a_quotation_mark_open_at_the_end_of_the_file_refuses_the_last_row() -> None:
    good, bad = rows_of(HEADER + '1,2,c,d\n2,3,"e,f')
    assert (codes(good), codes(bad)) == ([], [("row", "bad_quoting")])


@pytest.mark.parametrize("tail", ['1,2,"Robin,d\n2,3,"e",f\n', '1,2,"Robin,d\n2,3,e,f\n'])
def test_an_open_quotation_mark_that_takes_in_other_rows_refuses_the_file(tail: str) -> None:
    code, sentence = refused(lambda: read(HEADER + "0,1,a,b\n" + tail))
    assert code == "rows_run_together"
    assert sentence.startswith("Row 3: ")


def test_a_nul_stays_in_its_cell_for_the_rules_to_refuse() -> None:
    assert rows_of(HEADER + "1,2,Ro\0bin,d\n")[0].values["first_name"] == "Ro\0bin"


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


def test_a_column_without_a_name_is_ignored_and_named_by_its_number() -> None:
    head, rows = read("external_id,,Division, \n1,x,y,z\n")
    assert (list(head.ignored), rows) == (
        ["(column 2)", "Division", "(column 4)"],
        [Row(2, {"external_id": "1"})],
    )


odd_letters = st.text(st.sampled_from("ab 1é\u200b\x1c\x00\x0b\u2028,;\t|'\"\n\r\\N"), max_size=6)
tables = st.lists(st.lists(odd_letters, min_size=3, max_size=3), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    table=tables,
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_rows_are_those_of_pythons_csv_reader_and_an_unread_one_has_the_key_of_the_read_one(
    table: list[list[str]], delimiter: str, quoting: Literal[0, 1]
) -> None:
    page = io.StringIO(newline="")
    writer = csv.writer(page, delimiter=delimiter, quoting=quoting)
    writer.writerows([["external_id", "city", "county"], *table])
    names = ("external_id", "city", "county")
    cells = list(csv.reader(io.StringIO(page.getvalue(), newline=""), delimiter=delimiter))[1:]
    expected = [
        {name: None if cell == r"\N" else cell for name, cell in zip(names, row, strict=True) if cell.strip()}
        for row in cells
        if any(map(str.strip, row))
    ]
    for rule in ({}, {"fields": {"external_id": {"column": "external_id", "pad": 2}}}):
        mapping = parse_mapping({"delimiter": delimiter} | rule)
        _, rows = open_unread(io.BytesIO(page.getvalue().encode()), Format.CSV, "utf-8", mapping)
        with suppress(Unreadable):  # all cells are blank
            items = list(read_loops(rows))
            keys: list[Any] = [
                key for item in items for key in (item.keys if isinstance(item, UnreadRows) else [item.key])
            ]
            found = list(read_rows(items))
            assert [*map(read_external_id, keys)] == [read_external_id(row.key) for row in found]
            assert [*read_external_ids(keys)] == [*map(read_external_id, keys)]
            assert [row.place for row in found] == sorted({row.place for row in found})
            if not rule:
                assert [row.values for row in found] == expected
