"""Parses the rules of a mapping, `fields` and `skip`: untrusted JSON in, FieldRules and SkipRules out (docs/file-formats.md).

What a rule may say is bounded, so that no mapping makes a row take long.
"""

from collections.abc import Iterable
from typing import Any

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.files.column_names import COLUMN_NAME, fold_name, mappable_field
from frontdesk.files.field_rules import FAMILY, NAME_PARTS, PLAN, FieldRule, SkipRule
from frontdesk.files.part_reader import LONGEST_JOIN, LONGEST_PAD, LONGEST_VALUE, PartReader
from frontdesk.text import shown_name

RULE_PARTS = ("column", "join", "blank", "part", "values", "dates", "pivot", "open", "pad", "constant")
SKIP_PARTS = ("column", "equals", "starts_with")
MOST_RULES, MOST_SKIPS = 100, 20


def parse_field_rules(place: str, value: Any, faults: list[Fault]) -> dict[str, FieldRule]:
    """The rules of `fields`, by field. Adds what is wrong to `faults`."""
    if not isinstance(value, dict) or len(value) > MOST_RULES:
        faults.append(Fault(place, "wrong_type", f"must be an object of at most {MOST_RULES} rules"))
        return {}
    rules = {}
    for name, given in value.items():
        inside = f"{place}.{shown_name(name)}"
        target = name if name in (PLAN, FAMILY) else mappable_field(name)
        if target is None:
            faults.append(Fault(inside, "not_allowed", "must be a field of a member, plan or family"))
        elif target in rules:
            faults.append(Fault(inside, "repeated", "must be given once"))
        else:
            rules[target] = _parse_rule(target, PartReader(inside, given, RULE_PARTS, faults))
    return rules


def _parse_rule(target: str, reading: "PartReader") -> FieldRule:
    constant = reading.constant()
    if "constant" in reading.given and len(reading.given) > 1:
        reading.fault("constant", "not_allowed", "must stand alone: every row gets it")
    if constant is not None and target in FIELDS and FIELDS[target].unique:
        reading.fault("constant", "not_allowed", "must not be an identifier: each member has its own")
    dates = tuple(reading.dates())
    pivot = reading.number("pivot", 0, 99)
    if pivot is None and any(each.has_short_year for each in dates):
        reading.fault("pivot", "required", "must say the last two-digit year that means 20YY")
    return FieldRule(
        columns=reading.columns(),
        join=reading.text("join", " ", LONGEST_JOIN),
        blank=reading.text("blank", "", LONGEST_JOIN),
        part=reading.choice("part", NAME_PARTS),
        values=reading.values(),
        dates=dates,
        pivot=pivot,
        open_dates=frozenset(reading.open_dates()),
        pad=reading.number("pad", 1, LONGEST_PAD) or 0,
        constant=constant,
    )


def parse_skip_rules(place: str, value: Any, faults: list[Fault]) -> tuple[SkipRule, ...]:
    """The rules in `skip`: `{"column": name, "equals": words, "starts_with": words}`."""
    if not isinstance(value, list) or len(value) > MOST_SKIPS:
        faults.append(Fault(place, "wrong_type", f"must be an array of at most {MOST_SKIPS} rules"))
        return ()
    rules = []
    for number, given in enumerate(value):
        reading = PartReader(f"{place}.{number}", given, SKIP_PARTS, faults)
        columns = [reading.text("column", "", LONGEST_VALUE)] if "column" in reading.given else []
        if not isinstance(given, dict):
            continue
        if not columns or not reading.given.keys() & {"equals", "starts_with"}:
            reading.fault("", "required", "must have column, and equals or starts_with")
        elif not COLUMN_NAME.search(columns[0]):
            reading.fault("column", "not_allowed", "must be the name of a column")
        words = reading.words("equals", blank=True)
        starts = reading.words("starts_with")
        rules.append(SkipRule(fold_name("".join(columns)), _folded(words), tuple(_folded(starts))))
    return tuple(rules)


def _folded(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.strip().casefold() for word in words)
