"""The mapping as it grows, column by column, and how it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from frontdesk.eligibility.fields import FIELDS
from frontdesk.files.names import field_named
from frontdesk.files.rules import FAMILY
from frontdesk.files.suggest.sample import Sample

_TOTALS = ("total", "grand total", "sum", "summe", "gesamt", "record count", "end of", "totaux")


@dataclass(slots=True)
class MappingDraft:
    """The mapping as it grows. `uses` has the fields of each column with their confidence, `notes` why a column is not used,
    `questions` the columns that a person has to decide about."""

    sample: Sample
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    uses: dict[int, dict[str, float]] = field(default_factory=dict)
    skip: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)

    def use(
        self, target: str, positions: Sequence[int], confidence: float, rule: Mapping[str, Any] | None = None
    ) -> None:
        names = [self.sample.names[position] for position in positions]
        self.rules[target] = {"column": names[0] if len(names) == 1 else names} | dict(rule or {})
        for position in positions:
            self.uses.setdefault(position, {})[target] = round(confidence, 2)

    def column_of(self, target: str) -> int | None:
        """The first column of the target's rule."""
        if target not in self.rules:
            return None
        name = self.rules[target]["column"]
        return self.sample.names.index(name if type(name) is str else name[0])


def written_mapping(draft: MappingDraft) -> dict[str, Any]:
    """The mapping: names alone in `columns`, what needs work in `fields`."""
    sample = draft.sample
    mapping: dict[str, Any] = {}
    own = [field_named(name) for name in sample.names]
    columns: dict[str, str | None] = {}
    fields: dict[str, Any] = {}
    for target in sorted(draft.rules, key=[*FIELDS, FAMILY].index):
        rule = draft.rules[target]
        name = rule["column"]
        if (
            len(rule) == 1
            and type(name) is str
            and target != FAMILY
            and name not in columns
            and (target not in own or field_named(name) == target)
        ):
            columns[name] = target
        else:
            fields[target] = rule
    columns = {name: target for name, target in columns.items() if field_named(name) != target}
    # A column with the name of a field is read as that field unless the mapping says otherwise.
    columns |= {sample.names[position]: None for position in draft.notes if own[position] in FIELDS}
    if columns:
        mapping["columns"] = columns
    if fields:
        mapping["fields"] = fields
    if skip := [*draft.skip, *_totals(draft)]:
        mapping["skip"] = skip
    if draft.questions:
        mapping["questions"] = draft.questions
    if sample.delimiter not in (None, ","):
        mapping["delimiter"] = sample.delimiter
    return mapping


def _totals(draft: MappingDraft) -> list[dict[str, Any]]:
    """Rules that leave out lines with a total or without an identifier, where all such rows are half empty."""
    sample, at = draft.sample, draft.column_of("external_id")
    if at is None or not sample.rows:
        return []
    usual = median(sum(map(bool, map(str.strip, row))) for row in sample.rows)
    rows = [*sample.rows, *sample.odd_rows]
    rules = []
    for position in dict.fromkeys((at, 0)):
        words = [
            word
            for word in _TOTALS
            if (found := [row for row in rows if _cell(row, position).startswith(word)])
            and all(_is_poor(row, usual) for row in found)
        ]
        if words:
            rules.append({"column": sample.names[position], "starts_with": words})
    blank = [row for row in sample.rows if not _cell(row, at)]
    if blank and all(_is_poor(row, usual) for row in blank):
        rules.append({"column": sample.names[at], "equals": ""})
    return rules


def _cell(row: Sequence[str], position: int) -> str:
    return row[position].strip().casefold() if position < len(row) else ""


def _is_poor(row: Sequence[str], usual: float) -> bool:
    return sum(map(bool, map(str.strip, row))) * 2 <= usual
