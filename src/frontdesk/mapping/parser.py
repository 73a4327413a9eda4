"""Parses the mapping of a sender's files: an untrusted JSON object in, a FileMapping out (docs/file-formats.md, docs/834.md)."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from frontdesk.eligibility.fields import FIELDS, METADATA_VALUE_LENGTH, day_exists
from frontdesk.errors import Fault, Invalid, unknown_faults
from frontdesk.formats.model import DELIMITERS, SEARCHED_ROWS
from frontdesk.mapping import values
from frontdesk.mapping.values import FieldRule, RowRule, Value, fold_name, mappable_field
from frontdesk.text import Rejected, RejectedParts, shown_name

# What a person has to decide about a column, and the answer that it says nothing about access.
OPEN, UNRELATED = "open", "unrelated"
PLAIN = "plain"  # social security numbers are to be stored as they are
VERIFY_WORDS, COUNTS_WORDS, FAMILY_WORDS = ("compare", "full"), ("strict", "lenient"), ("own", "subscriber")
MEDICAL_LINES = ("HLT", "HMO", "PPO", "POS", "EPO", "MM", "IND", "PRA")
SECTION_834, EVERY_LINE = "834", "all"
FIRST_NAME, DOB, SSN_WAY, PERSON_CODE = "first_name", "dob", "ssn", "person_code"

LONGEST_SHEET_NAME = 31  # Excel's limit
MOST_RULES, MOST_ROW_RULES, MOST_WORDS = 100, 20, 100
MOST_JOINED = MOST_FORMATS = 10  # columns and formats of dates of a rule
LONGEST_PAD = LONGEST_JOIN = 20
LONGEST_VALUE = METADATA_VALUE_LENGTH  # no field takes a longer one
MOST_ALTERNATIVES, LONGEST_WAY = 100, 100  # each alternative is tried for each member

# The parts of a way are joined; of alternatives the first that is complete is taken.
Way = tuple[str, ...]
Alternatives = tuple[Way, ...]

_ISO_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_REF, _PLUS = r"REF\*[0-9A-Z]{2,3}", r" *\+ *"
# Not REF*1L and REF*38, which are the same for a group and for a whole file.
_OWN_REF = r"REF\*(?:1[0-9A-KM-Z]|3[0-79A-Z]|[024-9A-Z][0-9A-Z]|[0-9A-Z]{3})"
_WAY_PART = f"(?:{_REF}|NM109|{SSN_WAY}|{PERSON_CODE}|relationship|birth_sequence|{FIRST_NAME}|{DOB})"
_PLAN_PART = f"(?:{_REF}|NM109|{PERSON_CODE}|HD03|HD04)"
WAY = re.compile(f"(?:{_WAY_PART}{_PLUS})*(?:{_OWN_REF}|NM109|{SSN_WAY})(?:{_PLUS}{_WAY_PART})*")
REFERENCE, SOURCES = re.compile(_REF), re.compile(f"{_PLAN_PART}(?:{_PLUS}{_PLAN_PART})*")


class MemberWay(NamedTuple):
    """What an identifier is made from: the parts for subscribers, and those for dependents."""

    subscriber: Way
    dependent: Way

    def of(self, *, is_subscriber: bool) -> Way:
        return self.subscriber if is_subscriber else self.dependent


@dataclass(frozen=True, slots=True)
class FileMapping:
    """How a sender's files name things (docs/file-formats.md). `columns` maps a folded column name to a field, or to "" if
    the column is not read, `plans` a plan of the file to a plan's external_id; `fields` are the rules that make values, by field.
    Rows of `skip` are left out, and those of `end` end their members. `header_row` is the number of the row with the names of the
    columns and `sheet` the name of the sheet; None if they are to be found.

    With `ssn` = plain, a social security number is an identifier like others. The rest is for 834s: `identify` and `member_id`
    say what identifiers are made from (a file without `identify` is held), `person_code` is the reference that holds it, `lines`
    are the insurance lines (HD03) of the coverages that count, None if all do; `family_coverage` says whether the coverage of a
    subscriber covers dependents without one, `verify` what BGN08 = 4 means. Wrong `counts` are refused where they are strict.
    """

    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    fields: Mapping[str, FieldRule] = field(default_factory=lambda: MappingProxyType({}))
    skip: tuple[RowRule, ...] = ()
    end: tuple[RowRule, ...] = ()
    delimiter: str | None = None
    header_row: int | None = None
    sheet: str | None = None
    clear: frozenset[str] = frozenset({r"\N"})
    plans: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ssn: str = ""
    identify: MemberWay | None = None
    member_id: MemberWay | None = None
    person_code: str = "REF*17"
    plan: Alternatives = ()
    lines: frozenset[str] | None = frozenset(MEDICAL_LINES)
    family_coverage: str = "own"
    verify: str = "compare"
    counts: str = "strict"


NO_MAPPING = FileMapping()


def parse_mapping(body: Mapping[str, Any]) -> FileMapping:
    """The mapping that the JSON object describes. Raises Invalid with every fault, named by place."""
    parts, wrong = _read_parts(body, _PARTS)
    ruled = {rule.column for rule in (*parts.get("skip", ()), *parts.get("end", ()))}
    for name, answer in parts.pop("questions", {}).items():
        if not fold_name(name) or not (answer == UNRELATED or (answer == OPEN and fold_name(name) in ruled)):
            wrong.append(Rejected("not_allowed", _UNANSWERED, part=f"questions.{shown_name(name)}"))
    if wrong:
        raise Invalid([Fault(each.part, each.code, each.message) for each in wrong])
    return FileMapping(**parts | parts.pop(SECTION_834, {}))


_UNANSWERED = (
    "must be answered: the column may say whose access has ended. End these members, or leave their rows out, by a rule in end "
    f'or skip that names the column, or write "{UNRELATED}" if it says nothing about access'
)
_STRING, _WORDS, _OBJECT = (str,), (str, list), (dict,)


class MappingPart(NamedTuple):
    """A part of a mapping: its JSON types, its rule in words, and what is made of a value, None if it breaks the rule. Making
    several things raises RejectedParts. No message holds the value."""

    types: tuple[type, ...]
    rule: str
    make: Callable[[Any], Any]


# What was made, by name, and the faults of the rest in their places.
_Parts = tuple[dict[str, Any], list[Rejected]]


def _read_each(items: Mapping[str, Any], part_of: Callable[[str], MappingPart]) -> _Parts:
    made, wrong = dict[str, Any](), list[Rejected]()
    for name, value in items.items():
        types, rule, make = part_of(name)
        fits = type(value) in types
        faults: Sequence[Rejected] = [Rejected("not_allowed" if fits else "wrong_type", rule)]
        try:
            item = make(value) if fits else None
        except RejectedParts as error:
            item, faults = None, error.parts
        if item is None:
            places = [".".join(filter(None, (shown_name(name), each.part))) for each in faults]
            wrong += [
                Rejected(each.code, each.message, part=at) for each, at in zip(faults, places, strict=True)
            ]
        else:
            made[name] = item
    return made, wrong


def _read_parts(given: Mapping[str, Any], parts: Mapping[str, MappingPart]) -> _Parts:
    """Each part of an object; what is no part is a fault."""
    unknown = unknown_faults(name for name in given if name not in parts)
    made, wrong = _read_each({name: given[name] for name in parts if name in given}, parts.__getitem__)
    return made, [*(Rejected(code, rule, part=name) for name, code, rule in unknown), *wrong]


def _all(parts: _Parts) -> dict[str, Any]:
    made, wrong = parts
    if wrong:
        raise RejectedParts(wrong)
    return made


def _choice(*words: str, rule: str = "") -> MappingPart:
    rule = rule or f"must be {' or '.join(words)}, or be left out"
    return MappingPart(_STRING, rule, lambda word: word if word in words else None)


def _number(least: int, most: int) -> MappingPart:
    rule, numbers = f"must be a whole number from {least} to {most}", range(least, most + 1)
    return MappingPart((int, float), rule, lambda number: int(number) if number in numbers else None)


def _some_words(make: Callable[[Iterable[str]], Any], *, blank: bool = False) -> MappingPart:
    kind = "string" if blank else "string that is not blank"
    rule = f"must be a {kind}, or an array of up to {MOST_WORDS} of them"
    return MappingPart(_WORDS, rule, lambda value: make(_words(value, blank=blank)) or None)


def _words(value: str | list[Any], *, most: int = MOST_WORDS, blank: bool = False) -> list[str]:
    """The words, trimmed; none if one of them is no word."""
    words = [value] if isinstance(value, str) else value
    are_words = len(words) <= most and all(type(word) is str and (blank or word.strip()) for word in words)
    return [word.strip() for word in words] if are_words else []


def _joined_columns(value: Any) -> tuple[str, ...] | None:
    folded = tuple(map(fold_name, _words(value, most=MOST_JOINED)))
    return folded if folded and all(folded) and len(set(folded)) == len(folded) else None


def _cell_values(given: dict[str, Any]) -> dict[str, Value] | None:
    cells: dict[str, Value] = {}
    for word, item in given.items():
        cell = _cell(item)
        if (cell is None) != (item is None) or cells.setdefault(word.strip().casefold(), cell) != cell:
            return None
    return cells


def _cell(value: Any) -> Value:
    """A value as the text of a cell; None for what is none."""
    text = str(value).lower() if type(value) is bool else value
    return text if type(text) is str and len(text) <= LONGEST_VALUE else None


def _dates(value: Any) -> tuple[Any, ...] | None:
    formats = tuple(map(values.parse_format, _words(value, most=MOST_FORMATS)))
    return formats if formats and None not in formats else None


def _open_dates(value: Any) -> frozenset[str] | None:
    days = frozenset(_words(value))
    return days if days and all(_ISO_DATE.fullmatch(day) and day_exists(day) for day in days) else None


_COLUMNS_RULE = f"must be the name of a column, or an array of up to {MOST_JOINED} of them, each once"
_VALUES_RULE = (
    f"must be an object of booleans, nulls, and strings of at most {LONGEST_VALUE} characters, with one value for a word in any "
    "letter case"
)
_DATES_RULE = (
    f"must be {values.EXCEL_SERIAL}, or YYYY or YY, MM or MON, and DD with - / . , or spaces between, or an array of up to "
    f"{MOST_FORMATS} of these"
)
_CONSTANT_RULE = f"must be a boolean, or a string that is not blank of at most {LONGEST_VALUE} characters"
_JOINT = MappingPart(
    _STRING,
    f"must be a string of at most {LONGEST_JOIN} characters",
    lambda text: text if len(text) <= LONGEST_JOIN else None,
)
RULE_PARTS = {
    "column": MappingPart(_WORDS, _COLUMNS_RULE, _joined_columns),
    "join": _JOINT,
    "blank": _JOINT,
    "part": _choice(*values.CELL_PARTS, rule=f"must be one of {', '.join(values.CELL_PARTS)}"),
    "values": MappingPart(_OBJECT, _VALUES_RULE, _cell_values),
    "dates": MappingPart(_WORDS, _DATES_RULE, _dates),
    "pivot": _number(0, 99),
    "open": MappingPart(_WORDS, f"must be up to {MOST_WORDS} dates, YYYY-MM-DD", _open_dates),
    "pad": _number(1, LONGEST_PAD),
    "constant": MappingPart(
        (str, bool), _CONSTANT_RULE, lambda item: (str(item).strip() and _cell(item)) or None
    ),
}
ROW_RULE_PARTS = {
    "column": MappingPart(
        _STRING,
        f"must be the name of a column, of at most {LONGEST_VALUE} characters",
        lambda name: (len(name) <= LONGEST_VALUE and fold_name(name)) or None,
    ),
    "equals": _some_words(lambda words: frozenset(map(str.casefold, words)), blank=True),
    "starts_with": _some_words(lambda words: tuple(map(str.casefold, words))),
}


def _field_rules(given: dict[str, Any]) -> dict[str, FieldRule] | None:
    """The rules of `fields`, by field."""
    if len(given) > MOST_RULES:
        return None
    rules: dict[str, FieldRule] = {}
    rule = "must be an object, under the name of a field of a member, plan or family that is given once"
    _all(_read_each(given, lambda name: MappingPart(_OBJECT, rule, partial(_add_field_rule, rules, name))))
    return rules


def _add_field_rule(rules: dict[str, FieldRule], name: str, given: dict[str, Any]) -> FieldRule | None:
    target = name if name in (values.PLAN, values.FAMILY) else mappable_field(name)
    if target is None or target in rules:
        return None
    parts, wrong = _read_parts(given, RULE_PARTS)
    if "constant" in given and len(given) > 1:
        wrong.append(Rejected("not_allowed", "must stand alone: every row gets it", part="constant"))
    if "constant" in given and target in FIELDS and FIELDS[target].unique:
        rule = "must not be an identifier: each member has its own"
        wrong.append(Rejected("not_allowed", rule, part="constant"))
    if "pivot" not in given and any("short" in each.groupindex for each in parts.get("dates", ())):
        wrong.append(Rejected("required", "must say the last two-digit year that means 20YY", part="pivot"))
    parts = _all((parts, wrong))
    rule_of = FieldRule(columns=parts.pop("column", ()), open_dates=parts.pop("open", frozenset()), **parts)
    return rules.setdefault(target, rule_of)


def _row_rules(given: list[Any]) -> tuple[RowRule, ...] | None:
    """The rules in `end` or `skip`: `{"column": name, "equals": words, "starts_with": words}`."""
    if len(given) > MOST_ROW_RULES:
        return None
    part = MappingPart(_OBJECT, "must be an object", _row_rule)
    return tuple(_all(_read_each({str(at): rule for at, rule in enumerate(given)}, lambda _: part)).values())


def _row_rule(given: dict[str, Any]) -> RowRule:
    parts, wrong = _read_parts(given, ROW_RULE_PARTS)
    if "column" not in given or not given.keys() & {"equals", "starts_with"}:
        wrong.append(Rejected("required", "must have column, and equals or starts_with"))
    return RowRule(**_all((parts, wrong)))


def _columns(given: dict[str, Any]) -> dict[str, str]:
    columns: dict[str, str] = {}

    def target_of(name: str, target: str | None) -> str | None:
        known, folded = "" if target is None else mappable_field(target), fold_name(name)
        return known if folded and known is not None and columns.setdefault(folded, known) == known else None

    rule = "must be a field of a member, or null if the column is not to be read, under the name of a column that is given once"
    _all(_read_each(given, lambda name: MappingPart((str, type(None)), rule, partial(target_of, name))))
    return columns


def _plans(given: dict[str, Any]) -> dict[str, str] | None:
    fits = all(type(plan) is str and plan.strip() for plan in given.values())
    return {name.strip(): plan.strip() for name, plan in given.items()} if fits else None


def _way(text: str) -> Way | None:
    return _split(text) if len(text) <= LONGEST_WAY and WAY.fullmatch(text.strip()) else None


def _split(way: str) -> Way:
    return tuple(part.strip() for part in way.split("+"))


def _member_way(value: Any) -> MemberWay | None:
    if isinstance(value, str):
        way = _way(value)
        return MemberWay(way, way) if way else None
    is_pair = value.keys() == set(MemberWay._fields)
    return MemberWay(**_all(_read_parts(value, dict.fromkeys(MemberWay._fields, _WAY)))) if is_pair else None


def _plan_ways(value: Any) -> Alternatives | None:
    ways = _words(value, most=MOST_ALTERNATIVES)
    fits = ways and all(len(way) <= LONGEST_WAY and SOURCES.fullmatch(way) for way in ways)
    return tuple(map(_split, ways)) if fits else None


def _lines(value: Any) -> frozenset[str] | None:
    """The codes, none of them for all."""
    codes = _words(value, most=len(value)) if isinstance(value, list) else []
    return frozenset(map(str.upper, codes)) if codes or value == EVERY_LINE else None


_WAY_RULE = (
    "must name REF*.., NM109, ssn, person_code, relationship, birth_sequence, first_name or dob, joined by +, in at most "
    f"{LONGEST_WAY} characters, with a number of the member or of its family: a REF that is neither REF*1L nor REF*38, NM109 or "
    "ssn"
)
_WAY = MappingPart(_STRING, _WAY_RULE, _way)
_MEMBER_WAY = MappingPart(
    (str, dict), f"{_WAY_RULE}; or be an object with the ways of subscriber and dependent", _member_way
)
_PLAN_RULE = (
    f"must name REF*.., NM109, HD03, HD04 or person_code, joined by +, in at most {LONGEST_WAY} characters, or be an array of up "
    f"to {MOST_ALTERNATIVES} of these"
)
_PARTS_834 = {
    "identify": _MEMBER_WAY,
    "member_id": _MEMBER_WAY,
    "person_code": MappingPart(
        _STRING,
        "must be a reference such as REF*17",
        lambda value: value.strip() if REFERENCE.fullmatch(value.strip()) else None,
    ),
    "plan": MappingPart(_WORDS, _PLAN_RULE, _plan_ways),
    "coverages": MappingPart(_WORDS, 'must be "all" or an array of insurance line codes', _lines),
    "family_coverage": _choice(*FAMILY_WORDS),
    "verify": _choice(*VERIFY_WORDS),
    "counts": _choice(*COUNTS_WORDS),
}


def _of_834(given: dict[str, Any]) -> dict[str, Any]:
    """What the account says of its 834s, by the names in FileMapping."""
    parts = _all(_read_parts(given, _PARTS_834))
    if "coverages" in parts:
        parts["lines"] = parts.pop("coverages") or None
    return parts


_ROW_RULES = MappingPart((list,), f"must be an array of at most {MOST_ROW_RULES} rules", _row_rules)
_PARTS = {
    "columns": MappingPart(_OBJECT, "must be an object", _columns),
    "fields": MappingPart(_OBJECT, f"must be an object of at most {MOST_RULES} rules", _field_rules),
    "skip": _ROW_RULES,
    "end": _ROW_RULES,
    "ssn": _choice(PLAIN),
    "questions": MappingPart(_OBJECT, "must be an object", dict),
    "delimiter": _choice(*DELIMITERS, rule="must be a comma, tab, pipe or semicolon"),
    "header_row": _number(1, SEARCHED_ROWS),
    "sheet": MappingPart(
        _STRING,
        f"must be the name of a sheet, up to {LONGEST_SHEET_NAME} characters",
        lambda name: name if 0 < len(name) <= LONGEST_SHEET_NAME else None,
    ),
    "clear": _some_words(frozenset),
    "plans": MappingPart(_OBJECT, "must be an object of strings that are not blank", _plans),
    SECTION_834: MappingPart(_OBJECT, "must be an object", _of_834),
}

# Examples for the values that may be one for all.
_CONSTANTS = {"gender": "unknown", "effective_date": "2026-01-01", "zipcode": "02134"}


def remedy_for(field_name: str, *, is_table: bool = True) -> str:
    """What to put into a mapping when rows lack a required field."""
    constant = json.dumps(
        {"fields": {field_name: {"constant": _CONSTANTS.get(field_name, "…")}}}, ensure_ascii=False
    )
    if not is_table and field_name not in _CONSTANTS:
        return "ask the sender for it"
    if not is_table:
        return f"say in the mapping what new members get that lack it: {constant}"
    remedy = f'if a column holds it, name it in the mapping: {{"columns": {{"its name": "{field_name}"}}}}'
    if field_name in _CONSTANTS:
        remedy += f", or say one for all rows: {constant}"
    if field_name == "zipcode":
        rule = json.dumps({"fields": {values.FAMILY: {"column": "Employee ID"}}})
        remedy += f", or give dependents the address of the employee with the same number: {rule}"
    return remedy
