"""Rows of a sheet of a workbook (.xlsx): as of a CSV, but that dates, numbers and booleans are real (docs/file-formats.md)."""

import marshal
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from typing import IO, Any

from frontdesk.errors import Fault, Unavailable
from frontdesk.files.mapping import SEARCHED_ROWS, FileMapping
from frontdesk.files.model import NOTHING_YET, FileHeader, Format, ReadItem, Row, Unreadable, no_rows
from frontdesk.files.readers.header import find_header
from frontdesk.files.readers.source import LONGEST_LINE
from frontdesk.files.readers.table import TableColumns
from frontdesk.files.readers.unpacking import (
    LARGEST_CONTENT,
    LARGEST_RATIO,
    OLE_MAGIC,
    RATIO_COUNTS_FROM,
    ZIP_MAGIC,
)
from frontdesk.files.steps import ChildPipe, LookOut, Steps

_LIMITS = (LARGEST_CONTENT, LARGEST_RATIO, RATIO_COUNTS_FROM, LONGEST_LINE)
_PASSWORD_MARK = "EncryptedPackage".encode("utf-16-le")
_BLOCK = 1024 * 1024
READER = (sys.executable, "-m", "frontdesk.workbooks")

# How a child ends that reached its limits, or that a hostile file has brought down: not for reasons outside the file.
OF_THE_FILE = {-signal.SIGABRT, -signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL}

_ERRORS = frozenset({"#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"})
_CELL_ERROR = Fault("row", "cell_error", "a cell that is read holds an error of Excel, such as #N/A")

NumberedCells = tuple[int, Sequence[str]]


def read_workbook(content: IO[bytes], mapping: FileMapping) -> Steps[tuple[FileHeader, Iterator[ReadItem]]]:
    """The header and the rows of the mapping's sheet, else of the first one that is shown; in steps, and between the rows is
    NOTHING_YET, since the reading process may be long silent.

    Raises Unreadable, and Unavailable if the reading process was ended from outside.
    """
    numbered = _numbered_cells(content, mapping.sheet)
    with ExitStack() as on_failure:
        on_failure.callback(numbered.close)
        header, rows = yield from _opened(numbered, mapping)
        on_failure.pop_all()
    return header, rows


def _opened(
    numbered: Iterator[NumberedCells | None], mapping: FileMapping
) -> Steps[tuple[FileHeader, Iterator[ReadItem]]]:
    first: list[NumberedCells] = []  # the rows among which the header is, and the one after them
    for item in numbered:
        if item is None:
            yield
            continue
        first.append(item)
        if item[0] > SEARCHED_ROWS:
            break
    if not first:
        raise Unreadable("no_rows", "The sheet is empty.")
    searched: list[Sequence[str]] = [()] * min(first[-1][0], SEARCHED_ROWS)
    for number, cells in first:
        if number <= SEARCHED_ROWS:
            searched[number - 1] = cells
    place = find_header(searched, mapping).place
    columns = TableColumns(without_blank_end(searched[place - 1]), mapping, place=place)
    below = (item for item in chain(first, numbered) if item is None or item[0] > place)
    return FileHeader(Format.XLSX, ignored=columns.ignored), _rows(below, columns)


def sheet_rows(content: IO[bytes], sheet: str | None) -> Generator[NumberedCells]:
    """Number and cells of each row that is not blank, of the sheet or else of the first one that is shown.

    Raises Unreadable from the iterator. Close the iterator to end the process that reads.
    """
    with closing(_numbered_cells(content, sheet)) as numbered:
        yield from filter(None, numbered)


def without_blank_end(cells: Sequence[str]) -> Sequence[str]:
    named = [number for number, name in enumerate(cells, 1) if name.strip()]
    return cells[: max(named, default=0)]


def _rows(numbered: Iterable[NumberedCells | None], columns: TableColumns) -> Iterator[ReadItem]:
    width, found, skipped = columns.width, False, False
    for item in numbered:
        if item is None:
            yield NOTHING_YET
            continue
        number, given = item
        # What stands beside the table has no name, so it is ignored.
        cells = [*given[:width], *[""] * (width - len(given))]
        if not any(map(str.strip, cells)):
            continue
        if columns.skips(cells):
            skipped = True
            yield Row(number, {}, skipped=True)
            continue
        found = True
        if _ERRORS.isdisjoint(cells) or _ERRORS.isdisjoint(cells[position] for position in columns.read):
            yield columns.row(number, cells)
        else:
            yield Row(number, columns.key_of(cells), faults=(_CELL_ERROR,))
    if not found:
        raise no_rows("The sheet has a header and no row below it.", skipped=skipped)


def _numbered_cells(content: IO[bytes], sheet: str | None) -> Generator[NumberedCells | None]:
    """Number and cells of each row that is not blank, from the process that reads the workbook; None now and then."""
    if (start := content.read(len(OLE_MAGIC))).startswith(OLE_MAGIC):
        raise _old_workbook(content)
    if not start.startswith(ZIP_MAGIC):
        raise Unreadable("not_workbook", "The file is no workbook (.xlsx).")
    # The process needs a file that it can seek in. This one has no name, and is gone with its last descriptor.
    with tempfile.TemporaryFile() as file:
        look, block = LookOut(), start
        while block:
            file.write(block)
            if look.is_due():
                yield None
            block = content.read(_BLOCK)
        file.seek(0)
        command = [*READER, *map(str, _LIMITS), *([] if sheet is None else [sheet])]
        # A session of its own, so that Ctrl-C reaches this process only; no stderr, which could hold a value of a member.
        options: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
        with subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, **options) as child:  # noqa: S603 - our own
            try:
                if child.stdout is None:
                    raise Unavailable("The process that reads workbooks could not be started.")
                pipe = ChildPipe(child.stdout)
                while rows := (yield from _read_rows(child, pipe)):
                    yield from rows
            finally:
                child.kill()


def _read_rows(child: "subprocess.Popen[bytes]", pipe: ChildPipe) -> Steps[list[NumberedCells]]:
    """The next rows; none after the last."""
    content = yield from pipe.read_block()
    if content is None:
        if child.wait() in OF_THE_FILE:
            raise _too_large()
        raise Unavailable("The process that reads the workbook ended early.")
    block = marshal.loads(content)  # noqa: S302 - written by our own child
    if isinstance(block, tuple):
        code, message, row = block
        raise _too_large() if code == "sheet_too_large" else Unreadable(code, message, place=row)
    return block  # type: ignore[no-any-return]


def _too_large() -> Unreadable:
    message = "The sheet is too large to be read. Delete what stands far below or beside the table, or save it as CSV."
    return Unreadable("sheet_too_large", message)


def _old_workbook(content: IO[bytes]) -> Unreadable:
    """Says what the file is: Excel encrypts a workbook into a container of the kind that .xls has."""
    before = b""
    while block := content.read(_BLOCK):
        if _PASSWORD_MARK in before + block:
            return Unreadable("encrypted_workbook", "The workbook has a password. Save it without one.")
        before = block[-len(_PASSWORD_MARK) :]
    return Unreadable("old_workbook", "The file is an older workbook (.xls). Save it as .xlsx or as CSV.")
