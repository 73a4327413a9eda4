"""Decides which column of a sample holds which field, by its name and its values, and the rule that reads it: the mapping as it
grows, column by column."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from frontdesk.eligibility.fields import (
    EARLIEST_DOB,
    FIELDS,
    GENDERS,
    HIPAA_RELATIONSHIPS,
    STATE_CODES,
    FieldContext,
    Storage,
    day_exists,
)
from frontdesk.mapping import values
from frontdesk.mapping.suggest import names
from frontdesk.mapping.suggest.names import FULL_NAME, PERSON_NUMBER, RELATIONSHIP, meanings, words_of
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.values import FAMILY, date_reader, field_named, fold_name, parse_format
from frontdesk.text import Rejected, RejectedParts, are_mostly_ssns

# How sure a suggestion is, from 0 to 1: what the name of the column gives, times these.
_GUESSED, _WITHOUT_VALUES, _SHARED_KEY = 0.6, 0.7, 0.5
_OF_EMPLOYMENT = 0.89  # a day of termination that does not say of what, beside the end of a coverage
_LEAST = 0.3  # what is less sure is not suggested
_LONGEST_NUMBER = 3  # of a person in a family
_OF_RELATIONSHIP = ("relationship_code", "relationship_code_hipaa", "subscriber_relationship")
_IDENTIFIERS = {"external_id", "member_id", PERSON_NUMBER}
_ON_SSNS = (
    "Most values look like social security numbers, so the column is not used as an identifier: those are stored and shown as "
    "they are. Ask the sender for a number of its own. If these are no social security numbers, or are to be stored as they are, "
    "say so in the mapping: {}."
)

_OPEN_DATES = ("9999-12-31", "9999-12-30", "2999-12-31", "9999-01-01", "4712-12-31")
_MONTH_FIRST, _DAY_FIRST = (
    [f"{order} YYYY".replace(" ", sign) for sign in ("/", "-", ".", "")]
    + [f"{order} YY".replace(" ", sign) for sign in "/-."]
    for order in ("MM DD", "DD MM")
)
_PLAIN_DATES = [
    "YYYY-MM-DD",
    "YYYY/MM/DD",
    "YYYYMMDD",
    "DD-MON-YYYY",
    "DD MON YYYY",
    "MON DD, YYYY",
    "DD-MON-YY",
    "excel",
]
_ENOUGH = 0.02  # a format that reads fewer of the values is a slip of somebody's pen
_LOOKED_AT = 300  # each format is tried on each of them
_ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(?! )")  # with a space before the time it is none
# What stands for no end in columns of dates.
_NO_DATE = re.compile("0{1,4}(?:[-/.]0{1,4}){0,2}|n/?a|none|null|-+|present|current|active|ongoing")
_SERIAL = re.compile("(?:[1-9][0-9]{4}|295846[0-5])(?:[.]0+)?")
_ORDER = re.compile("([0-9]{1,2})([/.-])([0-9]{1,2})[/.-](?:[0-9]{4}|[0-9]{2})(?![0-9])")

_YES_OR_NO = (names.BOOLEAN_OF, ("true", "false"))
# By field: the value of each word, and the words that are values already.
_WORDS: dict[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "medical_eligibility": _YES_OR_NO,
    "medical_enrollment": _YES_OR_NO,
    "gender": (names.GENDER_OF, GENDERS),
    "state": ({}, [*STATE_CODES]),
    RELATIONSHIP: (names.RELATIONSHIP_OF, [*map(str.casefold, HIPAA_RELATIONSHIPS)]),
}
# Values of the others, where the field's own rule is not what tells them.
_FITS: dict[str, Callable[[str], object]] = {
    "zipcode": re.compile("[0-9]{3,5}(?:-?[0-9]{4})?").fullmatch,
    "phone": lambda value: _accepts("phone", values.CELL_PARTS["phone"](value)),
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
        return {name: round(sure, 2) for name, (columns, sure, _) in self.fields.items() if column in columns}

    def are_told_apart(self, *columns: int) -> bool:
        """Whether the columns together tell all rows apart, but for rows that are the same."""
        rows = {tuple(map(str.strip, row)) for row in self.sample.rows}
        keys = [tuple(row[column] for column in columns) for row in rows if row[columns[0]]]
        return len(set(keys)) == len(keys)


def draft_mapping(sample: Sample, *, year: int) -> MappingDraft:
    """Which columns hold which fields, and the rules that read them. `year` is the present one."""
    draft = MappingDraft(sample)
    best: dict[str, ReadField] = {}
    used: set[int] = set()
    candidates = sorted(_candidates(draft, year), key=lambda each: (-each[1].confidence, each[1].columns))
    for target, found in candidates:
        best.setdefault(target, found)
        if target in FIELDS and target not in draft.fields and used.isdisjoint(found.columns):
            draft.fields[target] = found
            used.update(found.columns)
    _add_date_formats(draft)
    if FULL_NAME in best and "last_name" not in draft.fields:
        _add_names(draft, best[FULL_NAME])
    if RELATIONSHIP in best:
        _add_relationship(draft, best[RELATIONSHIP])
    _add_identifiers(
        draft, *(best[each].columns if each in best else [] for each in (PERSON_NUMBER, RELATIONSHIP))
    )
    _add_family(draft)
    return draft


def _candidates(draft: MappingDraft, year: int) -> Iterator[tuple[str, ReadField]]:
    """What each column may hold, fields and other meanings."""
    sample = draft.sample
    formats, is_sure = _date_formats(map(sample.column, range(len(sample.names))))
    for column, meant in _known_meanings(draft).items():
        cells = sample.column(column) if meant else []
        has_blanks = len(cells) < len(sample.rows)
        for target, score in meant.items():
            if target in ("dob", "effective_date", "expiry_date"):
                share, rule = _fit_dates(cells[:_LOOKED_AT], target, formats, year)
                share *= 1 if is_sure or {*rule.get("dates", ())} <= {*_PLAIN_DATES} else _GUESSED
            elif target in _WORDS:
                share, rule = _fit_words(cells, target, has_blanks=has_blanks)
            else:
                share, rule = _fit(cells, target)
            # A dependent's name that is blank on the employee's row is not the name of the row's person.
            is_other = target == FULL_NAME and has_blanks and "dependent" in words_of(sample.names[column])
            if score * share >= _LEAST and not is_other:
                yield target, ReadField([column], score * share, rule)


def _known_meanings(draft: MappingDraft) -> dict[int, dict[str, float]]:
    """What the columns' names mean, by place. A name that stands twice can't be mapped."""
    folded = Counter(map(fold_name, draft.sample.names))
    known = {at: meanings(name) for at, name in enumerate(draft.sample.names) if folded[fold_name(name)] == 1}
    has_begin = any("effective_date" in meant for meant in known.values())
    for column, meant in known.items():
        if "expiry_date" in meant and names.ends_employment(draft.sample.names[column]):
            meant["expiry_date"] *= _OF_EMPLOYMENT
        for hired in (names.START_DATE, names.HIRE_DATE):
            if (score := meant.pop(hired, None)) is not None and not has_begin:
                meant["effective_date"] = score
        keys = meant.keys() & _IDENTIFIERS
        if keys and are_mostly_ssns(draft.sample.column(column)):
            # An identifier that is left out by mistake is named by a person; a stored number is hard to take back.
            target = "member_id" if "member_id" in keys else "external_id"
            plain = {"columns": {draft.sample.names[column]: target}, "ssn": "plain"}
            draft.notes[column] = _ON_SSNS.format(json.dumps(plain, ensure_ascii=False))
        for unused in [*meant] if names.OFFICIAL in meant else keys if column in draft.notes else ():
            del meant[unused]
    return known


def _fit(cells: Sequence[str], target: str) -> tuple[float, Rule]:
    """The share of the cells that the field takes after a rule, from 0 to 1, and the rule."""
    fits: Callable[[str], object] = _FITS.get(target) or partial(_accepts, target)
    rule: Rule = {}
    if target == "zipcode" and any(re.fullmatch("[0-9]{3,4}(?:-[0-9]{4})?", value) for value in cells):
        rule = {"pad": 5}
    elif target == "phone" and any(values.CELL_PARTS["phone"](value) != value for value in cells):
        rule = {"part": "phone"}
    return _share(sum(bool(fits(value)) for value in cells), cells), rule


def _share(good: int, cells: Sequence[str]) -> float:
    return good / len(cells) if cells else _WITHOUT_VALUES


def _accepts(name: str, value: str) -> bool:
    kind = FIELDS[name].kind
    try:
        kind.read(value if kind.from_text is None else kind.from_text(value), FieldContext("9999-12-31"))
    except (Rejected, RejectedParts):
        return False
    return True


def _fit_words(cells: Sequence[str], target: str, *, has_blanks: bool) -> tuple[float, Rule]:
    """Genders in numbers are read by ISO 5218, which not every sender means."""
    known, own = _WORDS[target]
    is_guess = target == "gender" and bool(cells) and names.GENDER_NUMBERS.keys() >= set(cells)
    known = names.GENDER_NUMBERS if is_guess else known
    words = Counter(map(str.casefold, cells))
    rule = {word: known[word] for word in sorted(words) if word in known and word not in own}
    good = sum(count for word, count in words.items() if word in known or word in own)
    if target == "gender" and has_blanks:
        rule[""] = "unknown"
    return _share(good, cells) * (_GUESSED if is_guess else 1), {"values": rule} if rule else {}


def _date_formats(columns: Iterable[Sequence[str]]) -> tuple[list[str], bool]:
    """The formats, by the order of day and month that all columns together show, and whether that is sure. Without a day above
    12, points between them decide."""
    month_first = day_first = points = 0
    for found in filter(None, (_ORDER.match(cell) for cells in columns for cell in cells[:200])):
        month_first += int(found[3]) > 12 >= int(found[1])
        day_first += int(found[1]) > 12 >= int(found[3])
        points += found[2] == "."
    is_shown = month_first or day_first
    is_day_first = day_first > month_first if is_shown else points > 0
    orders = _DAY_FIRST + _MONTH_FIRST if is_day_first else _MONTH_FIRST + _DAY_FIRST
    return [*_PLAIN_DATES, *orders], bool(is_shown or points)


def _fit_dates(cells: Sequence[str], target: str, formats: Sequence[str], year: int) -> tuple[float, Rule]:
    is_end, latest = target == "expiry_date", f"{year if target == 'dob' else 9999}-12-31"
    pivot = year % 100 if target == "dob" else 99 if is_end else (year + 10) % 100
    no_ends = {word for word in map(str.casefold, cells) if is_end and _NO_DATE.fullmatch(word)}
    dated = [cell for cell in cells if cell.casefold() not in no_ends]
    days = {cell[:10] for cell in dated if _ISO.match(cell)}
    left = Counter(cell for cell in dated if not _ISO.match(cell))
    days_by = {name: _likely_days(left, name, pivot, latest) for name in formats}
    used: list[str] = []
    for name in sorted(formats, key=lambda each: -sum(left[cell] for cell in days_by[each])):
        read = days_by[name].keys() & left.keys()
        if sum(left[cell] for cell in read) > _ENOUGH * len(cells):
            used.append(name)
            days |= {days_by[name][cell] for cell in read}
            left -= Counter({cell: left[cell] for cell in read})
    rule: Rule = {"dates": used} if used else {}
    if no_ends:
        rule["values"] = dict.fromkeys(sorted(no_ends))
    if any("YYYY" not in name and name != values.EXCEL_SERIAL for name in used):
        rule["pivot"] = pivot
    if is_end and (is_open := [day for day in _OPEN_DATES if day in days]):
        rule["open"] = is_open
    return _share(len(cells) - left.total(), cells), rule


def _likely_days(cells: Iterable[str], name: str, pivot: int, latest: str) -> dict[str, str]:
    """The cells that the format reads as a likely date, with that date."""
    cells = [*filter(_SERIAL.fullmatch, cells)] if name == values.EXCEL_SERIAL else cells
    read = date_reader([*filter(None, [parse_format(name)])], pivot)
    days = {value: read(value) for value in cells}
    return {
        value: day
        for value, day in days.items()
        if day != value and EARLIEST_DOB <= day <= latest and day_exists(day)
    }


def _add_date_formats(draft: MappingDraft) -> None:
    """A column of dates without any date is read as the others are: later rows may have one."""
    rules = {name: draft.fields[name] for name in draft.fields if FIELDS[name].kind.storage is Storage.DATE}
    formats = dict.fromkeys(each for found in rules.values() for each in found.rule.get("dates", ()))
    pivots = [found.rule["pivot"] for found in rules.values() if "pivot" in found.rule]
    for [column], _, rule in rules.values():
        if formats and {*map(str.casefold, draft.sample.column(column))} <= rule.get("values", {}).keys():
            rule.update({"dates": [*formats]} | ({"pivot": max(pivots)} if pivots else {}))


def _add_names(draft: MappingDraft, found: ReadField) -> None:
    """First and last names from a column with both. Beside a first name, a column `Name` is the last name."""
    if "first_name" in draft.fields and draft.fields["first_name"].confidence >= _GUESSED:
        draft.fields["last_name"] = found._replace(confidence=0.8)
        return
    has_middle = any(len(value.split()) > 2 for value in draft.sample.column(found.columns[0]))
    middle = ["middle_name"] if has_middle and "middle_name" not in draft.fields else []
    for part in ("first_name", "last_name", *middle):
        draft.fields[part] = found._replace(rule={"part": part})


def _add_relationship(draft: MappingDraft, found: ReadField) -> None:
    """The words of a relationship as they are, as HIPAA codes, and as subscriber or dependent."""
    own = [field_named(name) for name in draft.sample.names]
    words = {*map(str.casefold, draft.sample.column(found.columns[0]))}
    codes = dict(found.rule.get("values", {}))
    if "s" in codes and (words - codes.keys() or words & {"h", "w"} or [*codes.values()].count("18") > 1):
        # S is the subscriber beside D, the spouse beside E; beside H and W, or unknown words, it may be a son.
        del codes["s"]
        codes |= {} if words - {"s", *codes} or "01" in codes.values() else {"s": "01"}
    if "18" in words:  # without it, 01 may be the employee in a numbering of the sender's own
        codes |= {word: word.upper() for word in sorted(words) if word.upper() in HIPAA_RELATIONSHIPS}
    primary = {word: "Primary" if code == "18" else "Dependent" for word, code in codes.items()}
    for target, rule in zip(_OF_RELATIONSHIP, ({}, {"values": codes}, {"values": primary}), strict=True):
        if target not in own and (codes or not rule):
            draft.fields[target] = found._replace(rule=rule)


def _add_identifiers(draft: MappingDraft, person: list[int], relationship: list[int]) -> None:
    """external_id and member_id are unique. With one number only, it serves as both. One that a family shares is joined with the
    first column that tells its people apart: `person` (the number in the family), `relationship`, or the first name.

    The first name is the last resort, and only beside one of these columns: a key with a name in it changes when the name is
    corrected. Without them a number that stands twice is a mistake of the sender.
    """
    number = draft.column_of("member_id")
    if not person and number is not None and "external_id" in draft.fields:
        longest = max(map(len, draft.sample.column(number)), default=0)
        if longest <= _LONGEST_NUMBER and not draft.are_told_apart(number):
            # Short member_ids that stand several times count the persons of a family.
            person = draft.fields.pop("member_id").columns
    for target, other in (("external_id", "member_id"), ("member_id", "external_id")):
        if target not in draft.fields and (found := draft.fields.get(other)):
            draft.fields[target] = found._replace(confidence=found.confidence * _GUESSED)
    known = [*person, *relationship]
    known += draft.fields["first_name"].columns if known and "first_name" in draft.fields else []
    for target in ("external_id", "member_id"):
        column = draft.column_of(target)
        if column is None or draft.are_told_apart(column):
            continue
        others = [each for each in known if each != column]
        telling = [each for each in others if draft.are_told_apart(column, each)]
        joined = telling[:1] or [each for each in others if each in person]
        # The employee is the person without a number.
        has_blanks = any(len(draft.sample.column(each)) < len(draft.sample.rows) for each in joined)
        rule: Rule = ({"join": "-"} if joined else {}) | ({"blank": "0"} if has_blanks else {})
        sure = draft.fields[target].confidence * (1 if joined and joined == person else _SHARED_KEY)
        draft.fields[target] = ReadField([column, *joined], sure, rule)


def _add_family(draft: MappingDraft) -> None:
    """A column of numbers by which most rows without a zip code stand beside one with a zip code, and no number has two."""
    rows, zipcode = draft.sample.rows, draft.column_of("zipcode")
    homeless = [row for row in rows if zipcode is not None and not row[zipcode].strip()]
    for column, name in enumerate(draft.sample.names):
        if zipcode is None or not homeless or {"id", "number", "ssn"}.isdisjoint(words_of(name)):
            continue
        homes = {(row[column].strip(), row[zipcode].strip()) for row in rows if row[zipcode].strip()}
        numbers = {number for number, _ in homes if number}
        found = sum(row[column].strip() in numbers for row in homeless)
        if found >= 0.8 * len(homeless) and sum(number != "" for number, _ in homes) == len(numbers):
            draft.fields[FAMILY] = ReadField([column], 0.9, {})
            return
