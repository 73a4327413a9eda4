"""The faults and warnings of a file by their code: how many, where, what to do, and the first lines.

The mend is at the source: who exports the file corrects it there, and loads it again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from frontdesk import codes
from frontdesk.codes import Code, Remedy, Where
from frontdesk.db import Tx
from frontdesk.files import model
from frontdesk.files.report import ReportCursor, ReportFilter, ReportLine, find_page

FIRST_LINES = 3


class FaultGroup(NamedTuple):
    """The lines of a report with one code. `lines` is their number: a row has one for each fault.
    `fields` are those of the first lines, `sentence` and `remedy` are the code's. `is_warning`: the
    rows were taken nevertheless.
    """

    code: str
    lines: int
    is_warning: bool
    fields: Sequence[str]
    sentence: str
    remedy: Remedy | None
    first: Sequence[ReportLine]

    @property
    def is_refusal(self) -> bool:
        """Whether rows were refused; else they were taken, or tell of a person whom the file omits."""
        return any(line.outcome in (model.REFUSED, model.KEPT) for line in self.first)


def group_faults(
    tx: Tx, file: model.EligibilityFile, *, first: int = FIRST_LINES
) -> list[FaultGroup]:
    """The file's codes so far: those of refused rows and of lists first, then warnings; of both the
    most frequent first. Reads for each code the chunks with its `first` lines alone.
    """
    groups = [_group(tx, file.id, code, lines, first) for code, lines in file.codes.items()]
    return sorted(groups, key=lambda group: (group.is_warning, -group.lines, group.code))


def _group(tx: Tx, file_id: int, code: str, lines: int, most: int) -> FaultGroup:
    selection = ReportFilter(code=code)
    begin = ReportCursor()
    first, _ = find_page(tx, file_id=file_id, selection=selection, after=begin, size=most)
    is_warning = all(line.outcome == model.WARNED for line in first)
    entry = codes.find_warning(code) if is_warning else _find_fault(code)
    return FaultGroup(
        code=code,
        lines=lines,
        is_warning=is_warning,
        fields=[*dict.fromkeys(line.field for line in first if line.field)],
        sentence=entry.sentence if entry else "",
        remedy=entry.remedy if entry else None,
        first=first,
    )


def _find_fault(code: str) -> Code | None:
    """The entry of a refused row's code, or of a line of a list, which may have a warning's word."""
    places = (Where.ROW, Where.FAULT, Where.WARNING)
    return next((entry for where in places if (entry := codes.find(where, code))), None)
