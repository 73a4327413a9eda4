"""A table: which of its first rows is the header, and what its cells mean as values of a request
body; JSON objects as the rows of one (docs/file-formats.md).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress, groupby, islice
from operator import not_
from typing import Any

from frontdesk import codes
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Action, MemberWarning, RowContext
from frontdesk.eligibility.persons import STATED_FIELDS
from frontdesk.errors import Fault
from frontdesk.formats.csv_rows import PlainRows, split_quoted
from frontdesk.formats.json_rows import ObjectRow
from frontdesk.formats.model import HeaderRank, SplitRow, Table, Unreadable
from frontdesk.formats.source import LONGEST_LINE
from frontdesk.mapping.column_names import MARK, ColumnNames
from frontdesk.mapping.digests import Hide, PersonColumns
from frontdesk.mapping.model import UNKNOWN_PLAN, ReadItem, Row, UnreadRows
from frontdesk.mapping.parser import FileMapping
from frontdesk.mapping.values import FAMILY, METADATA_PREFIX, PLAN, FieldRule, RowRule, fold_name
from frontdesk.text import SHOWN_NAMES, shown_name

KEY = "external_id"
END_DAY = "expiry_date"
MOST_HEADERS = 64  # the objects of a file have few sets of keys; those of a hostile one have many
_ENDS = RowContext(ends_access=True)
_CELL_ERROR = Fault(
    "row", codes.rows.CELL_ERROR, "a cell that is read holds an error of Excel, such as #N/A"
)
_HEADER_AGAIN = MemberWarning.of(codes.rows.UNTIDY_FILE, detail="is the header again")
_FIELD_TWICE = Fault("row", codes.rows.NOT_JSON, "two keys of the object hold one field")
_TOO_LONG_RULE = f"the mapping's rules read more than {LONGEST_LINE:,} characters of the row"
_TOO_LONG = Fault("row", codes.rows.VALUES_TOO_LONG, _TOO_LONG_RULE)


def header_rank(mapping: FileMapping) -> HeaderRank:
    """Ranks the mapping's row highest, else the first that has the key, split where it has most
    fields, else the one that names most fields.
    """
    key_columns = mapping.fields[KEY].columns if KEY in mapping.fields else ()

    def rank(place: int, names: Sequence[str]) -> tuple[int, ...]:
        columns = ColumnNames(names, mapping)
        has_all = bool(key_columns) and all(map(columns.places, key_columns))
        has_key = KEY in columns.targets or has_all
        count = sum(target is not None for target in columns.targets) + sum(
            any(map(columns.places, rule.columns)) for rule in mapping.fields.values()
        )
        return (
            place == mapping.header_row,
            has_key,
            *((-place, count) if has_key else (count, -place)),
        )

    return rank


class TableColumns:
    """The header of a table: which fields its columns hold, and how a row's cells become its
    values.

    `ignored` names the columns that are not read. `secret` is the account's, for the digests in
    identifiers; `is_1904` is that of the table. Raises Unreadable for columns that are missing, or
    of one field.
    """

    def __init__(
        self,
        names: Sequence[str],
        mapping: FileMapping,
        *,
        place: int = 1,
        secret: bytes = b"",
        is_1904: bool = False,
    ) -> None:
        self._mapping = mapping
        self._place = place
        self.width = len(names)
        self._header = [*map(str.strip, names)]
        # A cell that shows at once that a row is not the header again.
        self._shown_at = next((at for at, name in enumerate(self._header) if name), 0)
        self._columns = ColumnNames(names, mapping)
        own = self._columns.targets
        for name in mapping.columns:
            if self._columns.times(name) is not None:
                raise self._missing(name, "columns")
        # A rule overrides the column with its field's name.
        self._plain = [None if name in mapping.fields else name for name in own]
        rules = [
            (target, rule.since_1904() if is_1904 else rule, positions)
            for target, rule in mapping.fields.items()
            if (positions := self._positions(target, rule, own)) or rule.constant is not None
        ]
        self._skips, self._ends = (
            [(self._position(rule.column, part), rule) for rule in rows]
            for part, rows in (("skip", mapping.skip), ("end", mapping.end))
        )
        self._row_rules = [*self._skips, *self._ends]
        targets = [*filter(None, self._plain), *(target for target, _, _ in rules)]
        self._check(targets)
        self._uses = Counter(at for _, _, positions in rules for at in positions)
        self._most_uses = max(self._uses.values(), default=0)
        used = {*self._uses, *(position for position, _ in self._row_rules)}
        self._are_read = [
            name is not None or number in used for number, name in enumerate(self._plain)
        ]
        self.ignored = tuple(
            shown_name(name) if name.strip() else f"(column {number})"
            for number, name in islice(
                compress(enumerate(names, 1), map(not_, self._are_read)), SHOWN_NAMES
            )
        )
        self._names = [name or "" for name in self._plain]
        persons = PersonColumns(self._plain, rules, clear=mapping.clear, secret=secret)
        self._makers = [
            (name, rule.maker(name, at, mapping.clear, hide=_hider(name, at, persons)))
            for name, rule, at in rules
        ]
        converters = [(name, FIELDS[name].kind.from_text) for name in targets if name in FIELDS]
        self._conversions = [(name, convert) for name, convert in converters if convert is not None]
        self._metadata = [name for name in targets if name.startswith(METADATA_PREFIX)]
        self._make_key = next((make for target, make in self._makers if target == KEY), None)
        self._key_at = self._plain.index(KEY) if KEY in self._plain else self.width
        self._are_read_whole = not {PLAN, FAMILY}.isdisjoint(targets)
        self._are_told_by_key = not (self._row_rules or self._make_key or self._are_read_whole)

    def items(self, table: Table) -> Iterator[ReadItem]:
        """The rows of the table that are not blank, unread where their texts say all."""
        delimiter = table.delimiter
        errors = table.errors

        def read(place: int, text: str) -> Row:
            return self.row(
                place, split_quoted(text, delimiter) if '"' in text else text.split(delimiter)
            )

        for block in table.blocks:
            if isinstance(block, PlainRows) and (keys := self._keys_of(block)):
                yield UnreadRows(block.place, keys, block.texts, read)
                continue
            for is_known, rows in groupby(block, self._is_known_by_text):
                if is_known:
                    known = [*rows]
                    keys = [self._key(row[1]) for row in known]
                    texts = [row[2] or "" for row in known]
                    yield UnreadRows(known[0][0], keys, texts, read)
                    continue
                for place, cells, _, fault in rows:
                    if errors and not errors.isdisjoint(compress(cells, self._are_read)):
                        yield self.row(place, cells, _CELL_ERROR)
                    elif fault is not None or any(map(str.strip, cells)):
                        yield self.row(place, cells, fault)

    def _keys_of(self, rows: PlainRows) -> Sequence[str | None]:
        """The keys of the rows, if these need no more to be recognised by their texts, else none. A
        row with a key is not blank, and what follows the key need not be split.
        """
        cells = rows.column(self._key_at, self.width) if self._are_told_by_key else []
        if not cells or not all(map(str.strip, cells)) or self._header[self._key_at] in cells:
            return []
        clear = self._mapping.clear
        return (
            cells
            if clear.isdisjoint(cells)
            else [None if cell in clear else cell for cell in cells]
        )

    def _is_known_by_text(self, row: SplitRow) -> bool:
        """Whether the row need not be read to be recognised: its text says all, and that it is the
        row of a member.
        """
        cells = row[1]
        if row[2] is None or self._are_read_whole or len(cells) != self.width:
            return False
        if _applies(self._row_rules, cells) or self._is_header(cells):
            return False
        return any(map(str.strip, cells))

    def _is_header(self, cells: Sequence[str]) -> bool:
        """Whether the row is the header again, as in exports that are made for pages."""
        at = self._shown_at
        if len(cells) != self.width or not cells or cells[at].strip() != self._header[at]:
            return False
        return [*map(str.strip, cells)] == self._header

    def _key(self, cells: Sequence[str]) -> str | None:
        """The value of external_id alone, as `row` would have it; "" or None if it has none, or too
        few cells.
        """
        try:
            if self._make_key is not None:
                return self._make_key(cells)
            key = cells[self._key_at]
        except IndexError:
            return None
        return None if key in self._mapping.clear else key

    def row(self, place: int, cells: Sequence[str], fault: Fault | None = None) -> Row:
        """The row of these cells; with a fault it is refused, unless the mapping leaves it out."""
        if _applies(self._skips, cells):
            return Row(place, {}, skipped=True)
        if self._is_header(cells):
            return Row(place, {}, skipped=True, warnings=(_HEADER_AGAIN,))
        if fault is None and len(cells) != self.width:
            message = (
                f"has {len(cells)} cells where the header has {self.width} columns: "
                "quote a cell with a delimiter"
            )
            fault = Fault("row", codes.rows.WRONG_COLUMN_COUNT, message)
        is_too_long = bool(self._makers) and self._is_too_long(cells)
        if fault is None and is_too_long:
            fault = _TOO_LONG
        if fault is not None:
            # Where quotation marks have swallowed cells, the identifier may have others in it.
            is_torn = fault.code == codes.rows.BAD_QUOTING and len(cells) != self.width
            key = None if is_torn else self._key(cells)
            refused = _refused(place, key, fault)
            if fault is _CELL_ERROR and len(cells) == self.width and not is_too_long:
                refused.stated_values = _stated(self._values(cells))
            return refused
        values = self._values(cells)
        row = self._placed(place, values) if self._are_read_whole else Row(place, values)
        if not _applies(self._ends, cells):
            return row
        values = {name: value for name, value in row.values.items() if name in (KEY, END_DAY)}
        ended = replace(row, values=values, action=Action.END, context=_ENDS, family="")
        ended.stated_values = row.stated_values or _stated(row.values)
        return ended

    def _values(self, cells: Sequence[str]) -> dict[str, object]:
        """A blank cell is absent, the clearing word is null."""
        named = zip(self._names, cells, strict=True)
        values: dict[str, object] = dict(compress(named, map(str.strip, cells)))
        values.pop("", None)
        clear = self._mapping.clear
        if not clear.isdisjoint(cells):
            values = {name: None if value in clear else value for name, value in values.items()}
        for target, make in self._makers:
            if (value := make(cells)) != "":
                values[target] = value
        for name, convert in self._conversions:
            if isinstance(text := values.get(name), str):
                values[name] = convert(text.strip())
        if self._metadata:
            _gather(values, self._metadata)
        return values

    def _is_too_long(self, cells: Sequence[str]) -> bool:
        """Whether the rules would read more letters than a line may have: a cell may be in many of
        them.
        """
        may_be = sum(map(len, cells)) * self._most_uses > LONGEST_LINE
        return (
            may_be and sum(len(cells[at]) * uses for at, uses in self._uses.items()) > LONGEST_LINE
        )

    def _placed(self, place: int, values: dict[str, object]) -> Row:
        """The row of its plan and family."""
        family = str(values.pop(FAMILY, None) or "")
        plan = values.pop(PLAN, None)
        if isinstance(plan, str) and self._mapping.plans:
            plan = self._mapping.plans.get(plan)
            if not plan:
                refused = _refused(place, values.get(KEY), UNKNOWN_PLAN)
                refused.stated_values = _stated(values)
                return refused
        return Row(place, values, plan=plan if isinstance(plan, str) else None, family=family)

    def _positions(self, target: str, rule: FieldRule, own: list[str | None]) -> list[int]:
        """The places of the rule's columns; none for a constant, and for a column that the file
        need not have.
        """
        if rule.columns:
            return [self._position(name, f"fields.{shown_name(target)}") for name in rule.columns]
        if own.count(target) > 1 and rule.constant is None:
            raise self._repeated(target)
        return [own.index(target)] if target in own and rule.constant is None else []

    def _position(self, folded: str, part: str) -> int:
        places = self._columns.places(folded)
        if not places:
            raise self._missing(folded, part)
        if len(places) > 1:
            raise self._repeated(folded)
        return places[0]

    def _missing(self, folded: str, part: str) -> Unreadable:
        times = self._columns.times(folded)
        message = f"the mapping's {part} names a column that the file does not have"
        if times is not None:
            ordinal = folded.rpartition(MARK)[2]
            message += f": {MARK}{ordinal} of a name that {times} of its columns have"
        return Unreadable(codes.files.MISSING_COLUMN, message, place=self._place)

    def _check(self, known: list[str]) -> None:
        twice = sorted(target for target, times in Counter(known).items() if times > 1)
        if "metadata" in known and any(target.startswith(METADATA_PREFIX) for target in known):
            twice.append("metadata")
        if twice:
            raise self._repeated(twice[0])

    def check_key(self) -> None:
        """Raises Unreadable if no column holds the match key."""
        if self._make_key is None and KEY not in self._plain:
            if not (self._makers or any(self._plain)):
                message = (
                    "the first rows name no field of a member; a header such as "
                    "external_id,member_id,… is needed"
                )
                raise Unreadable(codes.files.NO_HEADER, message, place=self._place)
            raise Unreadable(
                codes.files.NO_KEY_COLUMN,
                "no column holds external_id, the match key",
                place=self._place,
            )

    def _repeated(self, name: str) -> Unreadable:
        message = (
            f"two columns hold {shown_name(name)}: name one of them in the mapping, and another "
            "one null; two of one name are NAME#1 and NAME#2"
        )
        return Unreadable(codes.files.REPEATED_COLUMN, message, place=self._place)


def _hider(target: str, positions: Sequence[int], persons: PersonColumns) -> Hide | None:
    return persons.hider(positions) if target in (KEY, "member_id") else None


def _refused(place: int, key: object, fault: Fault) -> Row:
    """It has its key for the report, and so that the member does not count as missing."""
    return Row(place, {KEY: key} if key else {}, faults=(fault,))


def _stated(values: Mapping[str, object]) -> dict[str, object]:
    """What the values say of the person."""
    return {name: value for name, value in values.items() if name in STATED_FIELDS}


def _applies(rules: Sequence[tuple[int, RowRule]], cells: Sequence[str]) -> bool:
    return bool(rules) and any(
        place < len(cells) and rule.applies(cells[place]) for place, rule in rules
    )


def _gather(values: dict[str, object], names: list[str]) -> None:
    """Make one object of the `metadata.key` columns: absent without any value, empty if they are
    all cleared.
    """
    given = {name[len(METADATA_PREFIX) :]: values.pop(name) for name in names if name in values}
    if given:
        values["metadata"] = {key: value for key, value in given.items() if value is not None}


class ObjectKeys:
    """Makes rows of JSON objects: bodies of a POST, or with a mapping rows of a table with their
    values as cells. `ignored` names the keys that are no field, of all objects so far.
    """

    def __init__(self, mapping: FileMapping, secret: bytes = b"") -> None:
        self.ignored: list[str] = []
        self._secret = secret
        self._mapping = mapping
        self._clear = min(mapping.clear)
        self._is_translated = bool(mapping.columns or mapping.fields or mapping.skip or mapping.end)
        in_rules = [column for rule in mapping.fields.values() for column in rule.columns]
        self._needed = dict.fromkeys(
            [*in_rules, *(rule.column for rule in (*mapping.skip, *mapping.end))]
        )
        self._unseen = set(self._needed)
        self._columns_of = lru_cache(MOST_HEADERS)(self._columns)

    def rows(self, objects: Iterable[ObjectRow]) -> Iterator[Row]:
        """The rows. Raises Unreadable after the last one if the mapping names a key that no object
        has.
        """
        for place, found in objects:
            if isinstance(found, Fault):
                yield Row(place, {}, faults=(found,))
            elif self._is_translated:
                yield self._translated(place, found)
            else:
                if not found.keys() <= FIELDS.keys() and len(self.ignored) < SHOWN_NAMES:
                    self._ignore([shown_name(name) for name in found if name not in FIELDS])
                yield Row(place, found)
        if self._unseen and self._columns_of.cache_info().currsize:
            raise Unreadable(
                codes.files.MISSING_COLUMN, "The mapping names a key that no row of the file has."
            )

    def _translated(self, place: int, values: dict[str, Any]) -> Row:
        try:
            columns = self._columns_of(tuple(values))
        except Unreadable as error:
            if error.code == codes.files.MISSING_COLUMN:
                raise
            return Row(place, {}, faults=(_FIELD_TWICE,))
        cells = [self._clear if value is None else cell_of(value) for value in values.values()]
        return columns.row(place, [*cells, *[""] * (columns.width - len(cells))])

    def _columns(self, names: tuple[str, ...]) -> TableColumns:
        """The columns of objects with these keys. A key that a rule needs may be absent from some
        of them.
        """
        folded = set(map(fold_name, names))
        self._unseen -= folded
        absent = [name for name in self._needed if name not in folded]
        columns = TableColumns([*names, *absent], self._mapping, secret=self._secret)
        self._ignore(columns.ignored)
        return columns

    def _ignore(self, names: Sequence[str]) -> None:
        new = [name for name in names if name not in self.ignored]
        self.ignored += new[: SHOWN_NAMES - len(self.ignored)]


def cell_of(value: Any) -> str:
    """A JSON value that is not null as the cell of a table."""
    if type(value) is str:
        return value
    whole = type(value) is float and value.is_integer()
    return json.dumps(int(value) if whole else value, ensure_ascii=False)
