"""The identifiers of a suggested mapping: a number that a family shares is joined with what tells its persons apart. A social
security number is none."""

import json
import re
from collections.abc import Sequence

from frontdesk.files.suggest.draft import MappingDraft

GUESSED = 0.6
_SHARED_KEY = 0.5
_LONGEST_NUMBER = 3
# With hyphens or spaces any area counts, also those of taxpayers' numbers; nine digits alone have to be in the ranges that the
# Social Security Administration issues: no area 000, 666 or 9xx, no group 00, no serial number 0000.
_SSN = re.compile("[0-9]{3}([- ])[0-9]{2}\\1[0-9]{4}|(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}")
_NO_NUMBER = "0"  # the person whose number in the family is blank: the employee


def are_ssns(cells: Sequence[str]) -> bool:
    """Whether more than half of the cells look like social security numbers. So do nine of ten numbers of nine digits that
    were drawn by lot: an identifier that is left out by mistake is named by a person, a stored number is hard to take back."""
    return sum(map(bool, map(_SSN.fullmatch, cells))) * 2 > len(cells)


def note_on_ssns(name: str, meaning: str) -> str:
    target = "external_id" if meaning == "external_id" else "member_id"
    return (
        "Most values look like social security numbers, so the column is not used as an identifier: those are stored and shown "
        "as they are. Ask the sender for a number of its own. If these are no social security numbers, say so in the mapping: "
        f"{json.dumps({'columns': {name: target}}, ensure_ascii=False)}."
    )


def add_identifiers(draft: MappingDraft, person: int | None, relationship: int | None) -> None:
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
    if _tells(draft, [position]) or any(
        len(cell) > _LONGEST_NUMBER for cell in draft.sample.column(position)
    ):
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
