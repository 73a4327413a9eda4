"""Suggests a mapping for a file with names of its own: what its columns may hold, how sure that is, and what would
still be refused (docs/file-formats.md). Nothing is stored, and no value of a member is in the answer."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.parse import check_dates, missing_on_create
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import REPEATED, Format
from frontdesk.files.readers import with_addresses
from frontdesk.files.readers.table import TableColumns
from frontdesk.files.suggest.columns import SuggestedColumn, suggest_columns
from frontdesk.files.suggest.sample import Sample, read_sample
from frontdesk.files.suggest.statuses import SuggestionQuestion

if TYPE_CHECKING:
    from _typeshed import SupportsRead


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """How many rows a fault would refuse. `advice` says what to give for a field that no column holds, else ""."""

    field: str
    code: str
    rows: int
    advice: str = ""


@dataclass(frozen=True, slots=True)
class MappingSuggestion:
    """`mapping` can be stored once its `questions` are answered. `rows` were read; `refused_rows` of them would be refused if
    their members were new, for what `refused` lists, and `skipped_rows` left out."""

    format: Format
    rows: int
    mapping: dict[str, Any]
    columns: list[SuggestedColumn]
    refused_rows: int
    skipped_rows: int
    refused: list[RefusedRows]
    questions: list[SuggestionQuestion]


def suggest_mapping(
    stream: "SupportsRead[bytes]",
    *,
    today: str,
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
    is_cut: bool = False,
    sheet: str | None = None,
) -> MappingSuggestion:
    """A mapping for the file, of which the first 1,000 rows are read; `is_cut` says that the stream is a part of it, `sheet`
    names a sheet of a workbook.

    `today` is `YYYY-MM-DD`. Raises Unreadable for what is not a table with a header, and as the readers do.
    """
    sample = read_sample(stream, format, encoding, is_cut=is_cut, sheet=sheet)
    mapping, columns, questions = suggest_columns(sample, year=int(today[:4]))
    if sheet is not None and sample.format is Format.XLSX:
        mapping["sheet"] = sheet
    refused_rows, skipped_rows, refused = _try(sample, mapping, today)
    return MappingSuggestion(
        sample.format,
        len(sample.rows) + len(sample.odd_rows),
        mapping,
        columns,
        refused_rows,
        skipped_rows,
        refused,
        questions,
    )


def _try(sample: Sample, mapping: dict[str, Any], today: str) -> tuple[int, int, list[RefusedRows]]:
    """Reads the rows by the mapping: how many would be refused, how many left out, and the faults."""
    answered = {name: part for name, part in mapping.items() if name != "questions"}
    table = TableColumns(sample.names, parse_mapping(answered), place=1, needs_key=False)
    counted: Counter[tuple[str, str]] = Counter()
    said: dict[str, set[str]] = {}
    keys: list[tuple[str | None, bool]] = []
    odd = [cells for cells in sample.odd_rows if not table.skips(cells)]
    kept = [cells for cells in sample.rows if not table.skips(cells)]
    for row in with_addresses(table.row(1, cells) for cells in kept):
        record = parse_member(row.values, today=today, lenient=True)
        wrong = check_dates(record.given.get("effective_date"), record.given.get("expiry_date"))
        faults = [*record.faults, *missing_on_create(record), *([wrong] if wrong else [])]
        counted.update([*dict.fromkeys(fault[:2] for fault in faults)])
        keys.append((record.external_id, bool(faults)))
        said.setdefault(record.external_id or "", set()).add(repr(record.given))
    repeated = {key for key, rows in said.items() if key and len(rows) > 1}
    counted[REPEATED[:2]] = sum(key in repeated for key, _ in keys)
    counted[("row", "wrong_column_count")] = len(odd)
    refused = len(odd) + sum(is_refused or key in repeated for key, is_refused in keys)
    faults_found = [
        RefusedRows(*fault, rows, _advice(*fault, today) if rows == len(kept) else "")
        for fault, rows in counted.most_common()
        if rows
    ]
    total = len(sample.rows) + len(sample.odd_rows)
    return refused, total - len(kept) - len(odd), faults_found


def _advice(field: str, code: str, today: str) -> str:
    """What to do about a required field that no row has."""
    if code != "required":
        return ""
    constant = {"gender": "unknown", "effective_date": f"{today[:4]}-01-01"}.get(field)
    if constant is None:
        rule = f'{{"columns": {{"its name": "{field}"}}}}'
        return f"No row has {field}. If a column holds it, name it: {rule}. Else ask the sender for it."
    what = "the day on which access begins" if field == "effective_date" else "what counts for all members"
    rule = f'{{"fields": {{"{field}": {{"constant": "{constant}"}}}}}}'
    return f"No row has {field}. Say {what} in the mapping, for example: {rule}."


def serialize_suggestion(suggestion: MappingSuggestion) -> dict[str, Any]:
    """The suggestion as JSON, the same for HTTP and the command line."""
    return {
        "type": "mapping_suggestions",
        "format": suggestion.format,
        "rows": suggestion.rows,
        "mapping": suggestion.mapping,
        "columns": [
            {
                "column": each.column,
                "fields": list(each.fields),
                "confidence": each.confidence,
                "samples": list(each.samples),
                "note": each.note or None,
            }
            for each in suggestion.columns
        ],
        "questions": [asdict(each) for each in suggestion.questions],
        "refused_rows": suggestion.refused_rows,
        "skipped_rows": suggestion.skipped_rows,
        "refused": [
            {"field": each.field, "code": each.code, "rows": each.rows, "advice": each.advice or None}
            for each in suggestion.refused
        ],
    }
