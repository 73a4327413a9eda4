"""Parses the mapping of a sender's files: an untrusted JSON object in, a FileMapping out
(docs/file-formats.md, docs/834.md).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.eligibility.field_kinds import METADATA_VALUE_LENGTH, day_exists
from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault, Invalid, unknown_faults
from frontdesk.formats.model import DELIMITERS, SEARCHED_ROWS
from frontdesk.mapping import values
from frontdesk.mapping.values import FieldRule, RowRule, Value, fold_name, mappable_field
from frontdesk.text import shown_name

# A question about a column, and the answer that the column is not about access.
OPEN = "open"
UNRELATED = "unrelated"
PLAIN = "plain"  # social security numbers are to be stored as they are
VERIFY_WORDS = ("compare", "full")
COUNTS_WORDS = ("strict", "lenient")
APPLIED = "apply"
TESTS_WORDS = ("dry_run", APPLIED)
FAMILY_WORDS = ("own", "subscriber")
MEDICAL_LINES = ("HLT", "HMO", "PPO", "POS", "EPO", "MM", "IND", "PRA")
SECTION_834 = "834"
EVERY_LINE = "all"
FIRST_NAME = "first_name"
DOB = "dob"
SSN_WAY = "ssn"
PERSON_CODE = "person_code"

MOST_FAULTS = 100  # that are told at once; to find those of 1,500 columns took 20 ms
LONGEST_SHEET_NAME = 31  # Excel's limit
MOST_RULES = 100
MOST_ROW_RULES = 20
MOST_WORDS = 100
MOST_JOINED = MOST_FORMATS = 10  # columns and formats of dates of a rule
LONGEST_PAD = LONGEST_JOIN = 20
LONGEST_VALUE = METADATA_VALUE_LENGTH  # no field takes a longer one
# each alternative is tried for each member
MOST_ALTERNATIVES = 100
LONGEST_WAY = 100

# The parts of a way are joined; of alternatives the first that is complete is taken.
Way = tuple[str, ...]

_ISO_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_REF = r"REF\*[0-9A-Z]{2,3}"
_PLUS = r" *\+ *"
# Not REF*1L and REF*38, which are the same for a group and for a whole file.
_OWN_REF = r"REF\*(?:1[0-9A-KM-Z]|3[0-79A-Z]|[024-9A-Z][0-9A-Z]|[0-9A-Z]{3})"
_WAY_PART = (
    f"(?:{_REF}|NM109|{SSN_WAY}|{PERSON_CODE}|relationship|birth_sequence|{FIRST_NAME}|{DOB})"
)
_PLAN_PART = f"(?:{_REF}|NM109|{PERSON_CODE}|HD03|HD04)"
_NOT_OWN = rf"(?:REF\*(?:1L|38)|{PERSON_CODE}|relationship|birth_sequence|{FIRST_NAME}|{DOB})"
# Before the first part that is the member's own stand others only, so a way is read without trying
# each part as the first.
WAY = re.compile(f"(?:{_NOT_OWN}{_PLUS})*(?:{_OWN_REF}|NM109|{SSN_WAY})(?:{_PLUS}{_WAY_PART})*")
REFERENCE = re.compile(_REF)
SOURCES = re.compile(f"{_PLAN_PART}(?:{_PLUS}{_PLAN_PART})*")


class MemberWay(NamedTuple):
    """What an identifier is made from: the parts for subscribers, and those for dependents."""

    subscriber: Way
    dependent: Way

    def of(self, *, is_subscriber: bool) -> Way:
        return self.subscriber if is_subscriber else self.dependent


@dataclass(frozen=True, slots=True)
class FileMapping:
    """How a sender's files name things (docs/file-formats.md). `columns` maps a folded column name
    to a field, or to "" if the column is not read, `plans` a plan of the file to a plan's
    external_id; `fields` are the rules that make values, by field. Rows of `skip` are left out, and
    those of `end` end their members. `header_row` is the number of the row with the names of the
    columns and `sheet` the name of the sheet; None if they are to be found.

    With `ssn` = plain, a social security number is an identifier like others. The rest is for 834s:
    `identify` and `member_id` say what identifiers are made from (a file without `identify` is
    held), `person_code` is the reference that holds it, `lines` are the insurance lines (HD03) of
    the coverages that count, None if all do; `family_coverage` says whether the coverage of a
    subscriber covers dependents without one, `verify` what BGN08 = 4 means. Wrong `counts` are
    refused where they are strict; `tests` says what becomes of files with ISA15 = T in production.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, FieldRule] = field(default_factory=dict)
    skip: tuple[RowRule, ...] = ()
    end: tuple[RowRule, ...] = ()
    delimiter: str | None = None
    header_row: int | None = None
    sheet: str | None = None
    clear: frozenset[str] = frozenset({r"\N"})
    plans: Mapping[str, str] = field(default_factory=dict)
    ssn: str = ""
    identify: MemberWay | None = None
    member_id: MemberWay | None = None
    person_code: str = "REF*17"
    plan: tuple[Way, ...] = ()
    lines: frozenset[str] | None = frozenset(MEDICAL_LINES)
    family_coverage: str = "own"
    verify: str = "compare"
    counts: str = "strict"
    tests: str = "dry_run"


NO_MAPPING = FileMapping()


def parse_mapping(body: Mapping[str, Any]) -> FileMapping:
    """The mapping that the JSON object describes. Raises Invalid with every fault, named by place.

    >>> parse_mapping({"columns": {"Employee No": "external_id"}}).columns
    {'employeeno': 'external_id'}
    >>> parse_mapping({"fields": {"shoe": {}}})
    Traceback (most recent call last):
        ...
    frontdesk.errors.Invalid: Some fields are not valid.
    """
    parts = _read_parts(body, _PARTS, _open_questions)
    parts.pop("questions", None)
    return FileMapping(**parts | parts.pop(SECTION_834, {}))


def _open_questions(parts: Mapping[str, Any]) -> Iterator[Fault]:
    ruled = {rule.column for rule in (*parts.get("skip", ()), *parts.get("end", ()))}
    for name, answer in parts.get("questions", {}).items():
        if not fold_name(name) or not (
            answer == UNRELATED or (answer == OPEN and fold_name(name) in ruled)
        ):
            yield Fault(f"questions.{shown_name(name)}", codes.faults.NOT_ALLOWED, _UNANSWERED)


_UNANSWERED = (
    "must be answered: the column may say whose access has ended. End these members, "
    "or leave their rows out, by a rule in end "
    f'or skip that names the column, or write "{UNRELATED}" if it says nothing about access'
)


Make = Callable[[Any], Any]


class MappingPart(NamedTuple):
    """A part of a mapping: its JSON types, its rule in words, and what is made of a value, None if
    it breaks the rule. `make` may raise Invalid with the faults inside the value. No message holds
    the value.
    """

    types: tuple[type, ...]
    rule: str
    make: Make

    def read(self, value: Any) -> Any:
        fits = type(value) in self.types
        made = self.make(value) if fits else None
        if made is None:
            raise Invalid(
                [
                    Fault(
                        "", codes.faults.NOT_ALLOWED if fits else codes.faults.WRONG_TYPE, self.rule
                    )
                ]
            )
        return made


# What else is wrong with an object of which so much was made.
_Check = Callable[[Mapping[str, Any]], Iterable[Fault]]


def _read_parts(
    given: Mapping[str, Any], parts: Mapping[str, MappingPart], check: _Check = lambda _: ()
) -> dict[str, Any]:
    """What is made of each part of an object, by name. Raises Invalid with the faults, in their
    places: also those of names that are no part, and of `check`. Above MOST_FAULTS it looks no
    further.
    """
    wrong = unknown_faults(name for name in given if name not in parts)
    made: dict[str, Any] = {}
    for name, part in parts.items():
        if len(wrong) >= MOST_FAULTS:
            raise Invalid(wrong)  # without `check`, which judges the whole object
        try:
            if name in given:
                made[name] = part.read(given[name])
        except Invalid as error:
            for fault in error.faults:
                wrong.append(
                    fault._replace(field=".".join(filter(None, (shown_name(name), fault.field))))
                )
    wrong += check(made)
    if wrong:
        raise Invalid(wrong)
    return made


def _object(make: Make, rule: str = "must be an object") -> MappingPart:
    return MappingPart((dict,), rule, make)


def _choice(*words: str, rule: str = "") -> MappingPart:
    rule = rule or f"must be {' or '.join(words)}, or be left out"
    return MappingPart((str,), rule, lambda word: word if word in words else None)


def _text(pattern: str, rule: str, make: Callable[[str], str | None] = str) -> MappingPart:
    fits = re.compile(pattern, re.DOTALL).fullmatch
    return MappingPart((str,), rule, lambda text: make(text) if fits(text) else None)


def _number(least: int, most: int) -> MappingPart:
    rule = f"must be a whole number from {least} to {most}"
    numbers = range(least, most + 1)
    return MappingPart(
        (int, float), rule, lambda number: int(number) if number in numbers else None
    )


def _words(
    make: Make, rule: str = "", *, most: int = MOST_WORDS, into: Make = tuple
) -> MappingPart:
    """A word or several. `make` gives None for a word that breaks the rule."""
    rule = rule or f"must be a string that is not blank, or an array of up to {most} of them"
    return MappingPart((str, list), rule, lambda value: into(_each(value, make, most)) or None)


def _each(value: str | list[Any], make: Make, most: int) -> list[Any]:
    """The result for each trimmed word; empty if one is no text or breaks the rule, or if there are
    too many.
    """
    words = [value] if isinstance(value, str) else value
    made = [make(word.strip()) if type(word) is str else None for word in words[: most + 1]]
    return [] if None in made or len(made) > most else made


def _cell_values(given: dict[str, Any]) -> dict[str, Value] | None:
    cells: dict[str, Value] = {}
    for word, item in given.items():
        cell = _cell(item)
        if (cell is None) != (item is None) or cells.setdefault(
            word.strip().casefold(), cell
        ) != cell:
            return None
    return cells


def _cell(value: Any) -> Value:
    """A value as the text of a cell; None for other types."""
    text = str(value).lower() if type(value) is bool else value
    return text if type(text) is str and len(text) <= LONGEST_VALUE else None


def _open_date(day: str) -> str | None:
    return day if _ISO_DATE.fullmatch(day) and day_exists(day) else None


def _folded(column: str) -> str | None:
    return fold_name(column) or None


def _distinct(words: list[str]) -> tuple[str, ...]:
    return tuple(words) if len(set(words)) == len(words) else ()


_COLUMNS_RULE = (
    f"must be the name of a column, or an array of up to {MOST_JOINED} of them, each once"
)
_VALUES_RULE = (
    f"must be an object of booleans, nulls, and strings of at most {LONGEST_VALUE} characters, "
    "with one value for a word in any letter case"
)
_DATES_RULE = (
    f"must be {values.EXCEL_SERIAL}, or YYYY or YY, MM or MON, and DD with - / . , "
    f"or spaces between, or an array of up to {MOST_FORMATS} of these"
)
_CONSTANT_RULE = (
    f"must be a boolean, or a string that is not blank of at most {LONGEST_VALUE} characters"
)
_JOINT = _text(f".{{0,{LONGEST_JOIN}}}", f"must be a string of at most {LONGEST_JOIN} characters")
_COLUMN_RULE = f"must be the name of a column, of at most {LONGEST_VALUE} characters"
RULE_PARTS = {
    "column": _words(_folded, _COLUMNS_RULE, most=MOST_JOINED, into=_distinct),
    "join": _JOINT,
    "blank": _JOINT,
    "part": _choice(*values.CELL_PARTS, rule=f"must be one of {', '.join(values.CELL_PARTS)}"),
    "values": _object(_cell_values, _VALUES_RULE),
    "dates": _words(values.parse_format, _DATES_RULE, most=MOST_FORMATS),
    "pivot": _number(0, 99),
    "open": _words(_open_date, f"must be up to {MOST_WORDS} dates, YYYY-MM-DD", into=frozenset),
    "pad": _number(1, LONGEST_PAD),
    "constant": MappingPart(
        (str, bool), _CONSTANT_RULE, lambda item: (str(item).strip() and _cell(item)) or None
    ),
}
_EQUALS_RULE = f"must be a string, or an array of up to {MOST_WORDS} of them"
ROW_RULE_PARTS = {
    "column": _text(f".{{1,{LONGEST_VALUE}}}", _COLUMN_RULE, _folded),
    "equals": _words(str.casefold, _EQUALS_RULE, into=frozenset),
    "starts_with": _words(lambda word: word.casefold() or None),
}


def _field_rules(given: dict[str, Any]) -> dict[str, FieldRule] | None:
    if len(given) > MOST_RULES:
        return None
    rules: dict[str, FieldRule] = {}
    rule = "must be an object, under the name of a field of a member, plan or family that is given once"
    parts = {name: _object(partial(_add_field_rule, rules, name), rule) for name in given}
    _read_parts(given, parts)
    return rules


def _add_field_rule(
    rules: dict[str, FieldRule], name: str, given: dict[str, Any]
) -> FieldRule | None:
    target = name if name in (values.PLAN, values.FAMILY) else mappable_field(name)
    if target is None or target in rules:
        return None

    def check(parts: Mapping[str, Any]) -> Iterator[Fault]:
        if "constant" in given and len(given) > 1:
            yield Fault("constant", codes.faults.NOT_ALLOWED, "must stand alone: every row gets it")
        if "constant" in given and target in FIELDS and FIELDS[target].unique:
            rule = "must not be an identifier: each member has its own"
            yield Fault("constant", codes.faults.NOT_ALLOWED, rule)
        if "pivot" not in given and any(
            "short" in each.groupindex for each in parts.get("dates", ())
        ):
            yield Fault(
                "pivot", codes.faults.REQUIRED, "must say the last two-digit year that means 20YY"
            )

    parts = _read_parts(given, RULE_PARTS, check)
    rule_of = FieldRule(
        columns=parts.pop("column", ()), open_dates=parts.pop("open", frozenset()), **parts
    )
    return rules.setdefault(target, rule_of)


def _row_rules(given: list[Any]) -> tuple[RowRule, ...] | None:
    """The rules in `end` or `skip`: `{"column": name, "equals": words, "starts_with": words}`."""
    if len(given) > MOST_ROW_RULES:
        return None
    rules = {str(at): rule for at, rule in enumerate(given)}
    return tuple(_read_parts(rules, dict.fromkeys(rules, _object(_row_rule))).values())


def _row_rule(given: dict[str, Any]) -> RowRule:
    is_whole = "column" in given and given.keys() & {"equals", "starts_with"}
    lacks = (
        []
        if is_whole
        else [Fault("", codes.faults.REQUIRED, "must have column, and equals or starts_with")]
    )
    return RowRule(**_read_parts(given, ROW_RULE_PARTS, lambda _: lacks))


def _columns(given: dict[str, Any]) -> dict[str, str]:
    columns: dict[str, str] = {}

    def target_of(name: str, target: str | None) -> str | None:
        known = "" if target is None else mappable_field(target)
        folded = fold_name(name)
        return (
            known
            if folded and known is not None and columns.setdefault(folded, known) == known
            else None
        )

    rule = (
        "must be a field of a member, or null if the column is not to be read, under the name of "
        "a column that is given once"
    )
    types = (str, type(None))
    _read_parts(given, {name: MappingPart(types, rule, partial(target_of, name)) for name in given})
    return columns


def _plans(given: dict[str, Any]) -> dict[str, str] | None:
    fits = all(type(plan) is str and plan.strip() for plan in given.values())
    return {name.strip(): plan.strip() for name, plan in given.items()} if fits else None


def _way(text: str, pattern: re.Pattern[str] = WAY) -> Way | None:
    fits = len(text) <= LONGEST_WAY and pattern.fullmatch(text.strip())
    return tuple(part.strip() for part in text.split("+")) if fits else None


def _member_way(value: Any) -> MemberWay | None:
    if isinstance(value, str):
        return MemberWay(way, way) if (way := _way(value)) else None
    is_pair = value.keys() == set(MemberWay._fields)
    return (
        MemberWay(**_read_parts(value, dict.fromkeys(MemberWay._fields, _WAY))) if is_pair else None
    )


def _lines(value: Any) -> frozenset[str] | None:
    """The codes, none of them for all."""
    codes = (
        _each(value, lambda code: code.upper() or None, len(value))
        if isinstance(value, list)
        else []
    )
    return frozenset(codes) if codes or value == EVERY_LINE else None


_WAY_RULE = (
    "must name REF*.., NM109, ssn, person_code, relationship, birth_sequence, first_name or dob, "
    f"joined by +, in at most {LONGEST_WAY} characters, "
    "with a number of the member or of its family: a REF that is neither REF*1L nor REF*38, "
    "NM109 or ssn"
)
_WAY = MappingPart((str,), _WAY_RULE, _way)
_MEMBER_WAY_RULE = f"{_WAY_RULE}; or be an object with the ways of subscriber and dependent"
_MEMBER_WAY = MappingPart((str, dict), _MEMBER_WAY_RULE, _member_way)
_PLAN_RULE = (
    f"must name REF*.., NM109, HD03, HD04 or person_code, joined by +, in at most {LONGEST_WAY} "
    f"characters, or be an array of up to {MOST_ALTERNATIVES} of these"
)
_PARTS_834 = {
    "identify": _MEMBER_WAY,
    "member_id": _MEMBER_WAY,
    "person_code": _text(rf"\s*{_REF}\s*", "must be a reference such as REF*17", str.strip),
    "plan": _words(partial(_way, pattern=SOURCES), _PLAN_RULE, most=MOST_ALTERNATIVES),
    "coverages": MappingPart(
        (str, list), 'must be "all" or an array of insurance line codes', _lines
    ),
    "family_coverage": _choice(*FAMILY_WORDS),
    "verify": _choice(*VERIFY_WORDS),
    "counts": _choice(*COUNTS_WORDS),
    "tests": _choice(*TESTS_WORDS),
}


def _of_834(given: dict[str, Any]) -> dict[str, Any]:
    """The part about 834s, by the names in FileMapping."""
    parts = _read_parts(given, _PARTS_834)
    if "coverages" in parts:
        parts["lines"] = parts.pop("coverages") or None
    return parts


_SHEET_RULE = f"must be the name of a sheet, up to {LONGEST_SHEET_NAME} characters"
_ROW_RULES = MappingPart((list,), f"must be an array of at most {MOST_ROW_RULES} rules", _row_rules)
_PARTS = {
    "columns": _object(_columns),
    "fields": _object(_field_rules, f"must be an object of at most {MOST_RULES} rules"),
    "skip": _ROW_RULES,
    "end": _ROW_RULES,
    "ssn": _choice(PLAIN),
    "questions": _object(dict),
    "delimiter": _choice(*DELIMITERS, rule="must be a comma, tab, pipe or semicolon"),
    "header_row": _number(1, SEARCHED_ROWS),
    "sheet": _text(f".{{1,{LONGEST_SHEET_NAME}}}", _SHEET_RULE),
    "clear": _words(lambda word: word or None, into=frozenset),
    "plans": _object(_plans, "must be an object of strings that are not blank"),
    SECTION_834: _object(_of_834),
}

# Examples for the values that may be one for all.
_CONSTANTS = {"gender": "unknown", "effective_date": "2026-01-01", "zipcode": "02134"}


def remedy_for(field_name: str, *, is_table: bool = True) -> str:
    """What to put into a mapping when rows lack a required field.

    >>> remedy_for("gender", is_table=False)
    'say in the mapping what new members get that lack it: {"fields": {"gender": {"constant": "unknown"}}}'
    """
    if not is_table and field_name not in _CONSTANTS:
        return "ask the sender for it"
    rule = {"fields": {field_name: {"constant": _CONSTANTS.get(field_name, "…")}}}
    constant = json.dumps(rule, ensure_ascii=False)
    if not is_table:
        return f"say in the mapping what new members get that lack it: {constant}"
    remedy = f'if a column holds it, name it in the mapping: {{"columns": {{"its name": "{field_name}"}}}}'
    if field_name in _CONSTANTS:
        remedy += f", or say one for all rows: {constant}"
    if field_name == "zipcode":
        remedy += (
            ", or give dependents the address of the employee with the same number: "
            '{"fields": {"family": {"column": "Employee ID"}}}'
        )
    return remedy
