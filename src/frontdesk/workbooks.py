"""Reads a sheet of a workbook (.xlsx) in a process of its own, `python -m frontdesk.workbooks`,
which imports nothing else of the package: it starts in 0.1 s and has its memory for itself
(docs/decisions/0090). `formats.workbook` starts it.

Standard input is the workbook, a file that can be sought in; the arguments are the limits and the
sheet's name. Standard output gets `marshal` values, each behind its length in four bytes: what the
workbook says of the sheet (`SheetChoice.said`), lists of `(row number, cells as texts)`, then an
empty list; or a `(code, message, row number)` of the fault of an unreadable workbook.

calamine holds a whole sheet: 200,000 rows of 20 columns took 370 MiB. So it gets the sheet a few
MiB at a time, each piece in a small workbook of our own with the styles and the shared strings of
the file. It never sees the file itself.
"""

import io
import marshal
import posixpath
import re
import resource
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from itertools import islice
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree as ET

from python_calamine import CalamineWorkbook

MEMORY_BYTES = 1024 * 1024 * 1024
PROCESSOR_SECONDS = 600
ROWS_AT_ONCE = 500
MIB = 1024 * 1024
# Each piece parses the shared strings anew, so pieces are larger where there are many of them.
SMALLEST_PIECE = 4 * MIB
LARGEST_PIECE = 12 * MIB
MOST_SHEETS_NAMED = 50
MOST_SHEETS_LOOKED_INTO = 500
LOOKED_INTO_BYTES = 64 * 1024  # of each other sheet, to see whether it has a value
LONGEST_SHEET_NAME = 100  # Excel takes 31
WORKBOOK = "xl/workbook.xml"
STRINGS = "xl/sharedstrings.xml"
STYLES = "xl/styles.xml"

_SHEET_DATA = re.compile(rb"<((?:\w+:)?)sheetData\s*(/?)>")
_CELL_WITH_VALUE = re.compile(rb"<(?:\w+:)?[vt][\s>]")
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
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/%s" Target="%s"/></Relationships>'
)


class WorkbookFault(Exception):
    """The sheet can't be read: a code of formats.model, a message, and the row."""

    def __init__(self, code: str, message: str, row: int | None = None) -> None:
        super().__init__(code, message, row)


class SheetChoice(NamedTuple):
    """The sheet that is read: the name of its part, and of itself; whether days are counted from
    1904; and the names of the other sheets that have a value, of at most 50.
    """

    part: str
    name: str
    is_1904: bool
    others: list[str]

    def said(self) -> dict[str, Any]:
        """What the parent process is told."""
        return {"sheet": self.name, "is_1904": self.is_1904, "others": self.others}


class WorkbookPackage:
    """The parts of the workbook, by name in lower case, unpacked within limits: unpacked bytes;
    unpacked bytes per packed one, which count from so many on; letters of a row.
    """

    def __init__(self, stream: IO[bytes], limits: Sequence[int]) -> None:
        self._most, self._ratio, self._ratio_from, self.longest_row = limits
        self._zip = zipfile.ZipFile(stream)
        self._packed = self._unpacked = 0
        self.parts = {info.filename.lower().lstrip("/"): info for info in self._zip.infolist()}
        if len(self.parts) != len(self._zip.infolist()):
            raise WorkbookFault("bad_workbook", "Two parts of the workbook have the same name.")
        if WORKBOOK not in self.parts:
            message = (
                "The file is a ZIP archive, and no workbook (.xlsx). Save it as .xlsx or as CSV."
            )
            raise WorkbookFault("not_workbook", message)

    def open(self, name: str) -> IO[bytes]:
        """The part, of which no more can be read than its size, which is checked here."""
        info = self.parts.get(name.lower())
        if info is None:
            raise WorkbookFault("bad_workbook", "The workbook names a part that it does not have.")
        if info.flag_bits & 1:
            raise WorkbookFault(
                "encrypted_workbook", "The workbook has a password. Save it without one."
            )
        self._packed += info.compress_size
        self._unpacked += info.file_size
        if self._unpacked > self._most:
            raise WorkbookFault(
                "too_large", f"The workbook unpacks to more than {self._most:,} bytes."
            )
        if self._unpacked > max(self._ratio_from, self._ratio * self._packed):
            message = f"The workbook unpacks to over {self._ratio} times its size: no list of members does."
            raise WorkbookFault("zip_bomb", message)
        return self._zip.open(info)

    def may_have_values(self, name: str) -> bool:
        """Whether the sheet's part has a value, by its first bytes; true if they don't tell. What is
        looked at here is not read, so it counts against no limit.
        """
        try:
            with self._zip.open(self.parts[name.lower()]) as part:
                start = part.read(LOOKED_INTO_BYTES)
        except (
            KeyError,
            RuntimeError,
            NotImplementedError,
            OSError,
            zipfile.BadZipFile,
            zlib.error,
        ):
            return True
        return len(start) == LOOKED_INTO_BYTES or _CELL_WITH_VALUE.search(start) is not None

    def parsed(self, name: str) -> ET.Element:
        with self.open(name) as part:
            content = part.read()
        _refuse_entities(content)
        return ET.fromstring(content)  # noqa: S314 - without entities there is nothing to expand


def _refuse_entities(content: bytes) -> None:
    """Raises WorkbookFault for a declaration of entities, with which a short text can become a long
    one.
    """
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise WorkbookFault(
            "bad_workbook", "The workbook declares entities: no spreadsheet program does."
        )


def choose_sheet(package: WorkbookPackage, wanted: str | None) -> SheetChoice:
    """The sheet of the wanted name, else the first one that is shown."""
    book = package.parsed(WORKBOOK)
    targets = {
        relation.get("Id"): relation.get("Target") or ""
        for relation in package.parsed("xl/_rels/workbook.xml.rels")
        if (relation.get("Type") or "").endswith("/worksheet")
    }
    sheets = []
    for sheet in book.iterfind(".//{*}sheet"):
        identifier = next((value for key, value in sheet.items() if key.endswith("}id")), None)
        if identifier in targets:
            sheets.append((sheet.get("name") or "", sheet.get("state"), targets[identifier]))
    named = [
        sheet
        for sheet in sheets
        if wanted and sheet[0].strip().casefold() == wanted.strip().casefold()
    ]
    shown = [sheet for sheet in sheets if sheet[1] in (None, "visible")] or sheets
    found = shown if wanted is None else named
    if not found:
        name = "" if wanted is None else " of the name that the mapping or the upload gives"
        raise WorkbookFault("no_sheet", f"The workbook has no sheet{name}.")
    is_1904 = any(
        each.get("date1904") in ("1", "true") for each in book.iterfind(".//{*}workbookPr")
    )
    name, _, target = found[0]
    others = [sheet for sheet in sheets if sheet is not found[0]]
    filled = (
        other[:LONGEST_SHEET_NAME]
        for place, (other, _, of_other) in enumerate(others)
        if place >= MOST_SHEETS_LOOKED_INTO or package.may_have_values(_part_of(of_other))
    )
    return SheetChoice(
        _part_of(target), name[:LONGEST_SHEET_NAME], is_1904, [*islice(filled, MOST_SHEETS_NAMED)]
    )


def _part_of(target: str) -> str:
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")


def rows_of(
    package: WorkbookPackage, name: str, *, is_1904: bool
) -> Iterator[tuple[int, list[str]]]:
    """Number, from 1, and cells as texts, from the first column on, of each row of the part that is
    not blank.
    """
    strings = package.parts[STRINGS].file_size if STRINGS in package.parts else 0
    size = min(max(SMALLEST_PIECE, strings), LARGEST_PIECE)
    surroundings = _surroundings(package, is_1904=is_1904)
    done = 0
    with package.open(name) as part:
        for piece in pieces(part, size):
            top, left, rows = _table(surroundings, piece)
            # Rows without a number of their own are counted from the beginning of the piece.
            first = top if top >= done else done + top
            for done, values in enumerate(rows, first + 1):
                cells = [each if type(each) is str else _cell_text(each) for each in values]
                if (letters := sum(map(len, cells))) > package.longest_row:
                    message = (
                        f"longer than {package.longest_row:,} characters, which no member needs"
                    )
                    raise WorkbookFault("line_too_long", message, done)
                if letters:
                    yield done, [""] * left + cells


def pieces(part: IO[bytes], size: int) -> Iterator[bytes]:
    """The sheet's rows in pieces of about `size` bytes that end where a row does; each piece is a
    whole sheet of its own.
    """
    start = part.read(MIB)
    found = _SHEET_DATA.search(start)
    root = _ROOT.search(start)
    _refuse_entities(start)
    if found is None or root is None:
        raise WorkbookFault("bad_workbook", "The sheet has no table.")
    if found[2]:
        return
    prefix = found[1]
    row_end = b"</" + prefix + b"row>"
    data_end = b"</" + prefix + b"sheetData>"
    head = root[0] + b"<" + prefix + b"sheetData>"
    tail = data_end + b"</" + prefix + b"worksheet>"
    text = start[found.end() :]
    while (end := text.find(data_end)) < 0:
        if not (block := part.read(MIB)):
            raise WorkbookFault("bad_workbook", "The sheet ends in the middle.")
        text += block
        if len(text) >= size:
            cut = text.rfind(row_end) + len(row_end)
            if cut >= len(row_end):
                yield head + text[:cut] + tail
                text = text[cut:]
            elif len(text) > LARGEST_PIECE + MIB:
                raise WorkbookFault(
                    "line_too_long", "A row of the sheet is longer than any member can be."
                )
    yield head + text[:end] + tail


def _surroundings(package: WorkbookPackage, *, is_1904: bool) -> bytes:
    """A workbook that has the styles and the shared strings of the file, and no sheet yet."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("[Content_Types].xml", _TYPES)
        made.writestr("_rels/.rels", _RELATIONS % ("officeDocument", WORKBOOK))
        made.writestr(
            "xl/_rels/workbook.xml.rels", _RELATIONS % ("worksheet", "worksheets/sheet1.xml")
        )
        made.writestr(WORKBOOK, _BOOK % is_1904)
        for name, own in ((STRINGS, "xl/sharedStrings.xml"), (STYLES, STYLES)):
            if name not in package.parts:
                continue
            with package.open(name) as part, made.open(own, "w", force_zip64=True) as copy:
                while block := part.read(MIB):
                    _refuse_entities(block)
                    copy.write(block)
    return packed.getvalue()


def _table(surroundings: bytes, sheet: bytes) -> tuple[int, int, list[list[Any]]]:
    """The first row and the first column that are not blank, from 0, and the rows from there on."""
    packed = io.BytesIO(surroundings)
    with zipfile.ZipFile(packed, "a") as made:
        text = _ERROR.sub(rb'\1t="str"', sheet) if b't="e"' in sheet else sheet
        made.writestr("xl/worksheets/sheet1.xml", text)
    packed.seek(0)
    with CalamineWorkbook.from_filelike(packed) as book:
        packed.close()
        table = book.get_sheet_by_index(0)
    top, left = table.start or (0, 0)
    return top, left, table.to_python()


def _cell_text(value: Any) -> str:
    """The cell as a CSV would have it: ISO dates, whole numbers without a point, `true` and
    `false`.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if isinstance(value, datetime):
        return (
            value.date().isoformat()
            if value.time() == time()
            else value.isoformat(timespec="seconds")
        )
    return str(value)


def _write(value: Any) -> None:
    content = marshal.dumps(value)
    sys.stdout.buffer.write(len(content).to_bytes(4, "big") + content)
    sys.stdout.buffer.flush()


def main() -> None:
    """Send the rows, or the fault. Writing after the parent has ended ends the process."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open(0, "rb", closefd=False) as stream:
            package = WorkbookPackage(stream, [*map(int, sys.argv[1:5])])
            sheet = choose_sheet(package, next(iter(sys.argv[5:6]), None))
            rows = rows_of(package, sheet.part, is_1904=sheet.is_1904)
            _write(sheet.said())
            while block := [*islice(rows, ROWS_AT_ONCE)]:
                _write(block)
        _write([])
    except WorkbookFault as fault:
        _write(fault.args)
    except MemoryError:
        _write(("sheet_too_large", "", None))
    except BaseException:  # noqa: BLE001 - whatever a damaged file makes of the parsers, also a panic of Rust
        _write(("bad_workbook", "The workbook is damaged or cut off.", None))


if __name__ == "__main__":
    main()
