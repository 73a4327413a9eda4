"""The process. Standard input is the workbook, a file that can be sought in; the arguments are the limits and the sheet's name.

Standard output gets `marshal` values, each behind its length in four bytes: lists of `(row number, cells as texts)`, then an
empty list; or a `(code, message, row number)` of what makes the workbook unreadable.
"""

import marshal
import resource
import sys
from contextlib import suppress
from typing import IO, Any

from frontdesk.workbooks.package import WorkbookFault, WorkbookLimits, WorkbookPackage
from frontdesk.workbooks.sheet import cell_text, rows_of

MEMORY_BYTES, PROCESSOR_SECONDS = 1024 * 1024 * 1024, 600
ROWS_AT_ONCE = 500


def _write(value: Any) -> None:
    content = marshal.dumps(value)
    sys.stdout.buffer.write(len(content).to_bytes(4, "big") + content)
    sys.stdout.buffer.flush()


def _send(stream: IO[bytes], limits: WorkbookLimits, wanted: str | None) -> None:
    block: list[tuple[int, list[str]]] = []
    for number, values in rows_of(WorkbookPackage(stream, limits), wanted):
        cells = [cell_text(value) for value in values]
        if sum(map(len, cells)) > limits.row:
            raise WorkbookFault(
                "line_too_long", f"longer than {limits.row:,} characters, which no member needs", number
            )
        block.append((number, cells))
        if len(block) == ROWS_AT_ONCE:
            _write(block)
            block = []
    if block:
        _write(block)
    _write([])


def main() -> None:
    """Send the rows, or the fault."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limits, wanted = WorkbookLimits(*map(int, sys.argv[1:5])), next(iter(sys.argv[5:]), None)
    with suppress(BrokenPipeError):  # the parent is gone
        try:
            with open(0, "rb", closefd=False) as stream:
                _send(stream, limits, wanted)
        except BrokenPipeError:
            raise
        except WorkbookFault as fault:
            _write(fault.args)
        except MemoryError:
            _write(("sheet_too_large", "", None))
        except BaseException:  # noqa: BLE001 - whatever a damaged file makes of the parsers, also a panic of Rust
            _write(("bad_workbook", "The workbook is damaged or cut off.", None))


if __name__ == "__main__":
    main()
