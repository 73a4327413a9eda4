"""The rows of a sheet by calamine, in pieces.

calamine holds a whole sheet: 200,000 rows of 20 columns took 370 MiB. So it gets the sheet a few MiB at a time, each piece in
a small workbook of our own with the styles and the shared strings of the file. It never sees the file itself.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from python_calamine import CalamineWorkbook

from frontdesk.workbooks.package import (
    STRINGS,
    STYLES,
    WORKBOOK,
    WorkbookFault,
    WorkbookPackage,
    refuse_entities,
    sheet_part,
)

MIB = 1024 * 1024
# Each piece parses the shared strings anew, so pieces are larger where there are many of them.
SMALLEST_PIECE, LARGEST_PIECE = 4 * MIB, 12 * MIB

_SHEET_DATA = re.compile(rb"<((?:\w+:)?)sheetData\s*(/?)>")
_ROOT = re.compile(rb"<(?:\w+:)?worksheet[\s>][^>]*>?")
# calamine gives nothing for a cell with an error such as #N/A. Taken for a text, it can be refused.
_ERROR = re.compile(rb'(<(?:\w+:)?c\s[^<>]*)t="e"')
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_BOOK = (
    f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><workbookPr date1904="%d"/>'
    '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>'
)
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/%s" Target="%s"/></Relationships>'
)


def rows_of(package: WorkbookPackage, wanted: str | None) -> Iterator[tuple[int, list[Any]]]:
    """Number, from 1, and cells, from the first column on, of each row that is not blank."""
    name, is_1904 = sheet_part(package, wanted)
    size = min(max(SMALLEST_PIECE, package.size(STRINGS)), LARGEST_PIECE)
    surroundings = _surroundings(package, is_1904=is_1904)
    done = 0
    with package.open(name) as part:
        for piece in pieces(part, size):
            top, left, rows = _table(surroundings, piece)
            # Rows without a number of their own are counted from the beginning of the piece.
            first = top if top >= done else done + top
            margin = [""] * left
            for number, cells in enumerate(rows, first + 1):
                done = number
                if any(cell != "" for cell in cells):
                    yield number, margin + cells


def cell_text(value: Any) -> str:
    """The cell as a CSV would have it: ISO dates, whole numbers without a point, `true` and `false`."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return f"{value:.0f}"
        case datetime() if value.time() == time():
            return value.date().isoformat()
        case datetime():
            return value.isoformat(timespec="seconds")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
    return repr(value)


def pieces(part: IO[bytes], size: int) -> Iterator[bytes]:
    """The sheet's rows in pieces of about `size` bytes that end where a row does; each piece is a whole sheet of its own."""
    start = part.read(MIB)
    found = _SHEET_DATA.search(start)
    root = _ROOT.search(start)
    refuse_entities(start)
    if found is None or root is None:
        raise WorkbookFault("bad_workbook", "The sheet has no table.", None)
    if found[2]:
        return
    prefix = found[1]
    row_end, data_end = b"</" + prefix + b"row>", b"</" + prefix + b"sheetData>"
    head, tail = root[0] + b"<" + prefix + b"sheetData>", data_end + b"</" + prefix + b"worksheet>"
    text = start[found.end() :]
    while (end := text.find(data_end)) < 0:
        block = part.read(MIB)
        if not block:
            raise WorkbookFault("bad_workbook", "The sheet ends in the middle.", None)
        text += block
        if len(text) >= size:
            cut = text.rfind(row_end) + len(row_end)
            if cut >= len(row_end):
                yield head + text[:cut] + tail
                text = text[cut:]
            elif len(text) > LARGEST_PIECE + MIB:
                raise WorkbookFault(
                    "line_too_long", "A row of the sheet is longer than any member can be.", None
                )
    yield head + text[:end] + tail


def _surroundings(package: WorkbookPackage, *, is_1904: bool) -> bytes:
    """A workbook that has the styles and the shared strings of the file, and no sheet yet."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("[Content_Types].xml", _TYPES)
        made.writestr("_rels/.rels", _RELATIONS % ("officeDocument", WORKBOOK))
        made.writestr("xl/_rels/workbook.xml.rels", _RELATIONS % ("worksheet", "worksheets/sheet1.xml"))
        made.writestr(WORKBOOK, _BOOK % is_1904)
        for name, own in ((STRINGS, "xl/sharedStrings.xml"), (STYLES, STYLES)):
            if not package.has(name):
                continue
            with package.open(name) as part, made.open(own, "w", force_zip64=True) as copy:
                while block := part.read(MIB):
                    refuse_entities(block)
                    copy.write(block)
    return packed.getvalue()


def _table(surroundings: bytes, sheet: bytes) -> tuple[int, int, list[list[Any]]]:
    """The first row and the first column that are not blank, from 0, and the rows from there on."""
    packed = io.BytesIO()
    packed.write(surroundings)
    with zipfile.ZipFile(packed, "a") as made:
        made.writestr(
            "xl/worksheets/sheet1.xml", _ERROR.sub(rb'\1t="str"', sheet) if b't="e"' in sheet else sheet
        )
    packed.seek(0)
    with CalamineWorkbook.from_filelike(packed) as book:
        packed.close()
        table = book.get_sheet_by_index(0)
    top, left = table.start or (0, 0)
    return top, left, table.to_python()
