"""Suggests a mapping for a file with names of its own: what its columns may hold, how sure that is, and what would
still be refused (docs/file-formats.md). Nothing is stored, and no value of a member is in the answer.

Files of any customer come over HTTP, so `suggest_apart` does it in a process of its own, with limits of memory and time. Its
standard input is the file, which can be sought in; its argument has the options as JSON. Its standard output gets the suggestion
as JSON, or `[code, message]` of what makes the file unreadable.
"""

import json
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS, check_dates, missing_on_create
from frontdesk.errors import Unavailable
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import open_source
from frontdesk.formats.workbook import DETACHED, OF_THE_FILE
from frontdesk.mapping.model import REPEATED
from frontdesk.mapping.opening import with_addresses
from frontdesk.mapping.parser import OPEN, parse_mapping, remedy_for
from frontdesk.mapping.suggest.columns import MappingDraft, draft_mapping
from frontdesk.mapping.suggest.rows import other_lines, status_questions, totals
from frontdesk.mapping.suggest.sample import Sample, masked, read_sample
from frontdesk.mapping.table import TableColumns
from frontdesk.mapping.values import FAMILY, field_named
from frontdesk.mapping.x12 import suggest_x12

if TYPE_CHECKING:
    from _typeshed import SupportsRead

# What the suggestion for an 834 has none of.
_OF_TABLES: dict[str, Any] = {
    "columns": [],
    "questions": [],
    "refused_rows": 0,
    "skipped_rows": 0,
    "refused": [],
}
MEMORY_BYTES, PROCESSOR_SECONDS = 512 * 1024 * 1024, 20
SECONDS = 8  # less than an answer may take
_COMMAND = [sys.executable, "-c", f"from {__name__} import main; main()"]
_TOO_LARGE = (
    "The file takes too long or too much memory to be looked at. Send a copy with its first 100 rows."
)


def suggest_mapping(
    stream: "SupportsRead[bytes]",
    *,
    today: str,
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
    is_cut: bool = False,
    sheet: str | None = None,
) -> dict[str, Any]:
    """A mapping for the file, of a table from its first 1,000 rows, as JSON (docs/interface.md); `is_cut` says that the stream is
    a part of it, `sheet` names a sheet of a workbook. The mapping can be stored once its `questions` are answered.

    `today` is `YYYY-MM-DD`. Raises Unreadable for what has no header, and as the readers do.
    """
    content, source, found = open_source(stream, format, encoding)
    if source is not None and found is Format.X12:
        suggested = suggest_x12(source, is_cut=is_cut)
        return _OF_TABLES | {"rows": suggested["people"]} | suggested
    sample = read_sample(content, source, found, is_cut=is_cut, sheet=sheet)
    other, members = other_lines(sample) or (None, sample)
    draft = draft_mapping(members, year=int(today[:4]))
    questions = status_questions(draft)
    mapping = _columns_and_fields(draft) | {
        "delimiter": sample.delimiter if sample.delimiter != "," else None,
        "skip": [*filter(None, [other]), *totals(draft)],
        "sheet": sheet if sample.format is Format.XLSX else None,
    }
    mapping = {name: part for name, part in mapping.items() if part}
    tried = _try(sample, mapping, today)
    asked = {"questions": {each["column"]: OPEN for each in questions}} if questions else {}
    return tried | {
        "type": "mapping_suggestions",
        "format": sample.format,
        "mapping": mapping | asked,
        "columns": _columns(draft),
        "questions": questions,
    }


def _columns_and_fields(draft: MappingDraft) -> dict[str, Any]:
    """Names alone in `columns`, what needs work in `fields`. A column with the name of a field needs neither, unless the field is
    another one."""
    names = draft.sample.names
    own = [field_named(name) for name in names]
    columns: dict[str, str | None] = {names[at]: None for at in draft.notes if own[at] in FIELDS}
    fields: dict[str, Any] = {}
    for target in sorted(draft.fields, key=[*FIELDS, FAMILY].index):
        found = draft.fields[target]
        [name, *others] = (names[at] for at in found.columns)
        held, is_plain = own[found.columns[0]], not (found.rule or others or target == FAMILY)
        if is_plain and held is None and name not in columns and target not in own:
            columns[name] = target
        elif not (is_plain and held == target):
            fields[target] = {"column": [name, *others] if others else name} | found.rule
    return {"columns": columns, "fields": fields}


def _columns(draft: MappingDraft) -> list[dict[str, Any]]:
    """What is suggested for each column, with masked samples of its values; `note` says why a column is not used although it has
    the name of a field."""
    sample = draft.sample
    real = frozenset(cell.strip() for row in (*sample.rows, *sample.odd_rows) for cell in row)
    return [
        {
            "column": name,
            "fields": [*uses],
            "confidence": max(uses.values(), default=0.0),
            "samples": masked(sample.column(at), real) if uses else [],
            "note": None if uses else draft.notes.get(at),
        }
        for at, name in enumerate(sample.names)
        for uses in [draft.uses(at)]
    ]


def _try(sample: Sample, mapping: dict[str, Any], today: str) -> dict[str, Any]:
    """Reads the rows by the mapping: how many would be refused if their members were new, and for what; how many left out."""
    given = [*sample.rows, *sample.odd_rows]
    table = TableColumns(sample.names, parse_mapping(mapping), place=1, needs_key=False)
    rows = [row for row in with_addresses(table.row(1, cells) for cells in given) if not row.skipped]
    records = [parse_member(row.values, today=today, lenient=True) for row in rows]
    versions: defaultdict[str | None, set[str]] = defaultdict(set)
    for row, record in zip(rows, records, strict=True):
        versions[record.external_id] |= set() if row.faults else {repr(record.given)}
    faults_of_rows = []
    for row, record in zip(rows, records, strict=True):
        dates = check_dates(record.given.get("effective_date"), record.given.get("expiry_date"))
        faults = row.faults or (*record.faults, *missing_on_create(record), *filter(None, [dates]))
        repeated = [REPEATED] if record.external_id and len(versions[record.external_id]) > 1 else []
        faults_of_rows.append(dict.fromkeys((fault.field, fault.code) for fault in (*faults, *repeated)))
    counted = Counter(chain.from_iterable(faults_of_rows))
    whole = sum(not row.faults for row in rows)
    return {
        "rows": len(given),
        "refused_rows": sum(map(bool, faults_of_rows)),
        "skipped_rows": len(given) - len(rows),
        "refused": [
            {
                "field": field,
                "code": code,
                "rows": times,
                "advice": f"No row has {field}: {remedy_for(field)}; else ask the sender for it."
                if code == "required" and times == whole
                else None,
            }
            for (field, code), times in counted.most_common()
        ],
    }


def suggest_apart(file: IO[bytes], **options: Any) -> dict[str, Any]:
    """`suggest_mapping(file, **options)`, for a file that can be sought in.

    Raises Unreadable, also for a file that takes more memory or time than there is; Unavailable if the process was ended
    from outside.
    """
    command = [*_COMMAND, json.dumps(options)]
    try:
        # The process that reads a workbook for this one ends with the pipe between them.
        ended = subprocess.run(  # noqa: S603 - our own
            command, stdin=file, stdout=subprocess.PIPE, timeout=SECONDS, check=False, **DETACHED
        )
    except subprocess.TimeoutExpired:
        raise Unreadable("too_large", _TOO_LARGE) from None
    if ended.returncode in OF_THE_FILE:
        raise Unreadable("too_large", _TOO_LARGE)
    if ended.returncode:
        raise Unavailable("The process that makes the suggestion ended early.")
    answer = json.loads(ended.stdout)
    if isinstance(answer, dict):
        return answer
    code, message = answer
    raise Unavailable(message) if code == Unavailable.kind else Unreadable(code, message)


def main() -> None:
    """What the process does."""
    # The process that reads a workbook sets limits of its own, so only those that it may raise are set here.
    if sys.platform == "linux":
        for kind, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, PROCESSOR_SECONDS)):
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = json.loads(sys.argv[1])
    options["format"] = options["format"] and Format(options["format"])
    try:
        answer: object = suggest_mapping(sys.stdin.buffer, **options)
    except (Unreadable, Unavailable) as error:
        answer = [error.code, error.detail]
    except MemoryError:
        answer = ["too_large", _TOO_LARGE]
    sys.stdout.write(json.dumps(answer))
