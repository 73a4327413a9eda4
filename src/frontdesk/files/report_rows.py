"""Pages of a report by the row: each row once, with all of its faults and warnings, and the member
that it is about.
"""

from frontdesk.db import Tx
from frontdesk.files import row_store
from frontdesk.files.model import RowOutcome
from frontdesk.files.report import ReportCursor, ReportFilter, is_selected, report_lines


def row_page(
    tx: Tx, file_id: int, selection: ReportFilter, *, after: ReportCursor, size: int
) -> tuple[list[RowOutcome], ReportCursor | None]:
    """Up to `size` rows with a selected line, from the cursor on, and the cursor of the next page;
    None after the last page. The cursor's `line` counts selected rows of its chunk.
    """
    page: list[RowOutcome] = []
    from_chunk = after.chunk
    while True:
        chunk = row_store.next_chunk(tx, file_id, from_chunk, word=selection.word)
        if chunk is None:
            return page, None
        found = row_store.chunk_outcomes(tx, file_id, chunk, **selection._asdict())
        rows = [row for row in found if _has_selected_line(row, selection)]
        start = after.line if chunk == after.chunk else 0
        end = start + size - len(page)
        page += rows[start:end]
        if end < len(rows):
            return page, ReportCursor(chunk, end)
        from_chunk = chunk + 1


def _has_selected_line(row: RowOutcome, selection: ReportFilter) -> bool:
    return any(is_selected(line, row, selection) for line in report_lines(row, {}))
