"""Decides which column of a sample holds which field, by its name and its values, and the rule that reads it: the mapping as it
grows, column by column."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from frontdesk.eligibility.code_sets import GENDERS, HIPAA_RELATIONSHIPS, STATE_CODES
from frontdesk.eligibility.fields import EARLIEST_DOB, FIELDS, FieldContext, Storage
from frontdesk.eligibility.hints import day_exists
from frontdesk.mapping.suggest.names import (
    BOOLEAN_OF,
    FULL_NAME,
    GENDER_NUMBERS,
    GENDER_OF,
    HIRE_DATE,
    OFFICIAL,
    PERSON_NUMBER,
    RELATIONSHIP,
    RELATIONSHIP_OF,
    START_DATE,
    meanings,
    words_of,
)
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.values import (
    CELL_PARTS,
    COLUMN_NAME,
    EXCEL_SERIAL,
    FAMILY,
    NAME_SUFFIXES,
    date_reader,
    field_named,
    fold_name,
    parse_format,
)
from frontdesk.text import Rejected, RejectedParts, are_mostly_ssns

GUESSED = 0.6
_LEAST = 0.3  # what is less sure is not suggested
_SHARED_KEY = 0.5
_NO_VALUES = 0.7
_MOST_OF_A_MEANING = 6
_LONGEST_NUMBER = 3
_NO_NUMBER = "0"  # the person whose number in the family is blank: the employee
_SELF = "18"
_OF_RELATIONSHIP = ("relationship_code", "relationship_code_hipaa", "subscriber_relationship")
_IDENTIFIERS = ("external_id", "member_id", PERSON_NUMBER)
_OF_NUMBERS = {"id", "number", "ssn"}
_OF_A_FAMILY, _OF_FAMILY = 0.8, 0.9  # the share of rows that find an address; the confidence
_ON_SSNS = (
    "Most values look like social security numbers, so the column is not used as an identifier: those are stored and shown as "
    "they are. Ask the sender for a number of its own. If these are no social security numbers, or are to be stored as they are, "
    "say so in the mapping: {}."
)

_OPEN_DATES = ("9999-12-31", "9999-12-30", "2999-12-31", "9999-01-01", "4712-12-31")
_MONTH_FIRST = ("MM/DD/YYYY", "MM-DD-YYYY", "MM.DD.YYYY", "MMDDYYYY", "MM/DD/YY", "MM-DD-YY")
_DAY_FIRST = ("DD.MM.YYYY", "DD/MM/YYYY", "DD-MM-YYYY", "DDMMYYYY", "DD.MM.YY", "DD/MM/YY", "DD-MM-YY")
_PLAIN_DATES = (
    *("YYYY-MM-DD", "YYYY/MM/DD", "YYYYMMDD", "DD-MON-YYYY", "DD MON YYYY", "MON DD, YYYY", "DD-MON-YY"),
    EXCEL_SERIAL,
)
_ENOUGH = 0.02  # a format that reads fewer of the values is a slip of somebody's pen
_LOOKED_AT = 300  # each format is tried on each of them
_ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(?! )")  # with a space before the time it is none
# What stands for no end in columns of dates.
_NO_DATE = re.compile("0{1,4}(?:[-/.]0{1,4}){0,2}|n/?a|none|null|-+|present|current|active|ongoing")
_SERIAL = re.compile("(?:[1-9][0-9]{4}|295846[0-5])(?:[.]0+)?")
_ORDER = re.compile("([0-9]{1,2})([/.-])([0-9]{1,2})[/.-](?:[0-9]{4}|[0-9]{2})(?![0-9])")

_YES_OR_NO = (BOOLEAN_OF, ("true", "false"))
# By field: the value of each word, and the words that are values already.
_WORDS: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    "medical_eligibility": _YES_OR_NO,
    "medical_enrollment": _YES_OR_NO,
    "gender": (GENDER_OF, GENDERS),
    "state": ({}, [*STATE_CODES]),
    RELATIONSHIP: (RELATIONSHIP_OF, [*map(str.casefold, HIPAA_RELATIONSHIPS)]),
}


class Candidate(NamedTuple):
    """What a column may hold, a field or another meaning, how sure that is, and the rule that would read it."""

    confidence: float
    target: str
    position: int
    rule: dict[str, Any]


@dataclass(slots=True)
class MappingDraft:
    """The mapping as it grows. `uses` has the fields of each column with their confidence, `notes` why a column is not used."""

    sample: Sample
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    uses: dict[int, dict[str, float]] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

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


def draft_mapping(sample: Sample, *, year: int) -> MappingDraft:
    """Which columns hold which fields, and the rules that read them. `year` is the present one."""
    draft = MappingDraft(sample)
    best: dict[str, Candidate] = {}
    for found in sorted(_candidates(draft, year), key=lambda each: (-each.confidence, each.position)):
        best.setdefault(found.target, found)
        if found.target in FIELDS and found.target not in draft.rules and found.position not in draft.uses:
            draft.use(found.target, [found.position], found.confidence, found.rule)
    _add_date_formats(draft)
    if FULL_NAME in best and "last_name" not in draft.rules:
        _add_names(draft, best[FULL_NAME])
    if RELATIONSHIP in best:
        _add_relationship(draft, best[RELATIONSHIP])
    person, relationship = (
        best[each].position if each in best else None for each in (PERSON_NUMBER, RELATIONSHIP)
    )
    _add_identifiers(draft, _person_number(draft) if person is None else person, relationship)
    _add_family(draft)
    return draft


def _candidates(draft: MappingDraft, year: int) -> Iterator[Candidate]:
    sample, known = draft.sample, _known_meanings(draft)
    values = {position: sample.column(position) for position, meant in known.items() if meant}
    habit = _date_habit(list(values.values()), year=year)
    for position, cells in values.items():
        has_blanks = len(cells) < len(sample.rows)
        if OFFICIAL in known[position]:
            continue
        for target, score in known[position].items():
            # A dependent's name that is blank on the employee's row is not the name of the row's person.
            if target == FULL_NAME and has_blanks and "dependent" in words_of(sample.names[position]):
                continue
            share, rule, is_sure = _fit_of(target, cells, habit, has_blanks=has_blanks)
            confidence = score * share * (1.0 if is_sure else GUESSED) * (1.0 if cells else _NO_VALUES)
            if confidence >= _LEAST:
                yield Candidate(confidence, target, position, rule)


def _known_meanings(draft: MappingDraft) -> dict[int, dict[str, float]]:
    """What the columns' names mean, by position. A name that stands twice can't be mapped."""
    names = draft.sample.names
    folded = Counter(map(fold_name, names))
    known = {
        position: meanings(name)
        for position, name in enumerate(names)
        if folded[fold_name(name)] == 1 and COLUMN_NAME.search(name)
    }
    has_begin = any("effective_date" in meanings(name) for name in names)
    counted: Counter[str] = Counter()
    for position, meant in known.items():
        for hired in (START_DATE, HIRE_DATE):
            if (score := meant.pop(hired, None)) is not None and not has_begin:
                meant["effective_date"] = score
        keys = {target: meant[target] for target in _IDENTIFIERS if target in meant}
        if keys and are_mostly_ssns(draft.sample.column(position)):
            # An identifier that is left out by mistake is named by a person; a stored number is hard to take back.
            target = "external_id" if max(keys, key=keys.__getitem__) == "external_id" else "member_id"
            rule = json.dumps({"columns": {names[position]: target}, "ssn": "plain"}, ensure_ascii=False)
            draft.notes[position] = _ON_SSNS.format(rule)
            for key in keys:
                del meant[key]
        # A hostile file has many columns of one meaning, and dates take long to look at.
        counted.update(meant)
        for target in [target for target in meant if counted[target] > _MOST_OF_A_MEANING]:
            del meant[target]
    return known


def _add_date_formats(draft: MappingDraft) -> None:
    """A column of dates without any date is read as the others are: later rows may have one."""
    dates = [target for target in draft.rules if FIELDS[target].kind.storage is Storage.DATE]
    known = [draft.rules[target] for target in dates if "dates" in draft.rules[target]]
    formats = list(dict.fromkeys(name for rule in known for name in rule["dates"]))
    pivots = [rule["pivot"] for rule in known if "pivot" in rule]
    for target in dates:
        position, rule = draft.column_of(target), draft.rules[target]
        cells = set() if position is None else {cell.casefold() for cell in draft.sample.column(position)}
        if formats and cells <= rule.get("values", {}).keys():
            draft.rules[target] |= {"dates": formats} | ({"pivot": max(pivots)} if pivots else {})


def _add_names(draft: MappingDraft, found: Candidate) -> None:
    """First and last names from a column with both. Beside a first name, a column `Name` is the last name."""
    known = draft.column_of("first_name")
    if known is not None and draft.uses[known]["first_name"] >= GUESSED:
        draft.use("last_name", [found.position], GUESSED + 0.2)
        return
    if known is not None:
        del draft.uses[known]["first_name"]
    has_middle = any(len(value.split()) > 2 for value in draft.sample.column(found.position))
    middle = ["middle_name"] if has_middle and "middle_name" not in draft.rules else []
    for part in ("first_name", "last_name", *middle):
        draft.use(part, [found.position], found.confidence, {"part": part})


def _add_relationship(draft: MappingDraft, found: Candidate) -> None:
    """The words of a relationship as they are, as HIPAA codes, and as subscriber or dependent."""
    own = [field_named(name) for name in draft.sample.names]
    words = {word.casefold() for word in draft.sample.column(found.position)}
    codes = found.rule.get("values", {}) | {
        word: word.upper() for word in sorted(words) if word.upper() in HIPAA_RELATIONSHIPS
    }
    primary = {word: "Primary" if code == _SELF else "Dependent" for word, code in codes.items()}
    for target, rule in zip(_OF_RELATIONSHIP, ({}, {"values": codes}, {"values": primary}), strict=True):
        if target not in own and (codes or target == "relationship_code"):
            draft.use(target, [found.position], found.confidence, rule)


def _add_identifiers(draft: MappingDraft, person: int | None, relationship: int | None) -> None:
    """external_id and member_id are unique. With one number only, it serves as both. `person` and `relationship` are the columns
    with a person's number in the family and its relationship, if there are any.

    The first name is the last resort, and only beside one of these columns: a key with a name in it changes when the name is
    corrected. Without them a number that stands twice is a mistake of the sender.
    """
    is_of_families = (person, relationship) != (None, None)
    first_name = draft.column_of("first_name") if is_of_families else None
    for target, other in (("external_id", "member_id"), ("member_id", "external_id")):
        if target not in draft.rules and (position := draft.column_of(other)) is not None:
            draft.use(target, [position], draft.uses[position][other] * GUESSED)
    for target in ("external_id", "member_id"):
        position = draft.column_of(target)
        if position is not None and not _tells(draft, [position]):
            _join(draft, target, position, [person, relationship, first_name])


def _person_number(draft: MappingDraft) -> int | None:
    """A column of short member_ids that stand several times: they count the persons of a family."""
    position = draft.column_of("member_id")
    if position is None or draft.column_of("external_id") in (None, position) or _tells(draft, [position]):
        return None
    if max(map(len, draft.sample.column(position)), default=0) > _LONGEST_NUMBER:
        return None
    del draft.rules["member_id"], draft.uses[position]["member_id"]
    return position


def _join(draft: MappingDraft, target: str, position: int, candidates: list[int | None]) -> None:
    """Join the number with the first column that tells its rows apart."""
    confidence = draft.uses[position][target]
    person, *_ = known = [None if candidate == position else candidate for candidate in candidates]
    telling = next((each for each in known if each is not None and _tells(draft, [position, each])), person)
    if telling is None or telling != person:
        confidence = round(confidence * _SHARED_KEY, 2)
    if telling is None:
        draft.uses[position][target] = confidence
        return
    has_blanks = len(draft.sample.column(telling)) < len(draft.sample.rows)
    rule = {"join": "-"} | ({"blank": _NO_NUMBER} if has_blanks else {})
    draft.use(target, [position, telling], confidence, rule)


def _tells(draft: MappingDraft, positions: list[int]) -> bool:
    """Whether the columns together tell all rows apart, but for rows that are the same."""
    rows = {tuple(map(str.strip, row)) for row in draft.sample.rows}
    keys = [tuple(row[position] for position in positions) for row in rows if row[positions[0]]]
    return len(set(keys)) == len(keys)


def _add_family(draft: MappingDraft) -> None:
    """A column of numbers by which most rows without a zip code stand beside one with a zip code, and no number has two."""
    sample, at = draft.sample, draft.column_of("zipcode")
    homeless = [row for row in sample.rows if at is not None and not row[at].strip()]
    if at is None or not homeless:
        return
    for position, name in enumerate(sample.names):
        if _OF_NUMBERS.isdisjoint(words_of(name)):
            continue
        homes: dict[str, set[str]] = {}
        for row in sample.rows:
            if (number := row[position].strip()) and row[at].strip():
                homes.setdefault(number, set()).add(row[at].strip())
        found = sum(row[position].strip() in homes for row in homeless)
        if found >= _OF_A_FAMILY * len(homeless) and all(len(zips) == 1 for zips in homes.values()):
            draft.use(FAMILY, [position], _OF_FAMILY)
            return


class DateHabit(NamedTuple):
    """What the whole file tells of its dates: whether the day goes before the month, as far as can be told, and the year now."""

    day_first: bool
    year: int
    is_sure: bool = True


class Fit(NamedTuple):
    """The share of the values that the field takes after `rule`, 0 to 1. `is_sure` is False where the rule is a guess."""

    share: float
    rule: dict[str, Any]
    is_sure: bool = True


def _fit_of(field: str, values: Sequence[str], habit: DateHabit, *, has_blanks: bool) -> Fit:
    """How well the values of a column, without the blank ones, fit the field."""
    rule: dict[str, Any] = {}
    good: Iterable[object] = [True] * len(values)
    if field in ("dob", "effective_date", "expiry_date"):
        return _fit_dates(values, field, habit)
    if field in _WORDS:
        return _fit_words(values, field, has_blanks=has_blanks)
    if field == "zipcode":
        good = [re.fullmatch("[0-9]{3,5}(?:-?[0-9]{4})?", value) for value in values]
        rule = {"pad": 5} if any(re.fullmatch("[0-9]{3,4}(?:-[0-9]{4})?", value) for value in values) else {}
    elif field == "phone":
        cut = [CELL_PARTS["phone"](value) for value in values]
        good = [_accepts(field, value) for value in cut]
        rule = {"part": "phone"} if cut != values else {}
    elif field == FULL_NAME:
        good = [len(value.split()) > 1 for value in values]
    elif field == PERSON_NUMBER:  # `Suffix` may also be that of a name
        good = [value.casefold().rstrip(".") not in NAME_SUFFIXES for value in values]
    elif field in FIELDS:
        good = [_accepts(field, value) for value in values]
    return Fit(_share(sum(map(bool, good)), values), rule)


def _share(good: int, values: Sequence[str]) -> float:
    return good / len(values) if values else 1.0


def _accepts(field: str, value: str) -> bool:
    kind = FIELDS[field].kind
    try:
        kind.read(value if kind.from_text is None else kind.from_text(value), FieldContext("9999-12-31"))
    except (Rejected, RejectedParts):
        return False
    return True


def _fit_words(values: Sequence[str], field: str, *, has_blanks: bool) -> Fit:
    """Genders in numbers are read by ISO 5218, which not every sender means."""
    known, own = _WORDS[field]
    is_guess = field == "gender" and bool(values) and GENDER_NUMBERS.keys() >= set(values)
    if is_guess:
        known = GENDER_NUMBERS
    words = Counter(value.casefold() for value in values)
    rule = {word: known[word] for word in sorted(words) if word in known and word not in own}
    good = sum(count for word, count in words.items() if word in known or word in own)
    if field == "gender" and has_blanks:
        rule[""] = "unknown"
    return Fit(_share(good, values), {"values": rule} if rule else {}, not is_guess)


def _date_habit(columns: Sequence[Sequence[str]], *, year: int) -> DateHabit:
    """The order of day and month in all columns together. Without a day above 12, points between them decide."""
    month_first = day_first = points = 0
    for found in (_ORDER.match(value) for values in columns for value in values[:200]):
        if found:
            month_first += int(found[3]) > 12 >= int(found[1])
            day_first += int(found[1]) > 12 >= int(found[3])
            points += found[2] == "."
    if month_first or day_first:
        return DateHabit(day_first > month_first, year)
    return DateHabit(points > 0, year, is_sure=points > 0)


def _fit_dates(values: Sequence[str], field: str, habit: DateHabit) -> Fit:
    values, is_end = values[:_LOOKED_AT], field == "expiry_date"
    pivot = habit.year % 100 if field == "dob" else 99 if is_end else (habit.year + 10) % 100
    latest = f"{habit.year}-12-31" if field == "dob" else "9999-12-31"
    no_ends = {value.casefold() for value in values if is_end and _NO_DATE.fullmatch(value.casefold())}
    dated = [value for value in values if value.casefold() not in no_ends]
    days = {value[:10] for value in dated if _ISO.match(value)}
    left = Counter(value for value in dated if not _ISO.match(value))
    order = (*_DAY_FIRST, *_MONTH_FIRST) if habit.day_first else (*_MONTH_FIRST, *_DAY_FIRST)
    formats: list[str] = []
    while left:
        read_by = {
            name: _likely_days(left, name, pivot, latest)
            for name in (*_PLAIN_DATES, *order)
            if name not in formats
        }
        best = max(read_by, key=lambda name: sum(left[value] for value in read_by[name]))
        if sum(left[value] for value in read_by[best]) <= _ENOUGH * len(values):
            break
        formats.append(best)
        days |= set(read_by[best].values())
        left = Counter({value: count for value, count in left.items() if value not in read_by[best]})
    rule: dict[str, Any] = {"dates": formats} if formats else {}
    if no_ends:
        rule["values"] = dict.fromkeys(sorted(no_ends))
    if any("YYYY" not in name and name != EXCEL_SERIAL for name in formats):
        rule["pivot"] = pivot
    if is_end and (is_open := [day for day in _OPEN_DATES if day in days]):
        rule["open"] = is_open
    is_ambiguous = not {*_MONTH_FIRST, *_DAY_FIRST}.isdisjoint(formats)
    return Fit(_share(len(values) - left.total(), values), rule, habit.is_sure or not is_ambiguous)


def _likely_days(values: Iterable[str], name: str, pivot: int, latest: str) -> dict[str, str]:
    """The values that the format reads as a likely date, with that date."""
    if name == EXCEL_SERIAL:
        values = [*filter(_SERIAL.fullmatch, values)]
    if (known := parse_format(name)) is None:
        return {}
    read = date_reader([known], pivot)
    days = {value: read(value) for value in values}
    return {
        value: day
        for value, day in days.items()
        if day != value and EARLIEST_DOB <= day <= latest and day_exists(day)
    }
