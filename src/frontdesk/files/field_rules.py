"""How a mapping makes the values of a row's fields from its cells (docs/file-formats.md). A rule is a list of plain steps;
customers hand in no regular expression. `rule_parser` makes the rules from JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from frontdesk.eligibility.fields import FIELDS
from frontdesk.files.date_formats import DateFormat, date_reader
from frontdesk.files.person_names import split_name

PLAN = "plan"  # the target that names the plan of a row
FAMILY = "family"  # the target that is the same for the members of a family; it is not stored
_EXTENSIONS = ("ext", "x", "#", ";")

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
class SkipRule:
    """Rows to leave out: their cell of the column is one of the folded `words` ("" is a blank cell), or begins with one of
    `starts`."""

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
