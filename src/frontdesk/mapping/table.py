"""A table: which of its first rows is the header, and what its cells mean as values of a request body (docs/file-formats.md)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, islice
from operator import not_
from typing import NamedTuple

from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Action, RowContext
from frontdesk.errors import Fault
from frontdesk.formats.model import Unreadable
from frontdesk.formats.source import LONGEST_LINE
from frontdesk.mapping.model import UNKNOWN_PLAN, Row
from frontdesk.mapping.parser import SEARCHED_ROWS, FileMapping
from frontdesk.mapping.values import FAMILY, METADATA_PREFIX, PLAN, FieldRule, RowRule, field_named, fold_name
from frontdesk.text import SHOWN_NAMES, shown_name

KEY, END_DAY = "external_id", "expiry_date"
_ENDS = RowContext(ends_access=True)
_TOO_LONG = Fault(
    "row", "values_too_long", f"the mapping's rules read more than {LONGEST_LINE:,} characters of the row"
)


class HeaderRow(NamedTuple):
    """The number of the header's row, from 1. Of several ways to split a file, the one of the highest rank is right: with the
    key, as far up as possible, with as many fields as possible."""

    place: int
    rank: tuple[bool, int, int]


def find_header(rows: Sequence[Sequence[str]], mapping: FileMapping) -> HeaderRow:
    """The mapping's row, else the first that has the key, else the one that names most fields, else the first row.

    Raises Unreadable if the mapping names a row that the file does not have.
    """
    if mapping.header_row is not None and mapping.header_row > len(rows):
        message = f"the file has no row {mapping.header_row}, which is said to be the header"
        raise Unreadable("no_header", message, place=mapping.header_row)
    if mapping.header_row is not None:
        place = mapping.header_row
        return HeaderRow(place, _rank(rows[place - 1], mapping, place))
    headers = (
        HeaderRow(place, _rank(cells, mapping, place)) for place, cells in enumerate(rows[:SEARCHED_ROWS], 1)
    )
    return max(headers, key=lambda header: header.rank, default=HeaderRow(1, (False, 0, -1)))


def _rank(names: Sequence[str], mapping: FileMapping, place: int) -> tuple[bool, int, int]:
    folded = {fold_name(name) for name in names}
    named = [target_of(name, mapping) for name in names]
    rules = [rule for rule in mapping.fields.values() if rule.columns and not folded.isdisjoint(rule.columns)]
    count = sum(target is not None for target in named) + len(rules)
    key_rule = mapping.fields.get(KEY)
    has_key = KEY in named or (
        key_rule is not None and bool(key_rule.columns) and folded.issuperset(key_rule.columns)
    )
    return (True, -place, count) if has_key else (False, count, -place)


class TableColumns:
    """The header of a table: which fields its columns hold, and how a row's cells become its values.

    `read` has the positions of the columns that are read, from 0; `ignored` names the others. Of rows that `are_told_by_key`, the
    cell at `key_at` is all that the first reading needs. Raises Unreadable for a header
    without fields or, with `needs_key`, a key.
    """

    def __init__(
        self, names: Sequence[str], mapping: FileMapping, *, place: int, needs_key: bool = True
    ) -> None:
        self._mapping, self._place, self._needs_key = mapping, place, needs_key
        self._places = _places(map(fold_name, names))
        self.width = len(names)
        own = [target_of(name, mapping) for name in names]
        own_places = _places(own)
        # A rule goes before the column that has its field's name.
        self._plain = [None if name in mapping.fields else name for name in own]
        self._rules = [
            (target, rule, positions)
            for target, rule in mapping.fields.items()
            if (positions := self._positions(target, rule, own_places)) is not None
        ]
        self._skips, self._ends = (
            [(self._position(rule.column, part), rule) for rule in rules]
            for part, rules in (("skip", mapping.skip), ("end", mapping.end))
        )
        self._check([*filter(None, self._plain), *(target for target, _, _ in self._rules)])
        self._uses = Counter(position for _, _, positions in self._rules for position in positions)
        self._most_uses = max(self._uses.values(), default=0)
        used = {*self._uses, *(position for position, _ in (*self._skips, *self._ends))}
        are_read = [name is not None or number in used for number, name in enumerate(self._plain)]
        self.read = [*compress(range(self.width), are_read)]
        self.ignored = tuple(
            shown_name(name) if name.strip() else f"(column {number + 1})"
            for number, name in islice(compress(enumerate(names), map(not_, are_read)), SHOWN_NAMES)
        )
        self._values_of = self._plain_values()
        self._makers = [(target, rule.maker(target, at, mapping.clear)) for target, rule, at in self._rules]
        self._has_metadata = [name for name in self._targets() if name.startswith(METADATA_PREFIX)]
        self._make_key = next((make for target, make in self._makers if target == KEY), None)
        self.key_at = self._plain.index(KEY) if KEY in self._plain else self.width
        self.are_read_whole = not {PLAN, FAMILY}.isdisjoint(self._targets())
        self.are_told_by_key = not (self._skips or self._ends or self._make_key or self.are_read_whole)

    def is_known_by_text(self, cells: Sequence[str]) -> bool:
        """Whether the row need not be read to be recognised: its text says all, and that it is the row of a member."""
        is_plain = len(cells) == self.width and not self.are_read_whole and any(map(str.strip, cells))
        return is_plain and not _applies(self._skips, cells) and not _applies(self._ends, cells)

    def key(self, cells: Sequence[str]) -> str | None:
        """The value of external_id alone, as `row` would have it; "" or None if it has none."""
        if self._make_key is not None:
            return self._make_key(cells)
        key = cells[self.key_at]
        return None if key in self._mapping.clear else key

    def plain_keys(self, cells: list[str]) -> Sequence[str | None]:
        """The keys of rows that `are_told_by_key`, of their cells at `key_at`."""
        clear = self._mapping.clear
        return cells if clear.isdisjoint(cells) else [None if cell in clear else cell for cell in cells]

    def row(self, place: int, cells: Sequence[str], fault: Fault | None = None) -> Row:
        """The row of these cells; with a fault it is refused, unless the mapping leaves it out."""
        if _applies(self._skips, cells):
            return Row(place, {}, skipped=True)
        if fault is None and len(cells) != self.width:
            message = f"has {len(cells)} cells where the header has {self.width} columns"
            fault = Fault("row", "wrong_column_count", message)
        if fault is None and self._makers and self._is_too_long(cells):
            fault = _TOO_LONG
        if fault is not None:
            return Row(place, self._key_of(cells), faults=(fault,))
        values = self._values_of(cells)
        row = self._made(place, cells, values) if self._makers else Row(place, values)
        if not _applies(self._ends, cells):
            return row
        kept = {name: value for name, value in row.values.items() if name in (KEY, END_DAY)}
        return replace(row, values=kept, action=Action.END, context=_ENDS, family="")

    def _is_too_long(self, cells: Sequence[str]) -> bool:
        """Whether the rules would read more letters than a line may have: a cell may be in many of them."""
        if sum(map(len, cells)) * self._most_uses <= LONGEST_LINE:
            return False
        return sum(len(cells[position]) * uses for position, uses in self._uses.items()) > LONGEST_LINE

    def _key_of(self, cells: Sequence[str]) -> dict[str, object]:
        """The key of a row that is refused for its cells: for the report, and so that the member does not count as missing."""
        try:
            key = self.key(cells)
        except IndexError:  # the row has too few cells
            key = None
        return {KEY: key} if key else {}

    def _made(self, place: int, cells: Sequence[str], values: dict[str, object]) -> Row:
        """The row with the values that rules make."""
        for target, make in self._makers:
            value = make(cells)
            if value != "":
                convert = FIELDS[target].kind.from_text if target in FIELDS else None
                values[target] = convert(value) if convert is not None and value is not None else value
        if self._has_metadata:
            _gather(values, self._has_metadata)
        family = str(values.pop(FAMILY, None) or "")
        plan = values.pop(PLAN, None)
        if isinstance(plan, str) and self._mapping.plans:
            plan = self._mapping.plans.get(plan)
            if not plan:
                key = values.get(KEY)
                return Row(place, {KEY: key} if key else {}, faults=(UNKNOWN_PLAN,))
        return Row(place, values, plan=plan if isinstance(plan, str) else None, family=family)

    def _targets(self) -> list[str]:
        return [*filter(None, self._plain), *(target for target, _, _ in self._rules)]

    def _positions(
        self, target: str, rule: FieldRule, own: Mapping[str | None, list[int]]
    ) -> list[int] | None:
        """The places of the rule's columns; None if it is for a column that the file need not have."""
        if rule.constant is not None:
            return []
        if rule.columns:
            return [self._position(name, f"fields.{shown_name(target)}") for name in rule.columns]
        places = own.get(target, [])
        if len(places) > 1:
            raise self._repeated(target)
        return places or None

    def _position(self, folded: str, part: str) -> int:
        found = self._places.get(folded, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise self._repeated(folded)
        message = f"the mapping's {part} names a column that the file does not have"
        raise Unreadable("missing_column", message, place=self._place)

    def _check(self, known: list[str]) -> None:
        if not known and self._needs_key:
            message = (
                "the first rows name no field of a member; a header such as external_id,member_id,… is needed"
            )
            raise Unreadable("no_header", message, place=self._place)
        twice = sorted(target for target, times in Counter(known).items() if times > 1)
        if "metadata" in known and any(target.startswith(METADATA_PREFIX) for target in known):
            twice.append("metadata")
        if twice:
            raise self._repeated(twice[0])
        if KEY not in known and self._needs_key:
            raise Unreadable("no_key_column", "no column holds external_id, the match key", place=self._place)

    def _repeated(self, name: str) -> Unreadable:
        return Unreadable("repeated_column", f"two columns hold {shown_name(name)}", place=self._place)

    def _plain_values(self) -> Callable[[Sequence[str]], dict[str, object]]:
        """Turns the cells of the plain columns into values: a blank cell is absent, the clearing word is null."""
        names = [name or "" for name in self._plain]
        has_ignored = "" in names
        kinds = {name: FIELDS[name].kind for name in names if name in FIELDS}
        converters = [(name, kind.from_text) for name, kind in kinds.items() if kind.from_text is not None]
        # With rules, the metadata of both are gathered together.
        metadata = [] if self._rules else [name for name in names if name.startswith(METADATA_PREFIX)]
        clear = self._mapping.clear

        def values_of(cells: Sequence[str]) -> dict[str, object]:
            values: dict[str, object] = dict(compress(zip(names, cells, strict=True), map(str.strip, cells)))
            if has_ignored:
                values.pop("", None)
            if not clear.isdisjoint(cells):
                values = {name: None if value in clear else value for name, value in values.items()}
            for name, convert in converters:
                if isinstance(text := values.get(name), str):
                    values[name] = convert(text.strip())
            if metadata:
                _gather(values, metadata)
            return values

        return values_of


def _applies(rules: Sequence[tuple[int, RowRule]], cells: Sequence[str]) -> bool:
    """True for a row that one of the rules is about."""
    return bool(rules) and any(place < len(cells) and rule.applies(cells[place]) for place, rule in rules)


def _places(names: Iterable[str | None]) -> dict[str | None, list[int]]:
    """Where each name stands. A hostile header has thousands of names, and each rule looks for its own."""
    places: defaultdict[str | None, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        places[name].append(number)
    return dict(places)


def _gather(values: dict[str, object], names: list[str]) -> None:
    """Make one object of the `metadata.key` columns: absent without any value, empty if they are all cleared."""
    given = {name[len(METADATA_PREFIX) :]: values.pop(name) for name in names if name in values}
    if given:
        values["metadata"] = {key: value for key, value in given.items() if value is not None}


def target_of(name: str, mapping: FileMapping) -> str | None:
    """The field that a column of this name holds, as the mapping or else the interface calls it; None if there is none, or if
    the mapping says that the column is not read."""
    target = mapping.columns.get(fold_name(name))
    return field_named(name) if target is None else target or None
