"""Workbooks (.xlsx): what a cell becomes, which sheet and header are read, and how large one may
be.
"""

import gzip
import io
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Any

import pytest

from frontdesk.formats.model import Format
from frontdesk.formats.workbook import read_sheet
from frontdesk.mapping.model import Row
from tests.formats.reading import codes, read, refused, rows_of
from tests.formats.workbooks import GOOD, HEADER, Formula, cell, raw_workbook, sheet_xml, workbook

ROW = ("E1", "Zoë", "Sample", "02134", date(1977, 1, 11), True)
VALUES: dict[str, object] = dict(zip(HEADER, ROW, strict=True)) | {"dob": "1977-01-11"}


def test_a_sheet_is_read_as_a_csv_is() -> None:
    head, rows = read(workbook([HEADER, ROW, [None] * 6, ("E2", "", "Sample", 2134, r"\N", False)]))
    assert (head.format, head.ignored) == (Format.XLSX, ())
    second: dict[str, object] = {
        "external_id": "E2",
        "last_name": "Sample",
        "zipcode": "2134",
        "dob": None,
    }
    assert rows == [Row(2, VALUES), Row(4, second | {"invite_immediately": False})]


def test_cells_become_what_a_person_would_write() -> None:
    values: list[tuple[Any, str]] = [
        (1.0, "1"),
        (-7, "-7"),
        (123456789012345, "123456789012345"),
        (0.1, "0.1"),
        (True, "true"),
        (datetime(2026, 1, 1), "2026-01-01"),  # noqa: DTZ001
        (datetime(2026, 1, 1, 8, 30), "2026-01-01T08:30:00"),  # noqa: DTZ001
        (date(9999, 12, 31), "9999-12-31"),
        (time(8, 30), "08:30:00"),
        (" 7 ", " 7 "),
        ("1977-01-11", "1977-01-11"),
    ]
    names = [f"metadata.{number}" for number in range(len(values))]
    [row] = rows_of(workbook([["external_id", *names], ["1", *(value for value, _ in values)]]))
    metadata = row.values["metadata"]
    assert isinstance(metadata, dict)
    assert list(metadata.values()) == [text for _, text in values]


def test_a_mapping_titles_blank_columns_and_notes_beside_the_table_do_no_harm() -> None:
    rule = {"column": "Until", "open": "9999-12-31"}
    mapping = {"fields": {"zipcode": {"column": "ZIP", "pad": 5}, "expiry_date": rule}}
    rows: list[list[Any]] = [
        ["Members, as of", date(2026, 11, 20)],
        [],
        [None, "external_id", "ZIP", "Until"],
        [None, 7.0, 2134, date(9999, 12, 31), None, "a note"],
    ]
    found: dict[str, object] = {"external_id": "7", "zipcode": "02134", "expiry_date": None}
    for said in (mapping, mapping | {"header_row": 3}):
        assert rows_of(workbook(rows), mapping=said) == [Row(4, found)]


def test_the_first_sheet_that_is_shown_is_read_or_the_named_one() -> None:
    sheets = {name: [["external_id"], [name]] for name in ("Lists", "Members", "Leavers")} | {
        "Empty": []
    }
    content = workbook([], sheets=sheets, hidden={"Lists"})
    for wanted, found in ((None, "Members"), (" leavers", "Leavers"), ("Lists", "Lists")):
        mapping = {} if wanted is None else {"sheet": wanted}
        assert [row.values["external_id"] for row in rows_of(content, mapping=mapping)] == [found]
    assert refused(lambda: rows_of(b"external_id\n1\n", format_=Format.XLSX))[0] == "not_workbook"
    for name, code in (("Nobody", "no_sheet"), ("Empty", "no_rows")):
        reading = partial(rows_of, content, mapping={"sheet": name})
        assert refused(reading)[0] == code


def test_a_formula_counts_by_its_stored_value_and_an_error_refuses_the_row() -> None:
    link = Formula('HYPERLINK("http://example.com/steal","Boston")', "Boston")
    rows = [["E1", link, Formula("1/0", "#DIV/0!", "e")], ["E2", Formula("NA()", "#N/A", "e")]]
    good, bad = rows_of(workbook([["external_id", "city", "helper"], *rows]))
    assert good.values == {"external_id": "E1", "city": "Boston"}
    assert (bad.values, codes(bad)) == ({"external_id": "E2"}, [("row", "cell_error")])


def test_what_other_programs_write_is_read() -> None:
    def inline(text: str) -> str:
        return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'

    names = "".join(map(inline, ("external_id", "city", "zipcode")))
    rich = '<c t="inlineStr"><is><r><t>E</t></r><r><rPr><b/></rPr><t>1</t></r></is></c>'
    rows = [
        f'<row r="1">{inline("Members")}</row><row r="2">{names}</row>',
        f'<row r="3">{rich}{inline(" Boston")}<c t="str"><v>02134</v></c></row>',
        *(
            f'<row r="{n}" s="1"><c r="A{n}" s="1"/><c r="XFD{n}" s="1"/></row>'
            for n in range(4, 3000)
        ),
    ]
    merged = '</sheetData><mergeCells count="1"><mergeCell ref="A1:C1"/></mergeCells>'
    text = sheet_xml(*rows).replace("</sheetData>", merged)
    found: dict[str, object] = {"external_id": "E1", "city": " Boston", "zipcode": "02134"}
    assert rows_of(raw_workbook(text)) == [Row(3, found)]


def test_days_since_1904_packed_files_and_unusual_parts_are_read() -> None:
    content = workbook([["external_id", "dob"], ["E1", date(1977, 1, 11)]], is_1904=True)
    assert rows_of(gzip.compress(content))[0].values == {"external_id": "E1", "dob": "1977-01-11"}
    # Numbers without a format of dates are days of the same count.
    dates: dict[str, Any] = {"fields": {"dob": {"dates": ["excel", "MM/DD/YYYY"]}}}
    for is_1904, number in ((True, 26674), (False, 28136)):
        rows: list[list[Any]] = [
            ["external_id", "dob"],
            ["E1", number],
            ["E2", "1/11/1977"],
            ["E3", number + 0.5],
        ]
        found = rows_of(workbook(rows, is_1904=is_1904), mapping=dates)
        assert {row.values["dob"] for row in found} == {"1977-01-11"}
    prefixed = re.sub(r"<(/?)(\w)", r"<\1x:\2", GOOD).replace("xmlns=", "xmlns:x=")
    without_numbers = re.sub(r' r="\w+"', "", GOOD)
    for sheet_text in (prefixed, without_numbers):
        assert rows_of(raw_workbook(sheet_text)) == [
            Row(2, {"external_id": "E1", "city": "Boston"})
        ]


# Only the process that reads workbooks needs calamine, so the tests of its inside import it when
# they run.


@pytest.mark.parametrize("has_numbers", [True, False])
def test_a_sheet_read_in_pieces_has_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, has_numbers: bool
) -> None:
    from frontdesk.workbooks import WorkbookPackage, choose_sheet
    from frontdesk.workbooks import rows_of as sheet_rows

    monkeypatch.setattr("frontdesk.workbooks.MIB", 20_000)
    monkeypatch.setattr("frontdesk.workbooks.SMALLEST_PIECE", 100_000)
    monkeypatch.setattr("frontdesk.workbooks.LARGEST_PIECE", 100_000)
    rows = [
        f'<row r="{n}">{"".join(cell(f"{letter}{n}", f"{letter}{n}") for letter in "BCD"[: 1 + n % 3])}</row>'
        for n in range(1, 4_000)
    ]
    text = sheet_xml(*rows)
    content = raw_workbook(text if has_numbers else re.sub(r' r="[0-9]+"', "", text))
    package = WorkbookPackage(io.BytesIO(content), (2**30, 200, 2**24, 65_536))
    sheet = choose_sheet(package, None)
    found = list(sheet_rows(package, sheet.part, is_1904=sheet.is_1904))
    assert [number for number, _ in found] == list(range(1, 4_000))
    assert all(cells[1] == f"B{number}" for number, cells in found)


def test_the_other_sheets_that_have_a_value_are_named() -> None:
    rows = [HEADER, ["E1"]]
    sheets: dict[str, Any] = {
        "Members": rows,
        "Blank": [],
        "Colours": [[None, None]],
        "More": rows,
        "Old": [["x"]],
    }
    table = read_sheet(
        io.BytesIO(workbook([], sheets=sheets, hidden=["Old"])), rank_of_fields, None
    )
    assert (table.sheet, table.other_sheets) == ("Members", ["More", "Old"])
    table = read_sheet(io.BytesIO(workbook(rows)), rank_of_fields, "members")
    assert (table.sheet, table.other_sheets) == ("Members", [])


def test_the_names_of_other_sheets_are_few_and_short() -> None:
    sheets = {"Members": [HEADER]} | {f"{n} {'x' * 200}": [["x"]] for n in range(60)}
    table = read_sheet(io.BytesIO(workbook([], sheets=sheets)), rank_of_fields, None)
    assert (len(table.other_sheets), {*map(len, table.other_sheets)}) == (50, {100})


def rank_of_fields(place: int, names: Sequence[str]) -> tuple[int, ...]:
    return ("external_id" in names, -place)
