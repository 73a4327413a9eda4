"""Rows of a sheet of a workbook (.xlsx), from the process that reads it (frontdesk.workbooks): as
of a CSV, but that dates, numbers and booleans are real (docs/file-formats.md).
"""

import marshal
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import IO, Any

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.errors import Unavailable
from frontdesk.formats import source
from frontdesk.formats.model import SEARCHED_ROWS, HeaderRank, SplitRow, Table, Unreadable

_LIMITS = (
    source.LARGEST_CONTENT,
    source.LARGEST_RATIO,
    source.RATIO_COUNTS_FROM,
    source.LONGEST_LINE,
)
_BLOCK = 1024 * 1024
LOOK_MILLISECONDS = 1000
OTHER_SHEETS = "The workbook has other sheets: name the one that holds the members."
READER = (sys.executable, "-m", "frontdesk.workbooks")

# A session of its own, so that Ctrl-C reaches a child only from here; no stderr, which could hold a
# value of a member.
DETACHED: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
# Exit statuses of a child that reached its limits or crashed on a hostile file.
OF_THE_FILE = {-signal.SIGABRT, -signal.SIGXCPU, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL}

_ERRORS = frozenset(
    {"#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"}
)

_Row = tuple[int, list[str]]  # with its number


def read_sheet(
    content: IO[bytes],
    rank: HeaderRank,
    sheet: str | None,
    go_on: Callable[[], None] = lambda: None,
) -> Table:
    """The header, that of the highest rank, and the rows of the sheet, else of the first one that
    is shown, each as wide as the header: what stands beside the table has no name. Calls `go_on`
    each second while the reading process is silent.

    Raises Unreadable, and Unavailable if the reading process was ended from outside, here or from
    the rows.
    """
    blocks = _blocks(content, sheet, go_on)
    chosen = next(blocks)
    rows: Iterator[_Row] = chain.from_iterable(blocks)
    first = [*islice(rows, SEARCHED_ROWS + 1)]
    if not first:
        more = f" {OTHER_SHEETS}" if chosen["others"] else ""
        raise Unreadable(codes.files.NO_ROWS, f"The sheet is empty.{more}")
    searched = [row for row in first if row[0] <= SEARCHED_ROWS]
    place, names = max(searched, key=lambda row: rank(*row), default=(1, []))
    while names and not names[-1].strip():
        names.pop()
    width = len(names)
    below: Iterator[SplitRow] = (
        (number, [*cells[:width], *[""] * (width - len(cells))], None, None)
        for number, cells in chain(first, rows)
        if number > place
    )
    return Table(
        names,
        place,
        iter([below]),
        errors=_ERRORS,
        is_1904=chosen["is_1904"],
        sheet=chosen["sheet"],
        other_sheets=chosen["others"],
    )


def _blocks(content: IO[bytes], sheet: str | None, go_on: Callable[[], None]) -> Iterator[Any]:
    """What the workbook says of the sheet, then lists of the rows that are not blank, from the
    process that reads the workbook (frontdesk.workbooks), which ends with the iterator.
    """
    if (start := content.read(len(source.OLE_MAGIC))).startswith(source.OLE_MAGIC):
        # Excel encrypts into a container of the kind that .xls has
        raise Unreadable(codes.files.OLD_WORKBOOK)
    if not start.startswith(source.ZIP_MAGIC):
        raise Unreadable(codes.files.NOT_WORKBOOK, "The file is no workbook (.xlsx).")
    # The process needs a file that it can seek in. This one has no name, and is gone with its last
    # descriptor.
    with tempfile.TemporaryFile() as file:
        block = start
        while block:
            file.write(block)
            block = content.read(_BLOCK)
        file.seek(0)
        command = [*READER, *map(str, _LIMITS), *([] if sheet is None else [sheet])]
        with subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, **DETACHED) as child:  # noqa: S603 - our own
            try:
                if child.stdout is None:
                    raise Unavailable("The process that reads workbooks could not be started.")
                yield _read_block(child, child.stdout, go_on)
                while rows := _read_block(child, child.stdout, go_on):
                    yield rows
            finally:
                child.kill()


def _read_block(
    child: "subprocess.Popen[bytes]", pipe: IO[bytes], go_on: Callable[[], None]
) -> dict[str, Any] | list[_Row]:
    """What the process writes next: of the sheet, then rows; none after the last."""
    length = int.from_bytes(_read(pipe, 4, go_on), "big")
    content = _read(pipe, length, go_on)
    if not length or len(content) < length:
        if child.wait() in OF_THE_FILE:
            raise Unreadable(codes.files.SHEET_TOO_LARGE)
        raise Unavailable("The process that reads the workbook ended early.")
    block = marshal.loads(content)  # noqa: S302 - written by our own child
    if isinstance(block, tuple):
        code, message, row = block
        raise Unreadable(codes.CODES[Where.FILE, code], message, place=row)
    return block  # type: ignore[no-any-return]


def _read(pipe: IO[bytes], size: int, go_on: Callable[[], None]) -> bytes:
    """So many bytes, fewer at the end. Nothing else may read the pipe."""
    poll = select.poll()
    content = bytearray()
    poll.register(pipe, select.POLLIN)
    while len(content) < size:
        if not poll.poll(LOOK_MILLISECONDS):
            go_on()
        elif piece := os.read(pipe.fileno(), size - len(content)):
            content += piece
        else:
            break
    return bytes(content)
