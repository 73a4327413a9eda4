"""What a person makes of a suggested mapping: which column holds which field, the order of day and
month, the answers to the questions. And the way back: what a mapping says of each column.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from frontdesk import codes
from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault, Invalid
from frontdesk.mapping.parser import MOST_FORMATS, OPEN
from frontdesk.mapping.suggest.columns import DAY_FIRST, MONTH_FIRST, is_short, pivot_of
from frontdesk.mapping.suggest.date_shapes import formats_of
from frontdesk.mapping.values import field_named, fold_name

_OTHER_ORDER = {
    **dict(zip(MONTH_FIRST, DAY_FIRST, strict=True)),
    **dict(zip(DAY_FIRST, MONTH_FIRST, strict=True)),
}
DATES = ("dob", "effective_date", "expiry_date")
_OF_DATES = ("dates", "pivot", "open")
_OF_ROWS = ("end", "skip")

Json = dict[str, Any]


def accept(
    suggestion: Mapping[str, Any],
    *,
    columns: Mapping[str, str | None],
    answers: Mapping[str, int],
    year: int,
    day_first: Mapping[str, bool] | None = None,
    base: Mapping[str, Any] | None = None,
) -> Json:
    """The mapping with a person's choices: by column its field (None: it is not used), by column of a
    question the number of the choice, from 0, and by column of dates in `columns` whether the day
    stands first. They change `base`, the suggested mapping if there is none yet.

    A column that stays with its field keeps its rule. One with another field is read plainly; a date
    by the formats of before or of the file's other dates, and those that its values look like, whose
    two-digit years are told by the current `year`. Raises Invalid for a column or a choice that the
    suggestion does not have, and for a field that two columns are given; the fields and the questions
    that are still open are checked by `parse_mapping`.
    """
    mapping = deepcopy(dict(suggestion["mapping"] if base is None else base))
    shapes = {each["column"]: each["samples"] for each in suggestion["columns"]}
    if unknown := columns.keys() - shapes.keys():
        _refuse("columns", f"names columns that the file does not have: {len(unknown)}")
    _refuse_double_claims(mapping, columns)
    orders = day_first or {}
    for column, field in columns.items():
        present = fields_of(mapping, column)
        is_unchanged = field in present or (field is None and not present)
        rules = mapping.get("fields", {})
        lacks_order = column in orders and field in DATES and field not in rules
        if lacks_order or not is_unchanged:
            of_dates = _formats_for(rules, field, formats_of(shapes[column]), year)
            _read_plainly(mapping, column, field, of_dates)
        if column in orders:
            _set_order(mapping, column, is_day_first=orders[column])
    questions = {each["column"]: each["choices"] for each in suggestion["questions"]}
    for column, number in answers.items():
        choices = questions.get(column, ())
        if not 0 <= number < len(choices):
            _refuse("answers", "must name choices of the suggestion's questions")
        for choice in choices:
            _take_away(mapping, choice["mapping"])
        _add(mapping, choices[number]["mapping"])
    return {name: part for name, part in mapping.items() if part not in ({}, [])}


def fields_of(mapping: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """The fields that the mapping reads from the column, in the order of a member's fields."""
    folded = fold_name(column)
    named = {fold_name(name): field for name, field in mapping.get("columns", {}).items()}
    rules = mapping.get("fields", {})
    found = {name for name, rule in rules.items() if _reads(rule, folded)}
    own = named[folded] if folded in named else field_named(column)
    # A field with a rule that names its columns is read from those.
    if own is not None and "column" not in rules.get(own, {}):
        found.add(own)
    order = [*FIELDS]
    return tuple(sorted(found, key=lambda name: (name not in FIELDS, _place(order, name), name)))


def reads_day_first(mapping: Mapping[str, Any], column: str) -> bool | None:
    """The order in which the column's dates are read; None if their format has only one."""
    for rule in _date_rules(mapping, column):
        for name in _words(rule["dates"]):
            if name in _OTHER_ORDER:
                return name in DAY_FIRST
    return None


def any_day_first(mapping: Mapping[str, Any]) -> bool:
    """Whether dates of some column are read with the day first."""
    rules = mapping.get("fields", {}).values()
    return any(name in DAY_FIRST for rule in rules for name in _words(rule.get("dates", [])))


def answer_of(mapping: Mapping[str, Any], question: Mapping[str, Any]) -> int | None:
    """The number of the choice that the mapping holds; None without one."""
    for number, choice in enumerate(question["choices"]):
        if all(_holds(mapping, name, part) for name, part in choice["mapping"].items()):
            return number
    return None


def is_open(mapping: Mapping[str, Any], question: Mapping[str, Any]) -> bool:
    """Whether the mapping leaves the question open: neither a choice nor a rule of its own."""
    folded = fold_name(question["column"])
    asked = {fold_name(name): word for name, word in mapping.get("questions", {}).items()}
    rules = [rule for part in _OF_ROWS for rule in mapping.get(part, ())]
    is_ruled = any(fold_name(rule.get("column", "")) == folded for rule in rules)
    return asked.get(folded) == OPEN and not is_ruled


def double_claims(
    mapping: Mapping[str, Any], columns: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """The fields that two or more columns are given, with these columns. Columns that the mapping
    joins for a field are one claim.
    """
    claims: dict[str, list[str]] = {}
    for column, field in columns.items():
        if field is not None:
            claims.setdefault(field, []).append(column)
    return {
        field: claimed
        for field, claimed in claims.items()
        if len(claimed) > 1 and not all(_is_joined(mapping, field, each) for each in claimed)
    }


def _refuse_double_claims(mapping: Mapping[str, Any], columns: Mapping[str, str | None]) -> None:
    faults = [
        Fault(field, codes.faults.REPEATED, f"is given to {len(claimed)} columns: choose one")
        for field, claimed in double_claims(mapping, columns).items()
    ]
    if faults:
        raise Invalid(faults)


def _is_joined(mapping: Mapping[str, Any], field: str, column: str) -> bool:
    rule = mapping.get("fields", {}).get(field)
    return rule is not None and _reads(rule, fold_name(column))


def _read_plainly(mapping: Json, column: str, field: str | None, of_dates: Json) -> None:
    """The column has the field, and no other column has it any more. `of_dates` are the parts of a
    date's rule.
    """
    folded = fold_name(column)
    rules: dict[str, Json] = mapping.get("fields", {})
    left = {}
    for name, rule in rules.items():
        if name == field:
            continue
        shorter = _without(rule, folded) if _reads(rule, folded) else rule
        if shorter is not None:
            left[name] = shorter
    columns: dict[str, str | None] = {
        name: None if field is not None and held == field else held
        for name, held in mapping.get("columns", {}).items()
        if fold_name(name) != folded
    }
    columns[column] = None if of_dates else field
    if field is not None and of_dates:
        left[field] = {"column": column, **of_dates}
    mapping["fields"] = left
    mapping["columns"] = columns


def _formats_for(
    rules: Mapping[str, Json], field: str | None, likely: Sequence[str], year: int
) -> Json:
    """How a date is read that moves to another column: as before, else as the file's other dates, and
    by the formats that its values look like.
    """
    if field not in DATES:
        return {}
    parts = _formats_before(rules, field)
    before = _words(parts.get("dates", []))
    is_day_first = not set(before).isdisjoint(DAY_FIRST)
    more = [_OTHER_ORDER.get(name, name) if is_day_first else name for name in likely]
    more = [name for name in more if name not in before and _OTHER_ORDER.get(name) not in before]
    if not (before or more):
        return {}
    dates = [*before, *more][:MOST_FORMATS]
    if any(is_short(name) for name in dates):
        parts = {"pivot": pivot_of(field, year)} | parts
    return parts | {"dates": dates if more else parts["dates"]}


def _formats_before(rules: Mapping[str, Json], field: str) -> Json:
    for name in (field, *DATES):
        rule = rules.get(name, {})
        if "dates" in rule:
            taken = _OF_DATES if name == field else _OF_DATES[:2]
            return {part: rule[part] for part in taken if part in rule}
    return {}


def _without(rule: Json, folded: str) -> Json | None:
    """The rule that joins one column less; None if it has no other column."""
    left = [name for name in _words(rule["column"]) if fold_name(name) != folded]
    if not left:
        return None
    if len(left) > 1:
        return rule | {"column": left}
    return {name: part for name, part in rule.items() if name != "join"} | {"column": left[0]}


def _set_order(mapping: Json, column: str, *, is_day_first: bool) -> None:
    """Formats of the other order are turned; if the column has both orders, both stay."""
    wanted = DAY_FIRST if is_day_first else MONTH_FIRST
    for rule in _date_rules(mapping, column):
        formats = _words(rule["dates"])
        turned = [name if name in wanted else _OTHER_ORDER.get(name, name) for name in formats]
        both = [name for name in formats if _OTHER_ORDER.get(name) in formats]
        rule["dates"] = [*dict.fromkeys((*turned, *both))]


def _date_rules(mapping: Mapping[str, Any], column: str) -> list[Json]:
    folded = fold_name(column)
    rules = mapping.get("fields", {}).values()
    return [rule for rule in rules if "dates" in rule and _reads(rule, folded)]


def _reads(rule: Mapping[str, Any], folded: str) -> bool:
    return folded in map(fold_name, _words(rule.get("column", [])))


def _words(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else [*value]


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _holds(mapping: Mapping[str, Any], name: str, part: Any) -> bool:
    held = mapping.get(name)
    if held is None:
        return False
    if isinstance(part, list):
        return all(each in held for each in part)
    return all(held.get(key) == value for key, value in part.items())


def _take_away(mapping: Json, answer: Mapping[str, Any]) -> None:
    """The mapping without what another answer has put into it."""
    for name, part in answer.items():
        held = mapping.get(name)
        if isinstance(part, list):
            mapping[name] = [each for each in held or () if each not in part]
        else:
            mapping[name] = {
                key: value for key, value in (held or {}).items() if part.get(key) != value
            }


def _add(mapping: Json, answer: Mapping[str, Any]) -> None:
    for name, part in answer.items():
        if isinstance(part, list):
            mapping[name] = [*mapping.get(name, ()), *part]
        else:
            mapping[name] = {**mapping.get(name, {}), **part}


def _refuse(field: str, rule: str) -> None:
    raise Invalid([Fault(field, codes.faults.NOT_ALLOWED, rule)])
