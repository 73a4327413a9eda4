"""How the values of a row's fields are made from its cells: names of columns, dates as senders
write them, names of people in one cell, and the rules of a mapping (docs/file-formats.md). A rule
is a list of plain steps, and what it may say is bounded, so that no mapping makes a row take long.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache, partial
from itertools import chain, permutations

from frontdesk.eligibility.field_kinds import METADATA_KEY_LENGTH, day_exists
from frontdesk.eligibility.fields import FIELDS

PLAN = "plan"  # the target that names the plan of a row
FAMILY = "family"  # the target that is the same for the members of a family; it is not stored

METADATA_PREFIX = "metadata."
# White space, to Python and to JSON Schema, whose `\s` lacks these control characters.
_BLANK = r"\s\x1c-\x1f\x85"
COLUMN_NAME = re.compile(rf"[^{_BLANK}_\-]")  # a character that stays when a name is folded
METADATA_FIELD = re.compile(
    rf"metadata[.][^{_BLANK}](?:[^\r\n]{{0,{METADATA_KEY_LENGTH - 2}}}[^{_BLANK}])?"
)

# The result of a rule: a text, "" for an absent field, None for a cleared one.
Value = str | None


def fold_name(name: str) -> str:
    """A column's name without letter case, spaces, underscores and hyphens, which senders vary.

    >>> fold_name("External_ID ")
    'externalid'
    """
    return re.sub(r"[\s_\-]+", "", name).lower()


_BY_FOLDED = {fold_name(name): name for name in FIELDS}


def field_named(name: str) -> str | None:
    """The field (or `metadata.key`) that a column's name means; None if there is none.

    >>> field_named("External ID")
    'external_id'
    >>> field_named("Metadata.Division")
    'metadata.Division'
    >>> field_named("Shoe size") is None
    True
    """
    name = name.strip()
    if name[: len(METADATA_PREFIX)].lower() == METADATA_PREFIX and len(name) > len(METADATA_PREFIX):
        return METADATA_PREFIX + name[len(METADATA_PREFIX) :]
    return _BY_FOLDED.get(fold_name(name))


def mappable_field(name: str) -> str | None:
    """The field (or `metadata.key`, with a key that a member may have) that a mapping means; None
    if there is none.

    >>> mappable_field("zip-code")
    'zipcode'
    >>> mappable_field("metadata.Division")
    'metadata.Division'
    """
    known = field_named(name)
    return known if known in FIELDS or METADATA_FIELD.fullmatch(known or "") else None


EXCEL_SERIAL = "excel"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ANY_ORDER = [
    "".join(order) for order in permutations(("(?:YYYY|YY)S", "(?:MON|MM|M)S", "(?:DD|D)S"))
]
DATE_FORMAT = re.compile("|".join(order[:-1].replace("S", "[-/., ]{0,3}") for order in _ANY_ORDER))
_KIND = {
    "YYYY": "year",
    "YY": "short",
    "MON": "name",
    "MM": "month",
    "M": "month",
    "DD": "day",
    "D": "day",
}
_DIGITS = {"year": "[0-9]{4}", "short": "[0-9]{2}", "name": "[A-Za-z]{3,9}"}
_TIME = "(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?(?: ?[AaPp][Mm])?)?"
_LONGEST_DATE = 40
_SERIAL = re.compile("(?P<serial>[0-9]{1,7})(?:[.][0-9]{1,12})?")
_SERIAL_1904 = re.compile("(?P<serial_1904>[0-9]{1,7})(?:[.][0-9]{1,12})?")
_DAYS_TO_1904 = 1462
_LAST_SERIAL = 2_958_465  # 9999-12-31
_DAY_60 = 60  # Excel counts a 29 February 1900, which never was


def parse_format(text: str) -> re.Pattern[str] | None:
    """The pattern of dates in a format such as `MM/DD/YYYY` or `excel`; None if the text names no
    format.

    >>> parse_format("MM/DD/YYYY").fullmatch("1/31/1977").groupdict()
    {'month': '1', 'day': '31', 'year': '1977'}
    >>> parse_format("MM/MM/YYYY") is None
    True
    """
    text = text.strip().upper()
    if text.lower() == EXCEL_SERIAL:
        return _SERIAL
    if not DATE_FORMAT.fullmatch(text):
        return None
    # Without anything between them, day and month have two digits.
    digits = "[0-9]{1,2}" if re.search("[-/., ]", text) else "[0-9]{2}"
    kinds = re.sub(
        "|".join(_KIND),
        lambda token: f"(?P<{(kind := _KIND[token[0]])}>{_DIGITS.get(kind, digits)})",
        text.replace(".", "[.]"),
    )
    return re.compile(kinds + _TIME)


def date_reader(formats: Sequence[re.Pattern[str]], pivot: int) -> Callable[[str], str]:
    """A function that writes a date in one of the formats as YYYY-MM-DD, by the first that fits,
    and a day that does not exist (30 February) if none does, so that it is refused as that. Any
    other text, and an ISO date, stays as it is. Two-digit years up to `pivot` are 20YY, the others
    19YY.

    >>> read = date_reader([parse_format("M/D/YY")], pivot=30)
    >>> [read(text) for text in ("1/31/77", "1/31/26", "2/30/77", "soon")]
    ['1977-01-31', '2026-01-31', '1977-02-30', 'soon']
    """

    @lru_cache(maxsize=1024)
    def read(text: str) -> str:
        missing_day = text
        for found in filter(None, (pattern.fullmatch(text) for pattern in formats)):
            day = _iso_day(found.groupdict(), pivot)
            if day_exists(day):
                return day
            missing_day = day or missing_day
        return missing_day

    return lambda text: read(text) if len(text) <= _LONGEST_DATE else text


def _iso_day(parts: Mapping[str, str], pivot: int) -> str:
    """The day as YYYY-MM-DD, also one that the calendar does not have; "" if it can be none of any
    month.
    """
    if "serial_1904" in parts:
        parts = {"serial": str(int(parts["serial_1904"]) + _DAYS_TO_1904)}
    if "serial" in parts:
        serial = int(parts["serial"])
        is_day = 1 <= serial <= _LAST_SERIAL and serial != _DAY_60
        return (
            (date(1899, 12, 30 + (serial < _DAY_60)) + timedelta(serial)).isoformat()
            if is_day
            else ""
        )
    short = int(parts.get("short", 0))
    day = int(parts["day"])
    year = int(parts.get("year", (2000 if short <= pivot else 1900) + short))
    name = parts.get("name", "")[:3].lower()
    month = int(parts.get("month", _MONTHS.index(name) + 1 if name in _MONTHS else 0))
    return f"{year:04}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else ""


def words_in(text: str) -> frozenset[str]:
    """The words of a text, each once.

    >>> sorted(words_in("mr  mrs"))
    ['mr', 'mrs']
    """
    return frozenset(text.split())


_TITLES = words_in("mr mrs ms miss mx dr prof rev hon sir")
NAME_SUFFIXES = words_in("jr sr junior senior ii iii iv 2nd 3rd 4th md phd dds dmd esq cpa rn")
# A family name begins with the first of them that follows a given name.
_PARTICLES = words_in(
    "de da das del della di do dos du la las le los van von vom vander der den ten ter te zu zum "
    "zur bin ibn al el st saint san santa mc mac"
)


def _name_part(part: str, text: str) -> str:
    """A part of a name in one cell, `Last, First Middle` or `First Middle Last`; "" if it is not
    there. A suffix stays with the last name, a title is no part, and a word that stands alone is a
    last name.
    """
    family, *others = (piece.split() for piece in text.split(","))
    suffixes = deque(word for piece in others if _are_suffixes(piece) for word in piece)
    rest = [piece for piece in others if piece and not _are_suffixes(piece)]
    words = deque(chain.from_iterable(rest) if rest else family)
    while words and _folded(words[0]) in _TITLES:
        words.popleft()
    while len(words) > 1 and _folded(words[-1]) in NAME_SUFFIXES:
        suffixes.appendleft(words.pop())
    given = [*words]
    if not rest:
        particles = (at for at, word in enumerate(given[1:-1], 1) if _folded(word) in _PARTICLES)
        at = max(next(particles, len(given) - 1), 0)
        given, family = given[:at], given[at:]
    parts = {"first_name": given[:1], "middle_name": given[1:], "last_name": [*family, *suffixes]}
    return " ".join(parts[part])


def _are_suffixes(words: list[str]) -> bool:
    return bool(words) and all(_folded(word) in NAME_SUFFIXES for word in words)


def _folded(word: str) -> str:
    return word.casefold().replace(".", "")


def _phone(text: str) -> str:
    """The number before an extension."""
    folded = text.casefold()
    positions = [folded.find(mark) for mark in ("ext", "x", "#", ";")]
    ends = [at for at in positions if at > 0]
    return text[: min(ends)].strip() if ends else text


CELL_PARTS: dict[str, Callable[[str], str]] = {
    part: partial(_name_part, part) for part in ("first_name", "middle_name", "last_name")
} | {"phone": _phone}


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field's value is made. Without `columns` and `constant` it is the column that already
    has the field's name.

    `blank` stands for blank cells behind the first one. `values` maps folded words, "" for a blank
    cell, to what is stored; `dates` are patterns, `open_dates` ISO dates that clear the field.
    """

    columns: tuple[str, ...] = ()
    join: str = " "
    blank: str = ""
    part: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    dates: tuple[re.Pattern[str], ...] = ()
    pivot: int = 0
    open_dates: frozenset[str] = frozenset()
    pad: int = 0
    constant: str | None = None

    def since_1904(self) -> "FieldRule":
        """The rule for a workbook that counts days from 1904."""
        dates = (_SERIAL_1904 if each is _SERIAL else each for each in self.dates)
        return replace(self, dates=tuple(dates))

    def maker(
        self,
        target: str,
        positions: Sequence[int],
        clear: frozenset[str],
        *,
        hide: Callable[[list[str]], list[str]] | None = None,
    ) -> Callable[[Sequence[str]], Value]:
        """A function from a row's cells to the value; `positions` are those of the rule's columns.
        `hide` makes a digest of the cells of an identifier that hold names or birth dates.

        >>> rule = FieldRule(columns=("City", "State"), join=", ")
        >>> make = rule.maker("city", [1, 2], clear=frozenset({"NULL"}))
        >>> make(["7", "Boston ", "MA"])
        'Boston, MA'
        >>> make(["7", "NULL", "NULL"]) is None
        True
        """
        if self.constant is not None:
            constant = self.constant
            return lambda _cells: constant
        needs_all = target in FIELDS and FIELDS[target].unique
        read_part = CELL_PARTS.get(self.part, str.strip)
        read_date = date_reader(self.dates, self.pivot) if self.dates else None

        def make(cells: Sequence[str]) -> Value:
            parts = [cells[position].strip() for position in positions]
            if not clear.isdisjoint(parts):
                return None if clear.issuperset(parts) else ""
            if self.blank and parts[0]:
                parts[1:] = [part or self.blank for part in parts[1:]]
            if needs_all and not all(parts):  # half of an identifier could be another member's
                parts = []
            if hide is not None:
                parts = hide(parts)
            text = read_part(self.join.join(filter(None, parts)))
            if self.values and (word := text.casefold()) in self.values:
                return self.values[word]
            if read_date is not None and text:
                text = read_date(text)
            if text in self.open_dates:
                return None
            return _padded(text, self.pad) if self.pad else text

        return make


def _padded(text: str, length: int) -> str:
    """The text, its first digits filled with zeros: `2134-1234` is `02134-1234` in 5."""
    digits = len(text) - len(text.lstrip("0123456789"))
    return "0" * (length - digits) + text if digits else text


@dataclass(frozen=True, slots=True)
class RowRule:
    """A rule for rows that end their members or are left out: the cell of the column is one of the
    folded words of `equals` ("" is a blank cell), or begins with one of `starts_with`.
    """

    column: str
    equals: frozenset[str] = frozenset()
    starts_with: tuple[str, ...] = ()

    def applies(self, cell: str) -> bool:
        """Whether the rule holds for a row with this cell in its column.

        >>> rule = RowRule("Status", equals=frozenset({"total"}), starts_with=("term",))
        >>> [rule.applies(cell) for cell in ("Total", "Terminated", "Active")]
        [True, True, False]
        """
        word = cell.strip().casefold()
        return word in self.equals or bool(self.starts_with and word.startswith(self.starts_with))
