"""Suggests a mapping for a file with names of its own: what its columns may hold, how sure that is, and what would
still be refused (docs/file-formats.md). Nothing is stored, and no value of a member is in the answer.

Files of any customer come over HTTP, so `suggest_apart` does it in a process of its own, with limits of memory and time. Its
standard input is the file, which can be sought in; its argument has the options as JSON. Its standard output gets the suggestion
as JSON, or `[code, message]` of what makes the file unreadable.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS, check_dates, missing_on_create
from frontdesk.errors import Unavailable
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import open_source
from frontdesk.formats.workbook import DETACHED, OF_THE_FILE
from frontdesk.mapping.model import REPEATED
from frontdesk.mapping.names import field_named
from frontdesk.mapping.opening import with_addresses
from frontdesk.mapping.parser import OPEN, parse_mapping
from frontdesk.mapping.rules import FAMILY, remedy_for
from frontdesk.mapping.suggest.columns import MappingDraft, draft_mapping
from frontdesk.mapping.suggest.rows import SuggestionQuestion, other_lines, status_questions, totals
from frontdesk.mapping.suggest.sample import Sample, masked, read_sample
from frontdesk.mapping.table import TableColumns
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


@dataclass(frozen=True, slots=True)
class SuggestedColumn:
    """A column, the fields that it may hold, from 0 to 1 how sure that is, and masked samples of its values. `note` says why
    it is not used although its name is that of a field, else it is None."""

    column: str
    fields: list[str] = field(default_factory=list)
    confidence: float = 0.0
    samples: list[str] = field(default_factory=list)
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """How many rows a fault would refuse. `advice` says what to give for a field that no column holds, else it is None."""

    field: str
    code: str
    rows: int
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class MappingSuggestion:
    """`mapping` can be stored once its `questions` are answered. `rows` were read; `refused_rows` of them would be refused if
    their members were new, for what `refused` lists, and `skipped_rows` left out."""

    format: Format
    rows: int
    mapping: dict[str, Any]
    columns: list[SuggestedColumn]
    questions: list[SuggestionQuestion]
    refused_rows: int
    skipped_rows: int
    refused: list[RefusedRows]


def suggest_mapping(
    stream: "SupportsRead[bytes]",
    *,
    today: str,
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
    is_cut: bool = False,
    sheet: str | None = None,
) -> MappingSuggestion | dict[str, Any]:
    """A mapping for the file, of a table from its first 1,000 rows; `is_cut` says that the stream is a part of it, `sheet` names
    a sheet of a workbook. For an 834 the suggestion is JSON already (suggest.identity).

    `today` is `YYYY-MM-DD`. Raises Unreadable for what has no header, and as the readers do.
    """
    content, source, found = open_source(stream, format, encoding)
    if source is not None and found is Format.X12:
        return suggest_x12(source, is_cut=is_cut)
    sample = read_sample(content, source, found, is_cut=is_cut, sheet=sheet)
    other, members = other_lines(sample) or (None, sample)
    draft = draft_mapping(members, year=int(today[:4]))
    questions = status_questions(draft)
    mapping = _written_mapping(draft)
    if skip := [*([other] if other else []), *totals(draft)]:
        mapping["skip"] = skip
    if questions:
        mapping["questions"] = {each.column: OPEN for each in questions}
    if sheet is not None and sample.format is Format.XLSX:
        mapping["sheet"] = sheet
    refused_rows, skipped_rows, refused = _try(sample, mapping, today)
    return MappingSuggestion(
        format=sample.format,
        rows=len(sample.rows) + len(sample.odd_rows),
        mapping=mapping,
        columns=_columns(draft),
        refused_rows=refused_rows,
        skipped_rows=skipped_rows,
        refused=refused,
        questions=questions,
    )


def _written_mapping(draft: MappingDraft) -> dict[str, Any]:
    """Names alone in `columns`, what needs work in `fields`."""
    names, mapping = draft.sample.names, dict[str, Any]()
    own = [field_named(name) for name in names]
    columns: dict[str, str | None] = {}
    fields: dict[str, Any] = {}
    for target in sorted(draft.rules, key=[*FIELDS, FAMILY].index):
        rule = draft.rules[target]
        name = rule["column"]
        is_plain = len(rule) == 1 and type(name) is str and target != FAMILY and name not in columns
        if is_plain and (target not in own or field_named(name) == target):
            columns[name] = target
        else:
            fields[target] = rule
    columns = {name: target for name, target in columns.items() if field_named(name) != target}
    # A column with the name of a field is read as that field unless the mapping says otherwise.
    columns |= {names[position]: None for position in draft.notes if own[position] in FIELDS}
    if columns:
        mapping["columns"] = columns
    if fields:
        mapping["fields"] = fields
    if draft.sample.delimiter not in (None, ","):
        mapping["delimiter"] = draft.sample.delimiter
    return mapping


def _columns(draft: MappingDraft) -> list[SuggestedColumn]:
    sample = draft.sample
    real = frozenset(cell.strip() for row in (*sample.rows, *sample.odd_rows) for cell in row)
    return [
        SuggestedColumn(name, [*uses], max(uses.values()), masked(sample.column(position), real))
        if (uses := draft.uses.get(position))
        else SuggestedColumn(name, note=draft.notes.get(position))
        for position, name in enumerate(sample.names)
    ]


def _try(sample: Sample, mapping: dict[str, Any], today: str) -> tuple[int, int, list[RefusedRows]]:
    """Reads the rows by the mapping: how many would be refused, how many left out, and the faults."""
    answered = {name: part for name, part in mapping.items() if name != "questions"}
    table = TableColumns(sample.names, parse_mapping(answered), place=1, needs_key=False)
    counted: Counter[tuple[str, str]] = Counter()
    said: dict[str, set[str]] = {}
    keys: list[tuple[str | None, bool]] = []
    skipped = whole = 0
    for row in with_addresses(table.row(1, cells) for cells in (*sample.rows, *sample.odd_rows)):
        if row.skipped:
            skipped += 1
            continue
        record = parse_member(row.values, today=today, lenient=True)
        wrong = check_dates(record.given.get("effective_date"), record.given.get("expiry_date"))
        faults = row.faults or [*record.faults, *missing_on_create(record), *([wrong] if wrong else [])]
        counted.update([*dict.fromkeys(fault[:2] for fault in faults)])
        keys.append((record.external_id, bool(faults)))
        if not row.faults:
            whole += 1
            said.setdefault(record.external_id or "", set()).add(repr(record.given))
    repeated = {key for key, rows in said.items() if key and len(rows) > 1}
    counted[REPEATED[:2]] = sum(key in repeated for key, _ in keys)
    refused = sum(is_refused or key in repeated for key, is_refused in keys)
    faults_found = [
        RefusedRows(*fault, rows, _advice(fault[0]) if rows == whole and fault[1] == "required" else None)
        for fault, rows in counted.most_common()
        if rows
    ]
    return refused, skipped, faults_found


def _advice(field: str) -> str:
    """What to do about a required field that no row has."""
    return f"No row has {field}: {remedy_for(field)}; else ask the sender for it."


def serialize_suggestion(suggestion: MappingSuggestion | dict[str, Any]) -> dict[str, Any]:
    """The suggestion as JSON, the same for HTTP and the command line."""
    if isinstance(suggestion, dict):
        return _OF_TABLES | {"rows": suggestion["people"]} | suggestion
    return {"type": "mapping_suggestions"} | asdict(suggestion)


def suggest_apart(file: IO[bytes], **options: Any) -> dict[str, Any]:
    """`serialize_suggestion` of `suggest_mapping(file, **options)`, for a file that can be sought in.

    Raises Unreadable, also for a file that takes more memory or time than there is; Unavailable if the process was ended
    from outside.
    """
    message = (
        "The file takes too long or too much memory to be looked at. Send a copy with its first 100 rows."
    )
    command = [*_COMMAND, json.dumps(options)]
    try:
        # The process that reads a workbook for this one ends with the pipe between them.
        ended = subprocess.run(  # noqa: S603 - our own
            command, stdin=file, stdout=subprocess.PIPE, timeout=SECONDS, check=False, **DETACHED
        )
    except subprocess.TimeoutExpired:
        raise Unreadable("too_large", message) from None
    if ended.returncode in OF_THE_FILE:
        raise Unreadable("too_large", message)
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
    with open(0, "rb", closefd=False) as stream:
        try:
            answer: object = serialize_suggestion(suggest_mapping(stream, **options))
        except (Unreadable, Unavailable) as error:
            answer = [error.code, error.detail]
        except MemoryError:
            os.kill(os.getpid(), signal.SIGABRT)
            raise
    sys.stdout.write(json.dumps(answer))
