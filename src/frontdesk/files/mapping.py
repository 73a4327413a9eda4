"""Parses the mapping of a sender's files: an untrusted JSON object in, a FileMapping out (docs/file-formats.md)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from frontdesk.errors import Fault, Invalid, unknown_faults
from frontdesk.files.column_names import field_named, fold_name
from frontdesk.files.field_rules import FieldRule, SkipRule, parse_field_rules, parse_skip_rules
from frontdesk.text import shown_name

# The ways to make an identifier of an 834: the parts of a way are joined, the first way with all its parts is taken.
Alternatives = tuple[tuple[str, ...], ...]
PERSON_CODE = "person_code"
OWN, BIRTH_SEQUENCE, RELATIONSHIP, SUBSCRIBER = (
    "own_reference",
    "birth_sequence",
    "relationship",
    "subscriber",
)
DEFAULT_KEY: Alternatives = (
    (OWN,),
    ("REF*0F", PERSON_CODE),
    ("REF*0F", BIRTH_SEQUENCE),
    (SUBSCRIBER,),
    ("REF*0F", RELATIONSHIP),
)
MEDICAL_LINES = ("HLT", "HMO", "PPO", "POS", "EPO", "MM", "IND", "PRA")
EVERY_LINE = "all"
CLEAR_WORD = r"\N"

SEARCHED_ROWS = 50  # the header is one of so many first rows
LONGEST_SHEET_NAME = 31  # Excel's limit

DELIMITERS = (",", "\t", "|", ";")
SHARED_REFERENCES = {"REF*0F", "REF*1L", "REF*38"}  # the same for a family, for a group, for a whole file

_SOURCE = re.compile(r"REF\*[0-9A-Z]{2,3}|NM109|HD03|HD04|person_code")
_REFERENCE = re.compile(r"REF\*[0-9A-Z]{2,3}")


@dataclass(frozen=True, slots=True)
class FileMapping:
    """How a sender's files name things (docs/file-formats.md). `columns` maps a folded column name to a field, `plans` a
    plan of the file to a plan's external_id; `fields` are the rules that make values, by field. `header_row` is the number of
    the row with the names of the columns and `sheet` the name of the sheet; None if they are to be found.

    `lines` are the insurance lines (HD03) of the coverages that count, None if all do; `person_code` is the reference that
    holds it. With `ssn`, NM109 may be a social security number. `verify` is the
    meaning of BGN08 = 4; wrong `counts` are refused where they are strict.
    """

    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    fields: Mapping[str, FieldRule] = field(default_factory=lambda: MappingProxyType({}))
    skip: tuple[SkipRule, ...] = ()
    delimiter: str | None = None
    header_row: int | None = None
    sheet: str | None = None
    clear: str = CLEAR_WORD
    plans: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    external_id: Alternatives = DEFAULT_KEY
    member_id: Alternatives = DEFAULT_KEY
    person_code: str = "REF*17"
    plan: Alternatives = ()
    lines: frozenset[str] | None = frozenset(MEDICAL_LINES)
    ssn: bool = False
    verify: str = "compare"
    counts: str = "strict"


NO_MAPPING = FileMapping()


def parse_mapping(body: Mapping[str, Any]) -> FileMapping:
    """The mapping that the JSON object describes. Raises Invalid with every fault, named by place."""
    faults = unknown_faults(name for name in body if name not in _PARTS and name != "834")
    parts: dict[str, Any] = {}
    for name, read in _PARTS.items():
        if body.get(name) is not None:
            parts[name] = read(name, body[name], faults)
    parts |= _read_834(body.get("834"), faults)
    if faults:
        raise Invalid(faults)
    return FileMapping(**parts)


def _read_834(body: Any, faults: list[Fault]) -> dict[str, Any]:
    """What the account says of its 834s, by the name that it has in FileMapping."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        faults.append(Fault("834", "wrong_type", "must be an object"))
        return {}
    faults += unknown_faults(f"834.{name}" for name in body if name not in _PARTS_834)
    return {
        known: read(f"834.{name}", body[name], faults)
        for name, (known, read) in _PARTS_834.items()
        if body.get(name) is not None
    }


def _read_names(place: str, value: Any, faults: list[Fault]) -> dict[str, str]:
    if isinstance(value, dict) and all(type(item) is str and item for item in value.values()):
        return {str(name).strip(): item.strip() for name, item in value.items()}
    faults.append(Fault(place, "wrong_type", "must be an object of strings"))
    return {}


def _read_columns(place: str, value: Any, faults: list[Fault]) -> dict[str, str]:
    columns = {}
    for name, target in _read_names(place, value, faults).items():
        known = field_named(target)
        if known is None:
            faults.append(Fault(f"{place}.{shown_name(name)}", "not_allowed", "must be a field of a member"))
        columns[fold_name(name)] = known or ""
    return columns


def _read_word(place: str, value: Any, faults: list[Fault]) -> str:
    if type(value) is str and value.strip():
        return value.strip()
    faults.append(Fault(place, "wrong_type", "must be a string that is not blank"))
    return ""


def _read_delimiter(place: str, value: Any, faults: list[Fault]) -> str | None:
    if value in DELIMITERS:
        return str(value)
    faults.append(Fault(place, "not_allowed", "must be a comma, tab, pipe or semicolon"))
    return None


def _read_header_row(place: str, value: Any, faults: list[Fault]) -> int | None:
    if type(value) is int and 1 <= value <= SEARCHED_ROWS:
        return value
    faults.append(Fault(place, "not_allowed", f"must be a whole number from 1 to {SEARCHED_ROWS}"))
    return None


def _read_sheet(place: str, value: Any, faults: list[Fault]) -> str | None:
    if type(value) is str and 0 < len(value) <= LONGEST_SHEET_NAME:
        return value
    faults.append(
        Fault(place, "not_allowed", f"must be the name of a sheet, up to {LONGEST_SHEET_NAME} characters")
    )
    return None


def _read_reference(place: str, value: Any, faults: list[Fault]) -> str:
    word = _read_word(place, value, faults)
    if not _REFERENCE.fullmatch(word):
        faults.append(Fault(place, "not_allowed", "must be a reference such as REF*17"))
    return word


def _read_lines(place: str, value: Any, faults: list[Fault]) -> frozenset[str] | None:
    if value == EVERY_LINE:
        return None
    if isinstance(value, list) and value and all(type(item) is str and item.strip() for item in value):
        return frozenset(item.strip().upper() for item in value)
    faults.append(Fault(place, "wrong_type", 'must be "all" or an array of insurance line codes'))
    return None


def _read_ssn(place: str, value: Any, faults: list[Fault]) -> bool:
    return _read_choice_of(("plain",), place, value, faults) == "plain"


def _read_choice_of(words: tuple[str, ...], place: str, value: Any, faults: list[Fault]) -> str:
    if value not in words:
        faults.append(Fault(place, "not_allowed", f"must be {' or '.join(words)}, or be left out"))
    return str(value)


def _read_alternatives(place: str, value: Any, faults: list[Fault]) -> Alternatives:
    given = [value] if type(value) is str else value
    if not isinstance(given, list) or not given or not all(type(item) is str for item in given):
        faults.append(Fault(place, "wrong_type", "must be a string or an array of strings"))
        return ()
    alternatives = tuple(tuple(part.strip() for part in item.split("+")) for item in given)
    if not all(_SOURCE.fullmatch(part) for parts in alternatives for part in parts):
        message = "must name REF*.., NM109, HD03, HD04 or person_code, joined by +"
        faults.append(Fault(place, "not_allowed", message))
    return alternatives


def _read_key(place: str, value: Any, faults: list[Fault]) -> Alternatives:
    """REF*0F repeats on the dependents, so it is never the key alone."""
    alternatives = _read_alternatives(place, value, faults)
    if any("HD" in part for parts in alternatives for part in parts):
        faults.append(Fault(place, "not_allowed", "must not be made from a coverage (HD)"))
    if any(set(parts) <= SHARED_REFERENCES for parts in alternatives):
        message = "must not be REF*0F, REF*1L or REF*38 alone: they are the same for several members"
        faults.append(Fault(place, "not_allowed", message))
    return alternatives


_PARTS: dict[str, Callable[[str, Any, list[Fault]], Any]] = {
    "columns": _read_columns,
    "fields": parse_field_rules,
    "skip": parse_skip_rules,
    "delimiter": _read_delimiter,
    "header_row": _read_header_row,
    "sheet": _read_sheet,
    "clear": _read_word,
    "plans": _read_names,
    "external_id": _read_key,
    "member_id": _read_key,
    "person_code": _read_reference,
    "plan": _read_alternatives,
    "lines": _read_lines,
}
_PARTS_834: dict[str, tuple[str, Callable[[str, Any, list[Fault]], Any]]] = {
    "coverages": ("lines", _read_lines),
    "ssn": ("ssn", _read_ssn),
    "verify": ("verify", partial(_read_choice_of, ("compare", "full"))),
    "counts": ("counts", partial(_read_choice_of, ("strict", "lenient"))),
}
