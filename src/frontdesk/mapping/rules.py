"""The rules of a mapping: how the values of a row's fields are made from its cells, and which rows end members or are left out
(docs/file-formats.md). A rule is a list of plain steps, and what it may say is bounded, so that no mapping makes a row take long.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frontdesk.eligibility.fields import FIELDS, METADATA_VALUE_LENGTH
from frontdesk.eligibility.hints import day_exists
from frontdesk.errors import Fault
from frontdesk.mapping.dates import EXCEL_SERIAL, DateFormat, date_reader, parse_format
from frontdesk.mapping.names import COLUMN_NAME, fold_name, mappable_field, split_name
from frontdesk.text import shown_name

PLAN = "plan"  # the target that names the plan of a row
FAMILY = "family"  # the target that is the same for the members of a family; it is not stored
# Examples for the values that may be one for all.
_CONSTANTS = {"gender": "unknown", "effective_date": "2026-01-01", "zipcode": "02134"}
_EXTENSIONS = ("ext", "x", "#", ";")

RULE_PARTS = ("column", "join", "blank", "part", "values", "dates", "pivot", "open", "pad", "constant")
ROW_RULE_PARTS = ("column", "equals", "starts_with")
MOST_RULES, MOST_ROW_RULES = 100, 20
LONGEST_PAD = LONGEST_JOIN = 20
LONGEST_VALUE = METADATA_VALUE_LENGTH  # no field takes a longer one
MOST_WORDS = 100
MOST_JOINED = MOST_FORMATS = 10  # columns and formats of dates of a rule
_ISO_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")

# What a rule makes of a row: a text, "" for a field that is absent, None for one that is cleared.
Value = str | None


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field's value is made. Without `columns` and `constant` it is the column that already has the field's name.

    `blank` stands for blank cells behind the first one. `values` maps folded words, "" for a blank cell, to what is stored;
    `open_dates` are ISO dates that clear the field.
    """

    columns: tuple[str, ...] = ()
    join: str = " "
    blank: str = ""
    part: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    dates: tuple[DateFormat, ...] = ()
    pivot: int | None = None
    open_dates: frozenset[str] = frozenset()
    pad: int = 0
    constant: str | None = None

    def maker(
        self, target: str, positions: Sequence[int], clear: frozenset[str]
    ) -> Callable[[Sequence[str]], Value]:
        """A function from a row's cells to the value; `positions` are those of the rule's columns."""
        if self.constant is not None:
            constant = self.constant
            return lambda _cells: constant
        needs_all = target in FIELDS and FIELDS[target].unique
        read_part = NAME_PARTS.get(self.part or "", str.strip)
        read_date = date_reader(self.dates, self.pivot) if self.dates else None

        def make(cells: Sequence[str]) -> Value:
            parts = [cells[position].strip() for position in positions]
            if not clear.isdisjoint(parts):
                return None if clear.issuperset(parts) else ""
            if self.blank and parts[0]:
                parts[1:] = [part or self.blank for part in parts[1:]]
            if needs_all and not all(parts):  # half of an identifier could be another member's
                parts = []
            text = read_part(self.join.join(filter(None, parts)))
            if self.values and (word := text.casefold()) in self.values:
                return self.values[word]
            if read_date is not None and text:
                text = read_date(text)
            if text in self.open_dates:
                return None
            return _padded(text, self.pad) if self.pad else text

        return make


@dataclass(frozen=True, slots=True)
class RowRule:
    """Which rows end their members or are left out: their cell of the column is one of the folded `words` ("" is a blank cell),
    or begins with one of `starts`."""

    column: str
    words: frozenset[str]
    starts: tuple[str, ...] = ()

    def applies(self, cell: str) -> bool:
        word = cell.strip().casefold()
        return word in self.words or bool(self.starts and word.startswith(self.starts))


def _padded(text: str, length: int) -> str:
    """The text, its first digits filled with zeros: `2134-1234` is `02134-1234` in 5."""
    digits = len(text) - len(text.lstrip("0123456789"))
    return "0" * (length - digits) + text if digits else text


def _phone(text: str) -> str:
    """The number before an extension."""
    folded = text.casefold()
    ends = [at for mark in _EXTENSIONS if (at := folded.find(mark)) > 0]
    return text[: min(ends)].strip() if ends else text


NAME_PARTS: dict[str, Callable[[str], str]] = {
    "first_name": lambda text: split_name(text).first,
    "middle_name": lambda text: split_name(text).middle,
    "last_name": lambda text: split_name(text).last,
    "phone": _phone,
}


class _PartReader:
    """Reads the parts of one rule. What is wrong becomes a fault that names the part and never its value."""

    def __init__(self, place: str, given: Any, known: Iterable[str], faults: list[Fault]) -> None:
        self._place, self._faults = place, faults
        self.given: dict[str, Any] = given if isinstance(given, dict) else {}
        if self.given is not given:
            self.fault("", "wrong_type", "must be an object")
        for name in self.given:
            if name not in known:
                self.fault(shown_name(name), "unknown_field", "there is no such field")

    def fault(self, part: str, code: str, message: str) -> None:
        self._faults.append(Fault(f"{self._place}.{part}".rstrip("."), code, message))

    def take(
        self, part: str, default: Any, fits: Callable[[Any], bool], rule: str, code: str = "wrong_type"
    ) -> Any:
        """The part's value; the default if it is absent or wrong."""
        value = self.given.get(part)
        if part not in self.given or fits(value):
            return self.given.get(part, default)
        self.fault(part, code, rule)
        return default

    def text(self, part: str, default: str, longest: int) -> str:
        rule = f"must be a string of at most {longest} characters"
        return str(self.take(part, default, lambda value: _is_text(value, longest), rule))

    def words(self, part: str, *, blank: bool = False, most: int = MOST_WORDS) -> list[str]:
        def fits(value: Any) -> bool:
            words = [value] if type(value) is str else value
            are_words = isinstance(words, list) and 1 <= len(words) <= most
            return are_words and all(type(word) is str and (blank or word.strip()) for word in words)

        kind = "string" if blank else "string that is not blank"
        found = self.take(part, [], fits, f"must be a {kind}, or an array of up to {most} of them")
        return [found] if type(found) is str else list(found)

    def columns(self) -> tuple[str, ...]:
        """The folded names."""
        names = self.words("column", most=MOST_JOINED)
        if not all(map(COLUMN_NAME.search, names)):
            self.fault("column", "not_allowed", "must be names of columns")
            return ()
        folded = tuple(map(fold_name, names))
        if len(set(folded)) < len(folded):
            self.fault("column", "repeated", "must name each column once")
        return folded

    def number(self, part: str, least: int, most: int) -> int | None:
        def fits(value: Any) -> bool:
            return type(value) in (int, float) and value in range(least, most + 1)  # 5.0 is 5 in JSON

        rule = f"must be a whole number from {least} to {most}"
        value = self.take(part, None, fits, rule, "not_allowed")
        return None if value is None else int(value)

    def values(self) -> dict[str, Value]:
        def fits(value: Any) -> bool:
            return isinstance(value, dict) and all(
                item is None or type(item) is bool or _is_text(item) for item in value.values()
            )

        rule = f"must be an object of booleans, nulls, and strings of at most {LONGEST_VALUE} characters"
        values: dict[str, Value] = {}
        for word, item in self.take("values", {}, fits, rule).items():
            if values.setdefault(word.strip().casefold(), _cell(item)) != _cell(item):
                self.fault("values", "repeated", "must give a word one value, whatever its letter case")
        return values

    def dates(self) -> tuple[DateFormat, ...]:
        parsed = [parse_format(word) for word in self.words("dates", most=MOST_FORMATS)]
        if None in parsed:
            rule = f"must be {EXCEL_SERIAL}, or YYYY or YY, MM or MON, and DD with - / . , or spaces between"
            self.fault("dates", "not_allowed", rule)
        return tuple(filter(None, parsed))

    def open_dates(self) -> frozenset[str]:
        words = self.words("open")
        if not all(_ISO_DATE.fullmatch(word) and day_exists(word) for word in words):
            self.fault("open", "not_a_date", "must be dates, YYYY-MM-DD")
        return frozenset(words)


def _is_text(value: object, longest: int = LONGEST_VALUE) -> bool:
    return type(value) is str and len(value) <= longest


def _cell(value: str | bool | None) -> Value:
    return str(value).lower() if isinstance(value, bool) else value


def parse_field_rules(place: str, value: Any, faults: list[Fault]) -> dict[str, FieldRule]:
    """The rules of `fields`, by field. Adds what is wrong to `faults`."""
    if not isinstance(value, dict) or len(value) > MOST_RULES:
        faults.append(Fault(place, "wrong_type", f"must be an object of at most {MOST_RULES} rules"))
        return {}
    rules = {}
    for name, given in value.items():
        inside = f"{place}.{shown_name(name)}"
        target = name if name in (PLAN, FAMILY) else mappable_field(name)
        if target is None:
            faults.append(Fault(inside, "not_allowed", "must be a field of a member, plan or family"))
        elif target in rules:
            faults.append(Fault(inside, "repeated", "must be given once"))
        else:
            rules[target] = _parse_rule(target, _PartReader(inside, given, RULE_PARTS, faults))
    return rules


def _parse_rule(target: str, reading: _PartReader) -> FieldRule:
    constant = reading.take(
        "constant",
        None,
        lambda value: type(value) is bool or (_is_text(value) and bool(value.strip())),
        f"must be a boolean, or a string that is not blank of at most {LONGEST_VALUE} characters",
    )
    if "constant" in reading.given and len(reading.given) > 1:
        reading.fault("constant", "not_allowed", "must stand alone: every row gets it")
    if constant is not None and target in FIELDS and FIELDS[target].unique:
        reading.fault("constant", "not_allowed", "must not be an identifier: each member has its own")
    dates = reading.dates()
    if "pivot" not in reading.given and any(each.has_short_year for each in dates):
        reading.fault("pivot", "required", "must say the last two-digit year that means 20YY")
    parts = "must be one of " + ", ".join(NAME_PARTS)
    return FieldRule(
        columns=reading.columns(),
        join=reading.text("join", " ", LONGEST_JOIN),
        blank=reading.text("blank", "", LONGEST_JOIN),
        part=reading.take(
            "part", None, lambda value: type(value) is str and value in NAME_PARTS, parts, "not_allowed"
        ),
        values=reading.values(),
        dates=dates,
        pivot=reading.number("pivot", 0, 99),
        open_dates=reading.open_dates(),
        pad=reading.number("pad", 1, LONGEST_PAD) or 0,
        constant=_cell(constant),
    )


def parse_row_rules(place: str, value: Any, faults: list[Fault]) -> tuple[RowRule, ...]:
    """The rules in `end` or `skip`: `{"column": name, "equals": words, "starts_with": words}`."""
    if not isinstance(value, list) or len(value) > MOST_ROW_RULES:
        faults.append(Fault(place, "wrong_type", f"must be an array of at most {MOST_ROW_RULES} rules"))
        return ()
    rules = []
    for number, given in enumerate(value):
        reading = _PartReader(f"{place}.{number}", given, ROW_RULE_PARTS, faults)
        if not isinstance(given, dict):
            continue
        column = reading.text("column", "", LONGEST_VALUE)
        if "column" not in given or not given.keys() & {"equals", "starts_with"}:
            reading.fault("", "required", "must have column, and equals or starts_with")
        elif not COLUMN_NAME.search(column):
            reading.fault("column", "not_allowed", "must be the name of a column")
        words, starts = reading.words("equals", blank=True), reading.words("starts_with")
        rules.append(RowRule(fold_name(column), _folded(words), tuple(_folded(starts))))
    return tuple(rules)


def _folded(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.strip().casefold() for word in words)


def remedy_for(field_name: str, *, is_table: bool = True) -> str:
    """What to put into a mapping when rows lack a required field."""
    if not is_table:
        rule = json.dumps(
            {"fields": {field_name: {"constant": _CONSTANTS.get(field_name, "…")}}}, ensure_ascii=False
        )
        return f"say in the mapping what new members get that lack it: {rule}"
    remedy = f'if a column holds it, name it in the mapping: {{"columns": {{"its name": "{field_name}"}}}}'
    if field_name in _CONSTANTS:
        rule = json.dumps({"fields": {field_name: {"constant": _CONSTANTS[field_name]}}})
        remedy += f", or say one for all rows: {rule}"
    if field_name == "zipcode":
        rule = json.dumps({"fields": {FAMILY: {"column": "Employee ID"}}})
        remedy += f", or give dependents the address of the employee with the same number: {rule}"
    return remedy
