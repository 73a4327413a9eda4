"""Decides which column of a sample holds which field, by its name and its values, and the rule that
reads it: the mapping as it grows, column by column.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from frontdesk.eligibility.field_kinds import EARLIEST_DOB, STATE_CODES, FieldContext, day_exists
from frontdesk.eligibility.fields import FIELDS
from frontdesk.mapping import values
from frontdesk.mapping.parser import MOST_FORMATS, parse_mapping
from frontdesk.mapping.suggest import names
from frontdesk.mapping.suggest.names import (
    FULL_NAME,
    PERSON_NUMBER,
    RELATIONSHIP,
    meanings,
    words_of,
)
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.values import FAMILY, date_reader, field_named, parse_format
from frontdesk.text import Rejected, RejectedParts, are_mostly_ssns

# Confidence of a suggestion, 0 to 1: that of the column's name, times these factors.
_GUESSED = 0.6
_WITHOUT_VALUES = 0.7
_SHARED_KEY = 0.5
_OF_EMPLOYMENT = 0.89  # an unspecified day of termination, if there is an end of a coverage too
_LEAST = 0.3  # less confident fields are not suggested
_LONGEST_NUMBER = 3  # of a person in a family
_OF_PERSON = ("first_name", "last_name", "dob")
_FEW_CLASHES = 2  # people, or one in so many:
_ONE_IN = 50
_OF_RELATIONSHIP = ("relationship_code", "relationship_code_hipaa", "subscriber_relationship")
_IDENTIFIERS = {"external_id", "member_id", PERSON_NUMBER}
_ON_SSNS = (
    "Most values look like social security numbers, so the column is not used as an identifier. "
    "Ask the sender for a number of its own. If they are none, or are to be stored and shown as "
    "they are, say so in the mapping: {}."
)

_OPEN_DATES = ("9999-12-31", "9999-12-30", "2999-12-31", "9999-01-01", "4712-12-31")
_DATES = ("dob", "effective_date", "expiry_date")
# Each format beside its other order.
MONTH_FIRST = ("MM/DD/YYYY", "MM-DD-YYYY", "MMDDYYYY", "MM/DD/YY", "MM-DD-YY")
DAY_FIRST = ("DD/MM/YYYY", "DD-MM-YYYY", "DDMMYYYY", "DD/MM/YY", "DD-MM-YY")
_PLAIN_DATES = [
    *(
        "YYYY-MM-DD",
        "YYYY/MM/DD",
        "YYYYMMDD",
        "DD-MON-YYYY",
        "DD MON YYYY",
        "MON DD, YYYY",
        "DD-MON-YY",
    ),
    *("DD.MM.YYYY", "DD.MM.YY", values.EXCEL_SERIAL),
]
_LATEST_PIVOT = 99
_LOOKED_AT = 200  # values of a column; each format of dates is tried on each of them
_ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(?! )")  # with a space before the time it is none
# Dates that mean no end.
_NO_DATE = re.compile("0{1,4}(?:[-/.]0{1,4}){0,2}|n/?a|none|null|-+|present|current|active|ongoing")
_ORDER = re.compile("([0-9]{1,2})[/-]([0-9]{1,2})[/-](?:[0-9]{4}|[0-9]{2})(?![0-9])")
_FIRST_SERIAL = "1927-05-18"  # of five digits

_WORDS: dict[str, Mapping[str, Any]] = {
    "medical_eligibility": names.BOOLEAN_OF,
    "medical_enrollment": names.BOOLEAN_OF,
    "gender": names.GENDER_OF,
}
# Values where no field's own rule decides.
_FITS: dict[str, Callable[[str], object]] = {
    "state": lambda value: value.casefold() in STATE_CODES,
    RELATIONSHIP: lambda value: value.casefold() in names.RELATIONSHIP_OF,
    FULL_NAME: lambda value: len(value.split()) > 1,
    # `Suffix` may also be that of a name.
    PERSON_NUMBER: lambda value: value.casefold().rstrip(".") not in values.NAME_SUFFIXES,
    names.COVERAGE_LINE: bool,
}
Rule = dict[str, Any]


class ReadField(NamedTuple):
    """How a field is read: the columns, how sure that is, from 0 to 1, and the rest of the rule."""

    columns: list[int]
    confidence: float
    rule: Rule


@dataclass(slots=True)
class MappingDraft:
    """The mapping as it grows, by field. `notes` say why a column is not used."""

    sample: Sample
    fields: dict[str, ReadField] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

    def column_of(self, name: str) -> int | None:
        """The first column of the field."""
        return self.fields[name].columns[0] if name in self.fields else None

    def uses(self, column: int) -> dict[str, float]:
        """The fields that the column is read for, and how sure that is."""
        return {
            name: round(sure, 2)
            for name, (columns, sure, _) in self.fields.items()
            if column in columns
        }

    def clashes(self, *columns: int) -> int:
        """How many people have the same cells in these columns as another person before them. Rows
        of one name and birth date are one person; without such columns, identical rows are.
        """
        fields = [self.fields[name] for name in _OF_PERSON if name in self.fields]
        own = sorted({column for each in fields for column in each.columns})
        people = defaultdict[tuple[str, ...], set[tuple[str, ...]]](set)
        for row in self.sample.rows:
            key = tuple(row[column].strip() for column in columns)
            if key[0]:
                told_by = [row[column] for column in own] if own else row
                people[key].add(tuple(cell.strip().casefold() for cell in told_by))
        return sum(len(each) - 1 for each in people.values())


def draft_mapping(sample: Sample, *, year: int) -> MappingDraft:
    """The fields of the columns, and the rules that read them. `year` is the current year."""
    draft = MappingDraft(sample)
    best: dict[str, ReadField] = {}
    used: set[int] = set()
    candidates = sorted(
        _candidates(draft, year), key=lambda each: (-each[1].confidence, each[1].columns)
    )
    for target, found in candidates:
        best.setdefault(target, found)
        if target in FIELDS and target not in draft.fields and used.isdisjoint(found.columns):
            draft.fields[target] = found
            used.update(found.columns)
    if FULL_NAME in best and "last_name" not in draft.fields:
        _add_names(draft, best[FULL_NAME])
    if RELATIONSHIP in best:
        _add_relationship(draft, best[RELATIONSHIP])
    others = [best[each].columns if each in best else [] for each in (PERSON_NUMBER, RELATIONSHIP)]
    _add_identifiers(draft, *others)
    _add_family(draft)
    return draft


def _candidates(draft: MappingDraft, year: int) -> Iterator[tuple[str, ReadField]]:
    """The possible contents of each column, fields and other meanings."""
    sample = draft.sample
    known = _known_meanings(draft)
    dated = (
        sample.column(at) for at, meant in known.items() if not meant.keys().isdisjoint(_DATES)
    )
    formats, is_order_known = _date_formats(
        {cell for cells in dated for cell in cells[:_LOOKED_AT]}
    )
    for column, meant in known.items():
        cells = sample.column(column)
        has_blanks = len(cells) < len(sample.rows)
        for target, score in meant.items():
            rule = _rule_for(cells, target, formats, year)
            if target == "gender" and has_blanks:
                rule["values"] = rule.get("values", {}) | {"": "unknown"}
            # Genders in numbers are read by ISO 5218, which not every sender means.
            is_guess = target == "gender" and bool(cells) and all(map(str.isdigit, cells))
            is_guess |= "dates" in rule and not is_order_known
            sure = score * _share(cells[:_LOOKED_AT], target, rule) * (_GUESSED if is_guess else 1)
            # A dependent's name that is blank on the employee's row is not the name of the row's
            # person.
            is_other = (
                target == FULL_NAME and has_blanks and "dependent" in words_of(sample.names[column])
            )
            if sure >= _LEAST and not is_other:
                yield target, ReadField([column], sure, rule)


def _known_meanings(draft: MappingDraft) -> dict[int, dict[str, float]]:
    """The meanings of the columns' names, by place."""
    sample = draft.sample
    known = {at: meanings(name) for at, name in enumerate(sample.names) if sample.can_be_mapped(at)}
    has_begin = any("effective_date" in meant for meant in known.values())
    for column, meant in known.items():
        if "expiry_date" in meant and names.ends_employment(sample.names[column]):
            meant["expiry_date"] *= _OF_EMPLOYMENT
        if (hired := meant.pop(names.HIRE_DATE, None)) is not None and not has_begin:
            meant["effective_date"] = hired
        keys = meant.keys() & _IDENTIFIERS
        if keys and _are_relationships(sample.column(column)):
            # `Subscriber Code` of S and D
            known[column] = {RELATIONSHIP: names.GOOD_NAME}
        elif keys and are_mostly_ssns(sample.column(column)):
            # An identifier that is left out by mistake is named by a person; a stored number is
            # hard to take back.
            target = "member_id" if "member_id" in keys else "external_id"
            plain = {"columns": {sample.apart[column]: target}, "ssn": "plain"}
            draft.notes[column] = _ON_SSNS.format(json.dumps(plain, ensure_ascii=False))
            known[column] = {name: score for name, score in meant.items() if name not in keys}
    return known


def _are_relationships(cells: Sequence[str]) -> bool:
    """Whether the cells are words of a relationship, and no numbers of persons."""
    words = {*map(str.casefold, cells)}
    return bool(words) and words <= names.RELATIONSHIP_OF.keys() and all(map(str.isalpha, words))


def _rule_for(cells: Sequence[str], target: str, formats: Sequence[str], year: int) -> Rule:
    """The rule that makes values of the field from such cells."""
    if target in _DATES:
        return _date_rule(cells, target, formats, year)
    if target == "zipcode" and any(
        re.fullmatch("[0-9]{3,4}(?:-[0-9]{4})?", value) for value in cells
    ):
        return {"pad": 5}
    if target == "phone" and any(values.CELL_PARTS["phone"](value) != value for value in cells):
        return {"part": "phone"}
    known = _WORDS.get(target, {})
    words = sorted({*map(str.casefold, cells)} & known.keys())
    by_word = {word: known[word] for word in words if str(known[word]).casefold() != word}
    return {"values": by_word} if by_word else {}


def _share(cells: Sequence[str], target: str, rule: Rule) -> float:
    """The share of the cells that the field takes after the rule, from 0 to 1."""
    fits = _FITS.get(target) or _reader(target, rule)
    return sum(map(bool, map(fits, cells))) / len(cells) if cells else _WITHOUT_VALUES


def _reader(target: str, rule: Rule) -> Callable[[str], bool]:
    """Whether the field takes a cell after the rule, as a load would read it."""
    make = parse_mapping({"fields": {target: rule}}).fields[target].maker(target, [0], frozenset())
    kind = FIELDS[target].kind

    def accepts(cell: str) -> bool:
        value = make([cell])
        try:
            if value is not None:
                kind.read(
                    kind.from_text(value) if kind.from_text else value, FieldContext("9999-12-31")
                )
        except (Rejected, RejectedParts):
            return False
        return True

    return accepts


def _date_formats(cells: Collection[str]) -> tuple[list[str], bool]:
    """The formats that read the dates of all columns, and whether the order of day and month is
    known: all columns together show it, by days above 12.
    """
    pairs = [
        (int(found[1]) > 12, int(found[2]) > 12) for found in map(_ORDER.match, cells) if found
    ]
    shown = Counter(first for first, second in pairs if first != second)
    used: list[str] = []
    left = {cell for cell in cells if not _ISO.match(cell)}
    orders = (DAY_FIRST, MONTH_FIRST) if shown[True] > shown[False] else (MONTH_FIRST, DAY_FIRST)
    for name in chain(_PLAIN_DATES, *orders):
        earliest = _FIRST_SERIAL if name == values.EXCEL_SERIAL else EARLIEST_DOB
        read = date_reader([*filter(None, [parse_format(name)])], _LATEST_PIVOT)
        days = {cell: day for cell in left if (day := read(cell)) != cell and day >= earliest}
        if likely := {cell for cell, day in days.items() if day_exists(day)}:
            used.append(name)
            left -= likely
    return used[:MOST_FORMATS], bool(shown) or {*used} <= {*_PLAIN_DATES}


def _date_rule(cells: Sequence[str], target: str, formats: Sequence[str], year: int) -> Rule:
    """A column without any date is read like the other columns: later rows may have one."""
    is_end = target == "expiry_date"
    rule = Rule()
    no_ends = {word for word in map(str.casefold, cells) if is_end and _NO_DATE.fullmatch(word)}
    dated = [cell for cell in cells if cell.casefold() not in no_ends]
    pivot = pivot_of(target, year)
    if formats and not (dated and all(map(_ISO.match, dated))):
        rule["dates"] = formats
        if any(map(is_short, formats)):
            rule["pivot"] = pivot
    if no_ends:
        rule["values"] = dict.fromkeys(sorted(no_ends))
    read = date_reader([*filter(None, map(parse_format, formats))], pivot)
    days = {read(cell)[:10] for cell in dated} if is_end else set()
    if is_open := [day for day in _OPEN_DATES if day in days]:
        rule["open"] = is_open
    return rule


def pivot_of(target: str, year: int) -> int:
    """The last two-digit year of the field that means 20YY: of a birth date the current one."""
    if target == "expiry_date":
        return _LATEST_PIVOT
    return year % 100 if target == "dob" else (year + 10) % 100


def is_short(name: str) -> bool:
    """Whether dates of the format have years of two digits."""
    return "YYYY" not in name and name != values.EXCEL_SERIAL


def _add_names(draft: MappingDraft, found: ReadField) -> None:
    """Names from a column with all of them, where no column that is as sure has a part."""
    for part in ("first_name", "last_name", "middle_name"):
        if part not in draft.fields or draft.fields[part].confidence < found.confidence * _GUESSED:
            draft.fields[part] = found._replace(rule={"part": part})


def _add_relationship(draft: MappingDraft, found: ReadField) -> None:
    """The words of a relationship as they are, as HIPAA codes, and as subscriber or dependent."""
    own = {*map(field_named, draft.sample.names)}
    words = {*map(str.casefold, draft.sample.column(found.columns[0]))}
    codes = {
        word: names.RELATIONSHIP_OF[word] for word in sorted(words & names.RELATIONSHIP_OF.keys())
    }
    if "s" in codes and (
        words - codes.keys() or words & {"h", "w"} or [*codes.values()].count("18") > 1
    ):
        # S is the subscriber beside D, the spouse beside E; beside H and W, or unknown words, it
        # may be a son.
        del codes["s"]
        codes |= {} if words - {"s", *codes} or "01" in codes.values() else {"s": "01"}
    if "18" not in words:  # 01 may be the employee in a numbering of the sender's own
        codes = {word: code for word, code in codes.items() if not word.isdigit() and word != "g8"}
    primary = {word: "Primary" if code == "18" else "Dependent" for word, code in codes.items()}
    for target, rule in zip(
        _OF_RELATIONSHIP, ({}, {"values": codes}, {"values": primary}), strict=True
    ):
        if target not in own and (codes or not rule):
            draft.fields[target] = found._replace(rule=rule)


def _add_identifiers(draft: MappingDraft, person: list[int], relationship: list[int]) -> None:
    """external_id and member_id are unique. A single number serves as both. A number that people
    share is joined with other columns: `person` is the number in the family.
    """
    number = draft.column_of("member_id")
    if not person and number is not None and "external_id" in draft.fields:
        longest = max(map(len, draft.sample.column(number)), default=0)
        if longest <= _LONGEST_NUMBER and draft.clashes(number):
            # Short member_ids that stand several times count the persons of a family.
            person = draft.fields.pop("member_id").columns
    for target, other in (("external_id", "member_id"), ("member_id", "external_id")):
        if target not in draft.fields and (found := draft.fields.get(other)):
            draft.fields[target] = found._replace(confidence=found.confidence * _GUESSED)
    for target in ("external_id", "member_id"):
        column = draft.column_of(target)
        if column is None or not draft.clashes(column):
            continue
        joined = _joined_with(draft, column, person, relationship)
        # The employee is the person without a number.
        has_blanks = any(len(draft.sample.column(each)) < len(draft.sample.rows) for each in joined)
        rule: Rule = ({"join": "-"} if joined else {}) | ({"blank": "0"} if has_blanks else {})
        sure = draft.fields[target].confidence * (1 if joined and joined == person else _SHARED_KEY)
        draft.fields[target] = ReadField([column, *joined], sure, rule)


def _joined_with(
    draft: MappingDraft, column: int, person: list[int], relationship: list[int]
) -> list[int]:
    """The columns that are joined with a number that people share: the first of the person's number,
    the relationship, the first name, and first name with birth date that tells all apart.

    A few clashes are mistakes of the sender: the number stays alone if no column of the family tells
    these people apart, and the person's number is enough. They would be a bad reason for names,
    since an identifier with a name changes when the name is corrected. Where nothing tells all
    apart, the columns with the fewest clashes are taken.
    """
    few = max(_FEW_CLASHES, len(draft.sample.rows) // _ONE_IN)
    alone = draft.clashes(column)
    of_family = [[each] for each in (*person, *relationship) if each != column]
    clashes = dict[tuple[int, ...], int]({(): alone})
    clashes |= {(each,): draft.clashes(column, each) for [each] in of_family}
    if alone == min(clashes.values()) <= few:
        return []
    for [each] in of_family:
        if clashes[each,] <= (few if each in person else 0):
            return [each]
    by_name = [draft.fields[name].columns for name in ("first_name", "dob") if name in draft.fields]
    for number in range(1, len(by_name) + 1):
        joined = tuple(dict.fromkeys(chain.from_iterable(by_name[:number])))
        clashes[joined] = draft.clashes(column, *joined)
    return [*min(clashes, key=lambda each: clashes[each])]


def _add_family(draft: MappingDraft) -> None:
    """A column of numbers that most rows without a zip code share with a row that has one, and no
    number has two zip codes.
    """
    rows = draft.sample.rows
    zipcode = draft.column_of("zipcode")
    homeless = [row for row in rows if zipcode is not None and not row[zipcode].strip()]
    for column, name in enumerate(draft.sample.names):
        if zipcode is None or not homeless or {"id", "number", "ssn"}.isdisjoint(words_of(name)):
            continue
        homes = {
            (row[column].strip(), row[zipcode].strip()) for row in rows if row[zipcode].strip()
        }
        numbers = {number for number, _ in homes if number}
        found = sum(row[column].strip() in numbers for row in homeless)
        if found >= 0.8 * len(homeless) and sum(number != "" for number, _ in homes) == len(
            numbers
        ):
            draft.fields[FAMILY] = ReadField([column], 0.9, {})
            return
