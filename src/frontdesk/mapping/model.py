"""The rows of a file, mapped to the values of a request body, and the faults that a reader finds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from frontdesk import codes
from frontdesk.eligibility.fields import read_external_id, read_external_ids
from frontdesk.eligibility.model import NO_CONTEXT, Action, MemberWarning, RowContext
from frontdesk.errors import Fault, fault_of
from frontdesk.formats.model import FileMode, Format
from frontdesk.formats.x12 import Family


@dataclass(slots=True)
class Row:
    """One member of a file, as every reader gives it. `place` is its number: the header of a CSV is
    row 1, the first line of JSON lines is 1, the ISA of an 834 is segment 1.

    `values` are the interface's fields, as a JSON body carries them; a row that ends a member has
    `external_id` and `expiry_date` only, that of a table what it says of the person in
    `stated_values`. `plan` is the external_id of the plan that the row names,
    None for the plan of the file. A row with `faults` of the reader is refused; its values hold the
    external_id at most, for the report. A `skipped` row is one that the mapping leaves out.

    A member that is not stored yet also takes `values_of_new`. `context` says what the values
    can't. In tables, rows of one `family` share an address. A row of an 834 is a `part` of a family
    if the text of that family says all of it; it `leans_on_other` if it needs the address of a
    family elsewhere in the file. `transaction` and `ordinal` say where an 834 has it: in which ST,
    with which INS of that, both counted from 1; 0 in other formats.
    """

    place: int
    values: dict[str, object]
    action: Action = Action.ENROL
    plan: str | None = None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[MemberWarning, ...] = ()
    values_of_new: Mapping[str, object] | None = None
    context: RowContext = NO_CONTEXT
    skipped: bool = False
    family: str = ""
    stated_values: Mapping[str, object] | None = field(default=None, compare=False)
    part: "FamilyPart | None" = field(default=None, compare=False)
    leans_on_other: bool = field(default=False, compare=False)
    transaction: int = field(default=0, compare=False)
    ordinal: int = field(default=0, compare=False)

    def row(self, _position: int) -> "Row":
        """This row, as of UnreadRows one of theirs."""
        return self

    @property
    def is_warned(self) -> bool:
        """True if the report has a warning about the row in every load (not
        `address_of_subscriber`).
        """
        return any(each.code != codes.rows.ADDRESS_OF_SUBSCRIBER for each in self.warnings)


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Consecutive unparsed rows of a table from `place` on: `read(place, text)` parses one, at ten
    times the cost of the rest.

    Each of `texts` determines its row, with the file's columns, mapping and plan. `keys` are the
    external_ids as `read` would give them; "" or None without one.
    """

    place: int
    keys: Sequence[str | None]
    texts: Sequence[str]
    read: Callable[[int, str], Row]

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, start: int) -> "UnreadRows":
        """The rows from the position `start` on."""
        return UnreadRows(self.place + start, self.keys[start:], self.texts[start:], self.read)

    def row(self, position: int) -> Row:
        return self.read(self.place + position, self.texts[position])


@dataclass(frozen=True, slots=True)
class UnreadLoops:
    """Rows of an 834 before they are read. In the order of the file, each is to be read, or passed
    if the members of its `family` are known; both give rows that came before, too.
    """

    read: Callable[[], Iterator[Row]]
    family: Family | None = None
    pass_by: Callable[[], Iterator[Row]] = lambda: iter(())


# A family of an 834, and the position of a member in it.
FamilyPart = tuple[Family, int]
# What a reader gives: a row, or several that need not be read to be recognised.
ReadItem = Row | UnreadRows | UnreadLoops


def keys_of(item: Row | UnreadRows) -> Sequence[str | None]:
    """The external_ids of the rows; None for a row without one that can be read."""
    if isinstance(item, UnreadRows):
        return read_external_ids(item.keys)
    return [read_external_id(item.values.get("external_id"))]


def read_loops(items: Iterable[ReadItem]) -> Iterator[Row | UnreadRows]:
    """The items, all read that are loops."""
    for item in items:
        if isinstance(item, UnreadLoops):
            yield from item.read()
        else:
            yield item


def read_rows(items: Iterable[ReadItem]) -> Iterator[Row]:
    for item in read_loops(items):
        if isinstance(item, UnreadRows):
            yield from map(item.row, range(len(item)))
        else:
            yield item


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The data at the beginning of a file. `file_date` is `YYYY-MM-DD`. `is_test`: it says that it is
    a test (ISA15 of an 834). `sender` is GS02 of an 834.

    `ignored` names the columns (of JSON lines the keys, complete after the last row) that are no
    field. `columns` are what a table's rows are read by: its delimiter and the names of its
    columns. `encoding` is that of the text, None of a workbook.
    """

    format: Format
    mode: FileMode | None = None
    file_date: str | None = None
    ignored: Sequence[str] = field(default=())
    columns: Sequence[str] = ()
    encoding: str | None = None
    is_test: bool = False
    sender: str | None = None


REPEATED = fault_of(codes.rows.REPEATED_DIFFERENTLY)
NO_MEDICAL_COVERAGE = fault_of(codes.rows.NO_MEDICAL_COVERAGE)
UNKNOWN_PLAN = fault_of(codes.rows.UNKNOWN_PLAN)
IDENTIFIER_SHARED = fault_of(codes.rows.IDENTIFIER_SHARED)
