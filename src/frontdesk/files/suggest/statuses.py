"""Columns that may say whose access has ended, such as `Employment Status`. No field holds a status, so the suggestion asks a
person, and its mapping is refused until the question is answered (docs/file-formats.md, Let a mapping be suggested)."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from frontdesk.files.mapping import OPEN, UNRELATED
from frontdesk.files.names import COLUMN_NAME, field_named
from frontdesk.files.suggest.draft import MappingDraft
from frontdesk.files.suggest.names import LONGEST_NAME, words_of
from frontdesk.files.suggest.words import (
    OTHER_STATUS,
    STATUS,
    STATUS_ACTIVE,
    STATUS_ENDED,
    STATUS_UNSURE,
)

_FLAGS = {"active": False, "inactive": True, "terminated": True, "termed": True}  # True: yes means ended
_OF_FLAGS = {"is", "flag", "indicator", "ind", "y", "n", "yn", "employee", "member", "code"}
_YES, _NO = {"y", "yes", "true", "1"}, {"n", "no", "false", "0"}
_FLAG_FIELDS = {"medical_eligibility", "medical_enrollment"}  # they are stored, and give or take no access
_TELLING = {"active", "inactive", "terminated", "termed", "cobra", "retired", "retiree", "waived", "deceased"}
_USUAL_ENDS = ("terminated", "inactive", "deceased")
_MOST_WORDS, _MOST_QUESTIONS = 50, 10


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """One answer: what it does, and what it adds to the mapping."""

    does: str
    mapping: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SuggestionQuestion:
    """A column that the suggestion does not decide about, and the answers that a person may give."""

    column: str
    question: str
    choices: tuple[AnswerChoice, ...]


def add_questions(draft: MappingDraft) -> list[SuggestionQuestion]:
    """A question for each column with a status, by its name or by its words. The mapping holds them as open."""
    sample = draft.sample
    questions = {}
    for position, name in enumerate(sample.names):
        words = Counter(word.casefold() for word in sample.column(position))
        uses = draft.uses.get(position, {}).keys()
        is_flag = bool(uses & _FLAG_FIELDS) and field_named(name) is None
        if is_flag or (not uses and COLUMN_NAME.search(name) and _is_status(name, words)):
            questions[name] = _question(name, words, draft)
    draft.questions = dict.fromkeys([*questions][:_MOST_QUESTIONS], OPEN)
    return [questions[name] for name in draft.questions]


def _is_status(name: str, words: Collection[str]) -> bool:
    if len(name) > LONGEST_NAME:
        return False
    of_name = set(words_of(name))
    if not of_name.isdisjoint(OTHER_STATUS):
        return False
    if not of_name.isdisjoint(STATUS) or _is_flag(of_name):
        return True
    tokens = {token for word in words for token in _tokens(word)}
    return (
        len(words) <= _MOST_WORDS
        and not tokens.isdisjoint(_TELLING)
        and tokens <= STATUS_ENDED | STATUS_UNSURE | STATUS_ACTIVE
    )


def _is_flag(of_name: set[str]) -> bool:
    return not of_name.isdisjoint(_FLAGS) and of_name <= _FLAGS.keys() | _OF_FLAGS


def _tokens(word: str) -> list[str]:
    return re.findall(r"\w+", word)


def _question(name: str, words: Mapping[str, int], draft: MappingDraft) -> SuggestionQuestion:
    ends_by_yes = any(_FLAGS.get(word, False) for word in words_of(name))
    ended_words = STATUS_ENDED | (_YES if ends_by_yes else _NO)
    known = ended_words | STATUS_UNSURE | STATUS_ACTIVE | _YES | _NO
    # Words that are not known may be values of a member: they are counted, and never shown.
    shown = [word for word in words if known.issuperset(_tokens(word))]
    ended = [word for word in shown if not ended_words.isdisjoint(_tokens(word))][:_MOST_WORDS]
    unsure = [word for word in shown if word not in ended and not STATUS_UNSURE.isdisjoint(_tokens(word))]
    unsure = unsure[: _MOST_WORDS - len(ended)]
    question = "It may say who has no access, and no field holds that: rows with any of its words would be members with access."
    if others := len(words) - len(shown):
        question += f" {others} of its {len(words)} words are not known here: look at them too."
    # Where the sample has none, a later file may.
    usual = sorted(ended_words & (_YES | _NO)) if words and words.keys() <= _YES | _NO else [*_USUAL_ENDS]
    choices = [_leave_out(name, ended or usual, words)]
    if unsure:
        choices.append(_leave_out(name, [*ended, *unsure], words))
    return SuggestionQuestion(name, question, (*choices, _unrelated(name, draft)))


def _leave_out(name: str, left_out: list[str], words: Mapping[str, int]) -> AnswerChoice:
    rows = sum(words.get(word, 0) for word in left_out)
    does = (
        f"Leaves out the rows with these words, {rows:,} of those that were looked at: they make no member. A member that "
        "is stored already keeps its access, unless the file is full: a full file ends the members of rows that are left out."
    )
    return AnswerChoice(does, {"skip": [{"column": name, "equals": sorted(left_out)}]})


def _unrelated(name: str, draft: MappingDraft) -> AnswerChoice:
    at = draft.column_of("expiry_date")
    ends = "nothing ends it" if at is None else f"only the date in {draft.sample.names[at]} ends it"
    does = f"Says that the column says nothing about access. Every row is a member with access; {ends}."
    return AnswerChoice(does, {"questions": {name: UNRELATED}})
