"""Decides which column of a sample holds which field: the mapping as it grows, column by column."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS
from frontdesk.eligibility.fields import FIELDS, Storage
from frontdesk.files.names import COLUMN_NAME, field_named, fold_name
from frontdesk.files.rules import FAMILY
from frontdesk.files.suggest.names import (
    FULL_NAME,
    HIRE_DATE,
    OFFICIAL,
    PERSON_NUMBER,
    RELATIONSHIP,
    START_DATE,
    meanings,
    words_of,
)
from frontdesk.files.suggest.sample import Sample
from frontdesk.files.suggest.values import Fit, date_habit, fit_of
from frontdesk.text import are_mostly_ssns

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

# By meaning: how sure it is, the column, how its values fit.
Candidates = Mapping[str, tuple[float, int, Fit]]


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
    found = _candidates(draft, year)
    taken: set[int] = set()
    for confidence, target, position, fit in sorted(found, key=lambda each: (-each[0], each[2])):
        if target in FIELDS and target not in draft.rules and position not in taken:
            draft.use(target, [position], confidence, fit.rule)
            taken.add(position)
    best: Candidates = {
        target: (confidence, position, fit)
        for confidence, target, position, fit in sorted(found, key=lambda each: each[0])
    }
    _add_date_formats(draft)
    _add_names(draft, best)
    _add_relationship(draft, best)
    person, relationship = (best[each][1] if each in best else None for each in (PERSON_NUMBER, RELATIONSHIP))
    _add_identifiers(draft, person, relationship)
    _add_family(draft)
    return draft


def _candidates(draft: MappingDraft, year: int) -> list[tuple[float, str, int, Fit]]:
    """What each column may hold: confidence, meaning, position, fit."""
    sample, known, found = draft.sample, _known_meanings(draft), []
    values = {position: sample.column(position) for position, meant in known.items() if meant}
    habit = date_habit(list(values.values()), year=year)
    for position, cells in values.items():
        has_blanks = len(cells) < len(sample.rows)
        for target, score in known[position].items():
            # A dependent's name that is blank on the employee's row is not the name of the row's person.
            if target == FULL_NAME and has_blanks and "dependent" in words_of(sample.names[position]):
                continue
            fit = fit_of(target, cells, habit, has_blanks=has_blanks)
            confidence = (
                score * fit.share * (1.0 if fit.is_sure else GUESSED) * (1.0 if cells else _NO_VALUES)
            )
            if confidence >= _LEAST and OFFICIAL not in known[position]:
                found.append((confidence, target, position, fit))
    return found


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
        for hired in (START_DATE, HIRE_DATE):
            if (score := meant.pop(hired, None)) is not None and not has_begin:
                meant["effective_date"] = score
        keys = [target for target in _IDENTIFIERS if target in meant]
        if keys and are_mostly_ssns(sample.column(position)):
            best = max(keys, key=lambda target: meant[target])
            draft.notes[position] = _note_on_ssns(sample.names[position], best)
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


def _add_names(draft: MappingDraft, best: Candidates) -> None:
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
    has_middle = any(len(value.split()) > 2 for value in draft.sample.column(position))
    middle = ["middle_name"] if has_middle and "middle_name" not in draft.rules else []
    for part in ("first_name", "last_name", *middle):
        draft.use(part, [position], confidence, {"part": part})


def _add_relationship(draft: MappingDraft, best: Candidates) -> None:
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


def _note_on_ssns(name: str, meaning: str) -> str:
    """An identifier that is left out by mistake is named by a person; a stored number is hard to take back."""
    target = "external_id" if meaning == "external_id" else "member_id"
    rule = json.dumps({"columns": {name: target}, "ssn": "plain"}, ensure_ascii=False)
    return (
        "Most values look like social security numbers, so the column is not used as an identifier: those are stored and shown "
        "as they are. Ask the sender for a number of its own. If these are no social security numbers, or are to be stored as "
        f"they are, say so in the mapping: {rule}."
    )


def _add_identifiers(draft: MappingDraft, person: int | None, relationship: int | None) -> None:
    """external_id and member_id are unique. With one number only, it serves as both. `person` and `relationship` are the columns
    with a person's number in the family and its relationship, if there are any.

    The first name is the last resort, and only beside one of these columns: a key with a name in it changes when the name is
    corrected. Without them a number that stands twice is a mistake of the sender.
    """
    person = _person_number(draft, person)
    is_of_families = (person, relationship) != (None, None)
    first_name = draft.column_of("first_name") if is_of_families else None
    for target, other in (("external_id", "member_id"), ("member_id", "external_id")):
        if target not in draft.rules and (position := draft.column_of(other)) is not None:
            draft.use(target, [position], draft.uses[position][other] * GUESSED)
    for target in ("external_id", "member_id"):
        position = draft.column_of(target)
        if position is not None and not _tells(draft, [position]):
            _join(draft, target, position, [person, relationship, first_name])


def _person_number(draft: MappingDraft, person: int | None) -> int | None:
    """The column with a person's number in the family; a short member_id that stands several times is one."""
    position = draft.column_of("member_id")
    if person is not None or position is None or draft.column_of("external_id") in (None, position):
        return person
    if _tells(draft, [position]) or max(map(len, draft.sample.column(position)), default=0) > _LONGEST_NUMBER:
        return None
    del draft.rules["member_id"], draft.uses[position]["member_id"]
    return position


def _join(draft: MappingDraft, target: str, position: int, candidates: list[int | None]) -> None:
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
