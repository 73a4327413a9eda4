"""The file as JSON, and the report of its rows, whole or by the page.

The report of every format has a line per row with its outcome. A refused row has a line per fault,
and each warning is a line of its own (`warned`).
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import orjson

from frontdesk import codes
from frontdesk.db import Database, Tx
from frontdesk.files import model, row_store
from frontdesk.plans import external_ids_of

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", *"\uff1d\uff0b\uff0d\uff20")


class ReportLine(NamedTuple):
    """One line of a report, column by column. `changed` has the names of the fields that the row
    changed, `left_plan` the external_id of the plan that a member left or would leave; both are
    empty on lines of warnings. Of an 834, `transaction` counts the STs of the file, `ordinal` the INS
    of that transaction. The two accesses are the days of a stored member before and after the row, if
    it changed them, as intervals (`2026-01-01/2026-12-31`, `2026-01-01/..` without an end).
    """

    row: int | None
    external_id: str | None
    outcome: str
    code: str
    field: str
    hint: str
    changed: Sequence[str] = ()
    left_plan: str | None = None
    transaction: int | None = None
    ordinal: int | None = None
    access_before: str | None = None
    access_after: str | None = None


COLUMNS = ReportLine._fields


class ReportFilter(NamedTuple):
    """Selects lines of a report: of this outcome, with this code, of rows with this identifier.
    None is any.
    """

    outcome: str | None = None
    code: str | None = None
    external_id: str | None = None

    @property
    def word(self) -> str | None:
        """Of the words that the lines must have, the one that fewer have."""
        return self.code or self.outcome


class ReportCursor(NamedTuple):
    """Where a page of a report begins: the chunk, and how many of its selected lines come before."""

    chunk: int = 0
    line: int = 0


ALL = ReportFilter()


def read_report(
    db: Database, file_id: int, selection: ReportFilter = ALL, *, as_csv: bool = False
) -> Iterator[bytes]:
    """The report as JSON lines, or as CSV with a header, by the chunk. No cell is a formula to a
    spreadsheet.
    """
    if as_csv:
        yield CSV_HEADER
    plans = dict[int, str]()
    read = partial(_next_lines, file_id=file_id, selection=selection, plans=plans)
    chunk = 0
    while (found := db.ask(partial(read, from_chunk=chunk))) is not None:
        chunk, lines = found
        chunk += 1
        if lines:
            yield csv_lines(lines) if as_csv else json_lines(lines)


def report_page(
    db: Database, file_id: int, selection: ReportFilter, *, after: ReportCursor, size: int
) -> tuple[list[ReportLine], ReportCursor | None]:
    """Up to `size` lines from the cursor on, and the cursor of the next page; None after the last
    page. With an outcome or a code it reads the chunks with such lines alone.
    """
    read = partial(find_page, file_id=file_id, selection=selection, after=after, size=size)
    return db.ask(read)


def find_page(
    tx: Tx, *, file_id: int, selection: ReportFilter, after: ReportCursor, size: int
) -> tuple[list[ReportLine], ReportCursor | None]:
    """As `report_page`, in a transaction."""
    page: list[ReportLine] = []
    plans = dict[int, str]()
    read = partial(_next_lines, tx, file_id=file_id, selection=selection, plans=plans)
    from_chunk = after.chunk
    while (found := read(from_chunk=from_chunk)) is not None:
        chunk, lines = found
        start = after.line if chunk == after.chunk else 0
        end = start + size - len(page)
        page += lines[start:end]
        if end < len(lines):
            return page, ReportCursor(chunk, end)
        from_chunk = chunk + 1
    return page, None


def _next_lines(
    tx: Tx, *, file_id: int, selection: ReportFilter, plans: dict[int, str], from_chunk: int
) -> tuple[int, list[ReportLine]] | None:
    """The number of the next chunk from this one on that may have selected lines, and these. `plans`
    keeps the external_ids of plans that were looked up.
    """
    chunk = row_store.next_chunk(tx, file_id, from_chunk, word=selection.word)
    if chunk is None:
        return None
    outcomes = row_store.chunk_outcomes(tx, file_id, chunk, **selection._asdict())
    left = {outcome.left_plan_id for outcome in outcomes if outcome.left_plan_id}
    unknown = left - plans.keys()
    if unknown:
        plans |= external_ids_of(tx, plan_ids=unknown)
    if selection == ALL:
        return chunk, [line for outcome in outcomes for line in report_lines(outcome, plans)]
    return chunk, [
        line
        for outcome in outcomes
        for line in report_lines(outcome, plans)
        if is_selected(line, outcome, selection)
    ]


def is_selected(line: ReportLine, outcome: model.RowOutcome, selection: ReportFilter) -> bool:
    """Lines of rows that take or give access have the outcome of the row, and count as `lost` or
    `gained` besides.
    """
    if selection.code not in (None, line.code):
        return False
    if selection.external_id not in (None, line.external_id):
        return False
    if selection.outcome in (model.LOST, model.GAINED):
        _, _, is_lost, is_gained = outcome.access or (None, None, False, False)
        is_meant = is_lost if selection.outcome == model.LOST else is_gained
        return bool(is_meant) and line.outcome != model.WARNED
    return selection.outcome in (None, line.outcome)


def report_lines(outcome: model.RowOutcome, plans: Mapping[int, str]) -> Iterator[ReportLine]:
    """The report's lines about one row. `plans` are the external_ids of plans by id."""
    lines = _lines_of(outcome, plans)
    number = outcome.transaction_number
    if not number:
        return lines
    ordinal = outcome.member_number
    return (line._replace(transaction=number, ordinal=ordinal) for line in lines)


def _lines_of(outcome: model.RowOutcome, plans: Mapping[int, str]) -> Iterator[ReportLine]:
    place = outcome.place
    external_id = outcome.external_id
    result = outcome.outcome
    left_plan = plans.get(outcome.left_plan_id or 0)
    before, after, *_ = outcome.access or (None, None)
    if outcome.faults:
        for field, code, message in outcome.faults:
            line = ReportLine(place, external_id, result, code, field, message, left_plan=left_plan)
            yield line._replace(access_before=before, access_after=after)
    else:
        code = hint = ""
        if place is None and result in model.BY_ABSENCE:
            code = codes.rows.ENDED_BY_ABSENCE
            hint = code.sentence
        line = ReportLine(place, external_id, result, code, "", hint, outcome.changed, left_plan)
        yield line._replace(access_before=before, access_after=after)
    for field, word, *more in outcome.warnings:
        yield ReportLine(place, external_id, model.WARNED, word, field, _hint(word, *more))


def _hint(word: str, detail: str = "", member_id: int = 0) -> str:
    """The sentence of a warning's code, and what is known besides."""
    entry = codes.find_warning(word)
    hint = entry.sentence if entry else ""
    if detail:
        hint += f" It {detail}."
    if member_id:
        hint += f" It looks like member {member_id}."
    return hint


def json_lines(lines: Sequence[ReportLine]) -> bytes:
    return b"".join(
        orjson.dumps(line._asdict(), option=orjson.OPT_APPEND_NEWLINE) for line in lines
    )


CSV_HEADER = (",".join(COLUMNS) + "\r\n").encode()


def csv_lines(lines: Sequence[ReportLine]) -> bytes:
    """The lines as CSV, without the header."""
    page = io.StringIO()
    csv.writer(page).writerows(map(_cells, lines))
    return page.getvalue().encode()


def _cells(line: ReportLine) -> tuple[object, ...]:
    texts = (line.external_id or "", *line[2:6], " ".join(line.changed), line.left_plan or "")
    access = (line.access_before, line.access_after)
    return (line.row, *map(_harmless, texts), line.transaction, line.ordinal, *access)


def _harmless(text: str) -> str:
    """Where the comma is the decimal sign, spreadsheets part cells at semicolons, within quotation
    marks too.
    """
    parts = text.split(";")
    return ";".join(
        "'" + part if part.lstrip(" ").startswith(_FORMULA_STARTS) else part for part in parts
    )
