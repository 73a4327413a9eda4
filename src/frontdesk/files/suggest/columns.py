"""Decides which column of a sample holds which field, and writes the mapping that reads them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS
from frontdesk.eligibility.fields import FIELDS, Storage
from frontdesk.files.names import COLUMN_NAME, field_named, fold_name
from frontdesk.files.suggest.dates import DateHabit, Fit, date_habit
from frontdesk.files.suggest.draft import MappingDraft, written_mapping
from frontdesk.files.suggest.families import add_family
from frontdesk.files.suggest.identifiers import GUESSED, add_identifiers, are_ssns, note_on_ssns
from frontdesk.files.suggest.lines import other_lines
from frontdesk.files.suggest.names import (
    FULL_NAME,
    HIRE_DATE,
    OFFICIAL,
    PERSON_NUMBER,
    RELATIONSHIP,
    meanings,
)
from frontdesk.files.suggest.sample import Sample, masked
from frontdesk.files.suggest.statuses import SuggestionQuestion, add_questions
from frontdesk.files.suggest.values import fit_of

_LEAST = 0.3  # what is less sure is not suggested
_MOST_OF_A_MEANING = 6
_NO_VALUES = 0.7
_OF_RELATIONSHIP = ("relationship_code", "relationship_code_hipaa", "subscriber_relationship")
_SELF = "18"
_IDENTIFIERS = ("external_id", "member_id", PERSON_NUMBER)


@dataclass(frozen=True, slots=True)
class SuggestedColumn:
    """A column, the fields that it may hold, from 0 to 1 how sure that is, and masked samples of its values. `note` says why
    it is not used although its name is that of a field, else it is ""."""

    column: str
    fields: tuple[str, ...] = ()
    confidence: float = 0.0
    samples: tuple[str, ...] = ()
    note: str = ""


def suggest_columns(
    sample: Sample, *, year: int
) -> tuple[dict[str, Any], list[SuggestedColumn], list[SuggestionQuestion]]:
    """The mapping, what is known of each column, and what a person has to decide. `year` is the present one."""
    lines = other_lines(sample)
    rule, sample = lines or (None, sample)
    draft = MappingDraft(sample, skip=[rule] if rule else [])
    found = _candidates(draft, year)
    taken: set[int] = set()
    for confidence, target, position, fit in sorted(found, key=lambda each: (-each[0], each[2])):
        if target in FIELDS and target not in draft.rules and position not in taken:
            draft.use(target, [position], confidence, fit.rule)
            taken.add(position)
    best = {
        target: (confidence, position, fit)
        for confidence, target, position, fit in sorted(found, key=lambda each: each[0])
    }
    _add_date_formats(draft)
    _add_names(draft, best)
    _add_relationship(draft, best)
    relationship = best[RELATIONSHIP][1] if RELATIONSHIP in best else None
    add_identifiers(draft, best[PERSON_NUMBER][1] if PERSON_NUMBER in best else None, relationship)
    add_family(draft)
    questions = add_questions(draft)
    return written_mapping(draft), _columns(draft), questions


def _candidates(draft: MappingDraft, year: int) -> list[tuple[float, str, int, Fit]]:
    """What each column may hold: confidence, meaning, position, fit."""
    sample, known = draft.sample, _known_meanings(draft)
    values = {position: sample.column(position) for position, meant in known.items() if meant}
    is_foreign = sample.delimiter == ";" or any(not name.isascii() for name in sample.names)
    habit = date_habit(list(values.values()), year=year, is_foreign=is_foreign)
    return [
        (confidence, target, position, fit)
        for position, cells in values.items()
        if OFFICIAL not in known[position]
        for target, score in known[position].items()
        for confidence, fit in [_rated(target, score, cells, habit, has_blanks=len(cells) < len(sample.rows))]
        if confidence >= _LEAST
        # A dependent's name that is blank on the employee's row is not the name of the row's person.
        if not (
            target == FULL_NAME
            and "dep" in fold_name(sample.names[position])
            and len(cells) < len(sample.rows)
        )
    ]


def _rated(
    target: str, score: float, cells: Sequence[str], habit: DateHabit, *, has_blanks: bool
) -> tuple[float, Fit]:
    fit = fit_of(target, cells, habit, has_blanks=has_blanks)
    return score * fit.share * (1.0 if fit.is_sure else GUESSED) * (1.0 if cells else _NO_VALUES), fit


def _known_meanings(draft: MappingDraft) -> dict[int, dict[str, float]]:
    """What the columns' names mean, by position. A name that stands twice can't be mapped."""
    sample = draft.sample
    folded = Counter(map(fold_name, sample.names))
    known = {
        position: meanings(name)
        for position, name in enumerate(sample.names)
        if folded[fold_name(name)] == 1 and COLUMN_NAME.search(name)
    }
    has_begin = any("effective_date" in meanings(name) for name in sample.names)
    counted: Counter[str] = Counter()
    for position, meant in known.items():
        score = meant.pop(HIRE_DATE, None)
        if score is not None and not has_begin:
            meant["effective_date"] = score
        keys = [target for target in _IDENTIFIERS if target in meant]
        if keys and are_ssns(sample.column(position)):
            best = max(keys, key=lambda target: meant[target])
            draft.notes[position] = note_on_ssns(sample.names[position], best)
            for target in keys:
                del meant[target]
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


def _add_names(draft: MappingDraft, best: Mapping[str, tuple[float, int, Fit]]) -> None:
    """First and last names from a column with both. Beside a first name, a column `Name` is the last name."""
    if FULL_NAME not in best or "last_name" in draft.rules:
        return
    confidence, position, _ = best[FULL_NAME]
    known = draft.column_of("first_name")
    if known is not None and draft.uses[known]["first_name"] >= GUESSED:
        draft.use("last_name", [position], GUESSED + 0.2)
        return
    if known is not None:
        del draft.uses[known]["first_name"]
    draft.use("first_name", [position], confidence, {"part": "first_name"})
    draft.use("last_name", [position], confidence, {"part": "last_name"})
    if "middle_name" not in draft.rules and any(
        len(value.split()) > 2 for value in draft.sample.column(position)
    ):
        draft.use("middle_name", [position], confidence, {"part": "middle_name"})


def _add_relationship(draft: MappingDraft, best: Mapping[str, tuple[float, int, Fit]]) -> None:
    """The words of a relationship as they are, as HIPAA codes, and as subscriber or dependent."""
    if RELATIONSHIP not in best:
        return
    confidence, position, fit = best[RELATIONSHIP]
    own = [field_named(name) for name in draft.sample.names]
    codes = dict(fit.rule.get("values", {}))
    words = {word.casefold() for word in draft.sample.column(position)}
    codes |= {word: word.upper() for word in sorted(words) if word.upper() in HIPAA_RELATIONSHIPS}
    primary = {word: "Primary" if code == _SELF else "Dependent" for word, code in codes.items()}
    for target, rule in zip(_OF_RELATIONSHIP, ({}, {"values": codes}, {"values": primary}), strict=True):
        if target not in own and (codes or target == "relationship_code"):
            draft.use(target, [position], confidence, rule)


def _columns(draft: MappingDraft) -> list[SuggestedColumn]:
    sample = draft.sample
    real = frozenset(cell.strip() for row in (*sample.rows, *sample.odd_rows) for cell in row)
    return [
        SuggestedColumn(name, tuple(uses), max(uses.values()), tuple(masked(sample.column(position), real)))
        if (uses := draft.uses.get(position))
        else SuggestedColumn(name, note=draft.notes.get(position, ""))
        for position, name in enumerate(sample.names)
    ]
