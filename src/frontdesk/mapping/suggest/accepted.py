"""What a person makes of a suggested mapping: which column holds what, and the answers."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from frontdesk import codes
from frontdesk.errors import Fault, Invalid


def accept(
    suggestion: Mapping[str, Any], *, columns: Mapping[str, str | None], answers: Mapping[str, int]
) -> dict[str, Any]:
    """The suggested mapping with the person's choices: by column its field (None: it is not used), and
    by column of a question the number of the choice, from 0. A column that stays with the suggested
    field keeps its rule; one with another field, or none, is read plainly.

    Raises Invalid for a column or a choice that the suggestion does not have; the fields and the
    questions that are still open are checked by `parse_mapping`.
    """
    mapping: dict[str, Any] = deepcopy(suggestion["mapping"])
    suggested = {each["column"]: each["fields"] for each in suggestion["columns"]}
    if unknown := columns.keys() - suggested.keys():
        _refuse("columns", f"names columns that the file does not have: {len(unknown)}")
    for column, field in columns.items():
        if (field is None and not suggested[column]) or field in suggested[column]:
            continue
        _read_plainly(mapping, column, field)
    questions = {each["column"]: each["choices"] for each in suggestion["questions"]}
    for column, number in answers.items():
        choices = questions.get(column, ())
        if not 0 <= number < len(choices):
            _refuse("answers", "must name choices of the suggestion's questions")
        _add(mapping, choices[number]["mapping"])
    return {name: part for name, part in mapping.items() if part not in ({}, [])}


def _read_plainly(mapping: dict[str, Any], column: str, field: str | None) -> None:
    """The column has the field, and no other column has it any more."""
    rules = mapping.get("fields", {})
    mapping["fields"] = {
        name: rule for name, rule in rules.items() if name != field and not _reads(rule, column)
    }
    mapping["columns"] = {
        name: None if field is not None and held == field else held
        for name, held in mapping.get("columns", {}).items()
    } | {column: field}


def _reads(rule: Mapping[str, Any], column: str) -> bool:
    named = rule.get("column")
    return column in named if isinstance(named, list) else column == named


def _add(mapping: dict[str, Any], answer: Mapping[str, Any]) -> None:
    for name, part in answer.items():
        if isinstance(part, list):
            mapping[name] = [*mapping.get(name, ()), *part]
        else:
            mapping[name] = {**mapping.get(name, {}), **part}


def _refuse(field: str, rule: str) -> None:
    raise Invalid([Fault(field, codes.faults.NOT_ALLOWED, rule)])
