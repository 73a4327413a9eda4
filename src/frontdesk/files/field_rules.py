"""How a mapping makes the values of a table's fields: parsed from JSON, then applied to the cells of each row
(docs/file-formats.md). A rule is a list of plain steps; customers hand in no regular expression."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.files.column_names import field_named, fold_name
from frontdesk.files.date_formats import EXCEL_SERIAL, DateFormat, date_reader, parse_format
from frontdesk.text import shown_name

PLAN = "plan"  # the target that names the plan of a row
LONGEST_PAD = 20
_EXTENSIONS = ("ext", "x", "#", ";")

# What a rule makes of a row: a text, "" for a field that is absent, None for one that is cleared.
Value = str | None


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field's value is made. Without `columns` and `constant` it is the column that already has the field's name.

    `values` maps folded words, "" for a blank cell, to what is stored; `open_dates` are ISO dates that clear the field.
    """

    columns: tuple[str, ...] = ()
    join: str = " "
    part: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    dates: tuple[DateFormat, ...] = ()
    pivot: int | None = None
    open_dates: frozenset[str] = frozenset()
    pad: int = 0
    constant: str | None = None

    def maker(self, target: str, positions: Sequence[int], clear: str) -> Callable[[Sequence[str]], Value]:
        """A function from a row's cells to the value; `positions` are those of the rule's columns."""
        if self.constant is not None:
            constant = self.constant
            return lambda _cells: constant
        needs_all = target in FIELDS and FIELDS[target].unique
        read_part = _PARTS.get(self.part or "", str.strip)
        read_date = date_reader(self.dates, self.pivot) if self.dates else None

        def make(cells: Sequence[str]) -> Value:
            parts = [cells[position].strip() for position in positions]
            if clear in parts:
                return None if len(set(parts)) == 1 else ""
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
class SkipRule:
    """Rows to leave out: those whose cell of the column is one of the folded `words` ("" is a blank cell), or begins with one
    of `starts`."""

    column: str
    words: frozenset[str]
    starts: tuple[str, ...] = ()

    def applies(self, cell: str) -> bool:
        word = cell.strip().casefold()
        return word in self.words or bool(self.starts and word.startswith(self.starts))


def parse_field_rules(place: str, value: Any, faults: list[Fault]) -> dict[str, FieldRule]:
    """The rules of `fields`, by field. Adds what is wrong to `faults`."""
    if not isinstance(value, dict):
        faults.append(Fault(place, "wrong_type", "must be an object of rules"))
        return {}
    rules = {}
    for name, given in value.items():
        inside = f"{place}.{shown_name(str(name))}"
        target = PLAN if name == PLAN else field_named(str(name))
        if target is None:
            faults.append(Fault(inside, "not_allowed", "must be a field of a member, or plan"))
        elif target in rules:
            faults.append(Fault(inside, "repeated", "must be given once"))
        else:
            rules[target] = _parse_rule(inside, target, given, faults)
    return rules


def _parse_rule(place: str, target: str, given: Any, faults: list[Fault]) -> FieldRule:
    reading = _PlaceReader(place, faults)
    if not isinstance(given, dict):
        reading.fault("", "wrong_type", "must be an object")
        return FieldRule()
    for name in given:
        if name not in RULE_PARTS:
            reading.fault(shown_name(str(name)), "unknown_field", "there is no such field")
    constant = reading.constant(given.get("constant"))
    if constant is not None and len(given) > 1:
        reading.fault("constant", "not_allowed", "must stand alone: every row gets it")
    if constant is not None and target in FIELDS and FIELDS[target].unique:
        reading.fault("constant", "not_allowed", "must not be an identifier: each member has its own")
    dates = tuple(reading.dates(given.get("dates")))
    pivot = reading.number("pivot", given.get("pivot"), 99)
    if pivot is None and any(each.has_short_year for each in dates):
        reading.fault("pivot", "required", "must say the last two-digit year that means 20YY")
    return FieldRule(
        columns=tuple(fold_name(name) for name in reading.words("column", given.get("column"))),
        join=reading.text("join", given.get("join"), " "),
        part=reading.choice("part", given.get("part"), tuple(_PARTS)),
        values=reading.values(given.get("values")),
        dates=dates,
        pivot=pivot,
        open_dates=frozenset(reading.open_dates(given.get("open"))),
        pad=reading.number("pad", given.get("pad"), LONGEST_PAD) or 0,
        constant=constant,
    )


def parse_skip_rules(place: str, value: Any, faults: list[Fault]) -> tuple[SkipRule, ...]:
    """The rules in `skip`: `{"column": name, "equals": words, "starts_with": words}`."""
    if not isinstance(value, list):
        faults.append(Fault(place, "wrong_type", "must be an array of rules"))
        return ()
    rules = []
    for number, given in enumerate(value):
        reading = _PlaceReader(f"{place}.{number}", faults)
        if not isinstance(given, dict) or not given.keys() <= {"column", "equals", "starts_with"}:
            reading.fault("", "wrong_type", "must be an object with column, and with equals or starts_with")
            continue
        column = reading.text("column", given.get("column"), "").strip()
        words = frozenset(
            word.strip().casefold() for word in reading.words("equals", given.get("equals"), blank=True)
        )
        starts = tuple(word.casefold() for word in reading.words("starts_with", given.get("starts_with")))
        if not column or not (words or starts):
            reading.fault("", "required", "must have column, and equals or starts_with")
        rules.append(SkipRule(fold_name(column), words, starts))
    return tuple(rules)


class _PlaceReader:
    """Reads the parts of one rule; what is wrong becomes a fault that names the part and never its value."""

    def __init__(self, place: str, faults: list[Fault]) -> None:
        self._place, self._faults = place, faults

    def fault(self, part: str, code: str, message: str) -> None:
        self._faults.append(Fault(f"{self._place}.{part}".rstrip("."), code, message))

    def text(self, part: str, value: Any, default: str) -> str:
        if value is None or type(value) is str:
            return default if value is None else value
        self.fault(part, "wrong_type", "must be a string")
        return default

    def words(self, part: str, value: Any, *, blank: bool = False) -> list[str]:
        given = [value] if type(value) is str else [] if value is None else value
        if isinstance(given, list) and all(type(word) is str and (blank or word.strip()) for word in given):
            return given
        self.fault(part, "wrong_type", "must be a string or an array of strings")
        return []

    def number(self, part: str, value: Any, most: int) -> int | None:
        if value is None or (type(value) is int and 0 <= value <= most):
            return value
        self.fault(part, "not_allowed", f"must be a whole number up to {most}")
        return 0

    def choice(self, part: str, value: Any, choices: Iterable[str]) -> str | None:
        if value is None or (type(value) is str and value in choices):
            return value
        self.fault(part, "not_allowed", "must be one of " + ", ".join(choices))
        return None

    def constant(self, value: Any) -> str | None:
        if value is None or (type(value) in (str, bool) and str(value).strip()):
            return None if value is None else _cell(value)
        self.fault("constant", "wrong_type", "must be a boolean, or a string that is not blank")
        return None

    def values(self, value: Any) -> dict[str, Value]:
        if value is None:
            return {}
        if isinstance(value, dict) and all(
            item is None or type(item) in (str, bool) for item in value.values()
        ):
            return {word.strip().casefold(): _cell(item) for word, item in value.items()}
        self.fault("values", "wrong_type", "must be an object of strings, booleans and nulls")
        return {}

    def dates(self, value: Any) -> Iterable[DateFormat]:
        for word in self.words("dates", value):
            if (parsed := parse_format(word)) is not None:
                yield parsed
            else:
                rule = f"must be {EXCEL_SERIAL}, or YYYY or YY, MM or MON, and DD with - / . , or a space between"
                self.fault("dates", "not_allowed", rule)

    def open_dates(self, value: Any) -> Iterable[str]:
        for word in self.words("open", value):
            try:
                yield date.fromisoformat(word).isoformat()
            except ValueError:
                self.fault("open", "not_a_date", "must be dates, YYYY-MM-DD")


def _cell(value: str | bool | None) -> Value:
    return str(value).lower() if isinstance(value, bool) else value


def _padded(text: str, length: int) -> str:
    """The text, its first digits filled with zeros: `2134-1234` is `02134-1234` in 5."""
    digits = len(text) - len(text.lstrip("0123456789"))
    return "0" * (length - digits) + text if digits else text


def _first_name(text: str) -> str:
    given = _given_names(text)
    return given[0] if given else ""


def _middle_name(text: str) -> str:
    return " ".join(_given_names(text)[1:])


def _last_name(text: str) -> str:
    last, comma, _ = text.partition(",")
    return last.strip() if comma else (text.split() or [""])[-1]


def _given_names(text: str) -> list[str]:
    """Of `Last, First Middle` what follows the comma; of `First Middle Last` all but the last word."""
    _, comma, given = text.partition(",")
    return given.split() if comma else text.split()[:-1]


def _phone(text: str) -> str:
    """The number before an extension."""
    folded = text.casefold()
    ends = [at for mark in _EXTENSIONS if (at := folded.find(mark)) > 0]
    return text[: min(ends)].strip() if ends else text


_PARTS: dict[str, Callable[[str], str]] = {
    "first_name": _first_name,
    "middle_name": _middle_name,
    "last_name": _last_name,
    "phone": _phone,
}
RULE_PARTS = ("column", "join", "part", "values", "dates", "pivot", "open", "pad", "constant")
