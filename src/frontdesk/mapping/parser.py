"""Parses the mapping of a sender's files: an untrusted JSON object in, a FileMapping out (docs/file-formats.md)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from frontdesk.errors import Fault, Invalid, unknown_faults
from frontdesk.formats.model import DELIMITERS, SEARCHED_ROWS
from frontdesk.mapping.names import COLUMN_NAME, fold_name, mappable_field
from frontdesk.mapping.parser_834 import SECTION_834, Alternatives, MemberWay, read_834, read_choice_of
from frontdesk.mapping.rules import MOST_WORDS, FieldRule, RowRule, parse_field_rules, parse_row_rules
from frontdesk.text import shown_name

# What a person has to decide about a column, and the answer that it says nothing about access.
OPEN, UNRELATED = "open", "unrelated"
PLAIN = "plain"  # social security numbers are to be stored as they are

MEDICAL_LINES = ("HLT", "HMO", "PPO", "POS", "EPO", "MM", "IND", "PRA")
CLEAR_WORDS = frozenset({r"\N"})

LONGEST_SHEET_NAME = 31  # Excel's limit


@dataclass(frozen=True, slots=True)
class FileMapping:
    """How a sender's files name things (docs/file-formats.md). `columns` maps a folded column name to a field, or to "" if
    the column is not read, `plans` a
    plan of the file to a plan's external_id; `fields` are the rules that make values, by field. Rows of `skip` are left
    out, and those of `end` end their members. `header_row` is the number of
    the row with the names of the columns and `sheet` the name of the sheet; None if they are to be found.

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
    clear: frozenset[str] = CLEAR_WORDS
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
    faults = unknown_faults(name for name in body if name not in _PARTS and name != SECTION_834)
    parts: dict[str, Any] = {}
    for name, read in _PARTS.items():
        if body.get(name) is not None:  # mappings that were stored early may have nulls
            parts[name] = read(name, body[name], faults)
    _check_answers(parts.pop("questions", {}), (*parts.get("skip", ()), *parts.get("end", ())), faults)
    parts |= read_834(body.get(SECTION_834, {}), faults)
    if faults:
        raise Invalid(faults)
    return FileMapping(**parts)


def _read_plans(place: str, value: Any, faults: list[Fault]) -> dict[str, str]:
    if isinstance(value, dict) and all(type(item) is str and item.strip() for item in value.values()):
        return {name.strip(): item.strip() for name, item in value.items()}
    faults.append(Fault(place, "wrong_type", "must be an object of strings that are not blank"))
    return {}


def _read_columns(place: str, value: Any, faults: list[Fault]) -> dict[str, str]:
    if not isinstance(value, dict):
        faults.append(Fault(place, "wrong_type", "must be an object"))
        return {}
    columns: dict[str, str] = {}
    for name, target in value.items():
        inside, folded = f"{place}.{shown_name(name)}", fold_name(name)
        known = "" if target is None else mappable_field(target) if type(target) is str else None
        if known is None:
            rule = "must be a field of a member, or null if the column is not to be read"
            faults.append(Fault(inside, "not_allowed", rule))
        elif not folded:
            faults.append(Fault(inside, "not_allowed", "must be the name of a column"))
        elif columns.setdefault(folded, known) != known:
            faults.append(Fault(inside, "repeated", "must be given once: only letter case or spaces differ"))
    return columns


def _read_questions(place: str, value: Any, faults: list[Fault]) -> dict[str, str]:
    if not isinstance(value, dict):
        faults.append(Fault(place, "wrong_type", "must be an object"))
        return {}
    for name, answer in value.items():
        if answer not in (OPEN, UNRELATED) or not COLUMN_NAME.search(name):
            rule = f"must be {OPEN} or {UNRELATED}, under the name of a column"
            faults.append(Fault(f"{place}.{shown_name(name)}", "not_allowed", rule))
    return value


def _check_answers(questions: Mapping[str, str], rules: Iterable[RowRule], faults: list[Fault]) -> None:
    """Add a fault for each question that is neither answered nor has a rule for its column in `end` or `skip`."""
    answered = {rule.column for rule in rules}
    for name, answer in questions.items():
        if answer == OPEN and fold_name(name) not in answered:
            rule = (
                "must be answered: the column may say whose access has ended. End these members, or leave their rows out, by a "
                f'rule in end or skip that names the column, or write "{UNRELATED}" if it says nothing about access'
            )
            faults.append(Fault(f"questions.{shown_name(name)}", "not_allowed", rule))


def _read_words(place: str, value: Any, faults: list[Fault]) -> frozenset[str]:
    words = value if isinstance(value, list) else [value]
    if 1 <= len(words) <= MOST_WORDS and all(type(word) is str and word.strip() for word in words):
        return frozenset(word.strip() for word in words)
    rule = f"must be a string that is not blank, or an array of up to {MOST_WORDS} of them"
    faults.append(Fault(place, "wrong_type", rule))
    return frozenset()


def _read_header_row(place: str, value: Any, faults: list[Fault]) -> int | None:
    if type(value) in (int, float) and value in range(1, SEARCHED_ROWS + 1):  # 5.0 is 5 in JSON
        return int(value)
    faults.append(Fault(place, "not_allowed", f"must be a whole number from 1 to {SEARCHED_ROWS}"))
    return None


def _read_sheet(place: str, value: Any, faults: list[Fault]) -> str:
    if type(value) is not str or not 0 < len(value) <= LONGEST_SHEET_NAME:
        rule = f"must be the name of a sheet, up to {LONGEST_SHEET_NAME} characters"
        faults.append(Fault(place, "not_allowed", rule))
    return str(value)


_PARTS: dict[str, Callable[[str, Any, list[Fault]], Any]] = {
    "columns": _read_columns,
    "fields": parse_field_rules,
    "skip": parse_row_rules,
    "end": parse_row_rules,
    "ssn": partial(read_choice_of, (PLAIN,), f"must be {PLAIN}, or be left out"),
    "questions": _read_questions,
    "delimiter": partial(read_choice_of, DELIMITERS, "must be a comma, tab, pipe or semicolon"),
    "header_row": _read_header_row,
    "sheet": _read_sheet,
    "clear": _read_words,
    "plans": _read_plans,
}
