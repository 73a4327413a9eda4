"""The rows of a sample that are no members: totals, other coverages, and those of a status, about which a person is asked
(docs/file-formats.md, Answer its questions)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from frontdesk.mapping.parser import UNRELATED
from frontdesk.mapping.suggest.columns import MappingDraft
from frontdesk.mapping.suggest.names import (
    COVERAGE_LINE,
    LONGEST_NAME,
    OTHER_STATUS,
    STATUS_ACTIVE,
    STATUS_ENDED,
    STATUS_NEVER,
    STATUS_UNSURE,
    meanings,
    words_of,
)
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.values import COLUMN_NAME, field_named

_TOTALS = ("total", "grand total", "sum", "record count", "end of")
_MEDICAL = re.compile(r"\b(?:med|medical|health|hlt|hmo|ppo|pos|epo|hdhp|mm)\b")
_OTHER = re.compile(
    r"\b(?:den|dent|dental|vis|vision|eye|life|add|ad d|std|ltd|disability|fsa|hsa|dcfsa|hra|accident|critical|hospital|legal|pet"
    r"|eap|cancer|rx|drug|pharmacy|hearing|401k|retirement|commuter|voluntary|wellness|identity theft)\b"
)
_FLAGS = {"active": False, "inactive": True, "terminated": True, "termed": True}  # True: yes means ended
_OF_FLAGS = {"is", "flag", "indicator", "ind", "y", "n", "yn", "employee", "member", "code", *_FLAGS}
_YES, _NO = {"y", "yes", "true", "1"}, {"n", "no", "false", "0"}
_FLAG_FIELDS = {"medical_eligibility", "medical_enrollment"}  # they are stored, and give or take no access
_TELLING = {"active", "inactive", "terminated", "termed", "cobra", "retired", "retiree", "waived", "deceased"}
_USUAL_ENDS = ["terminated", "inactive", "deceased"]  # where the sample has none, a later file may
_MOST_WORDS, _MOST_QUESTIONS = 50, 10


def other_lines(sample: Sample) -> tuple[dict[str, Any], Sample] | None:
    """A rule that leaves out the rows of other coverages than the medical one, and the sample without them; None if the file has
    no such rows. Every word of the column must be known: another one may be medical.
    """
    for position, name in enumerate(sample.names):
        is_such = COVERAGE_LINE in meanings(name)
        words = {word.casefold() for word in sample.column(position)} if is_such else set()
        plain = {word: " ".join(re.findall("[a-z0-9]+", word)) for word in words}
        medical = {word for word in words if _MEDICAL.search(plain[word])}
        others = {word for word in words - medical if _OTHER.search(plain[word])}
        if medical and others and words == medical | others and len(others) <= _MOST_WORDS:
            rows = [row for row in sample.rows if row[position].strip().casefold() not in others]
            return {"column": name, "equals": sorted(others)}, replace(sample, rows=rows)
    return None


def totals(draft: MappingDraft) -> list[dict[str, Any]]:
    """Rules that leave out lines with a total or without an identifier, where all such rows are half empty."""
    sample, key = draft.sample, draft.column_of("external_id")
    if key is None or not sample.rows:
        return []
    rows = [*sample.rows, *sample.odd_rows]
    half = median(map(_filled, sample.rows)) / 2
    rules: list[dict[str, Any]] = []
    for column in dict.fromkeys((key, 0)):
        begun = {
            word: [
                _filled(row) <= half
                for row in rows
                if column < len(row) and row[column].strip().casefold().startswith(word)
            ]
            for word in _TOTALS
        }
        if words := [word for word, are_poor in begun.items() if are_poor and all(are_poor)]:
            rules.append({"column": sample.names[column], "starts_with": words})
    blank = [row for row in sample.rows if not row[key].strip()]
    if blank and max(map(_filled, blank)) <= half:
        rules.append({"column": sample.names[key], "equals": ""})
    return rules


def _filled(row: Sequence[str]) -> int:
    return sum(map(bool, map(str.strip, row)))


def status_questions(draft: MappingDraft) -> list[dict[str, Any]]:
    """A question for each column with a status, by its name or by its words: the mapping can't be used before. As JSON: the
    column, the question, and as choices what an answer does and what it adds to the mapping."""
    questions = []
    for position, name in enumerate(draft.sample.names):
        words = Counter(word.casefold() for word in draft.sample.column(position))
        uses = draft.uses(position).keys()
        is_flag = bool(uses & _FLAG_FIELDS) and field_named(name) is None
        if is_flag or (not uses and COLUMN_NAME.search(name) and _is_status(name, words)):
            questions.append(_status_question(name, words, draft))
    return questions[:_MOST_QUESTIONS]


def _is_status(name: str, words: Collection[str]) -> bool:
    of_name = {*words_of(name)} if len(name) <= LONGEST_NAME else OTHER_STATUS
    if not of_name.isdisjoint(OTHER_STATUS):
        return False
    if "status" in of_name or (not of_name.isdisjoint(_FLAGS) and of_name <= _OF_FLAGS):
        return True
    tokens = {token for word in words for token in _tokens(word)}
    known = STATUS_ENDED | STATUS_NEVER | STATUS_UNSURE | STATUS_ACTIVE
    return len(words) <= _MOST_WORDS and not tokens.isdisjoint(_TELLING) and tokens <= known


def _tokens(word: str) -> set[str]:
    return set(re.findall(r"\w+", word))


def _status_question(name: str, words: Mapping[str, int], draft: MappingDraft) -> dict[str, Any]:
    flags = [_FLAGS[word] for word in words_of(name) if word in _FLAGS]
    bad = _YES if any(flags) else _NO
    # `Active: no` has ended; `Eligible: no` never began.
    ends, never_began = STATUS_ENDED | (bad if flags else set()), STATUS_NEVER | (set() if flags else bad)
    known = ends | never_began | STATUS_UNSURE | STATUS_ACTIVE | _YES | _NO
    # Words that are not known may be values of a member: they are counted, and never shown.
    shown = [word for word in words if _tokens(word) <= known][:_MOST_WORDS]
    never = [word for word in shown if _is_never(_tokens(word), never_began)]
    ended = [word for word in shown if word not in never and not ends.isdisjoint(_tokens(word))]
    rest = [word for word in shown if word not in never and word not in ended]
    unsure = [word for word in rest if not STATUS_UNSURE.isdisjoint(_tokens(word))]
    if not ended and not never:
        if words and words.keys() <= _YES | _NO:
            ended, never = ([*bad], []) if flags else ([], [*bad])
        else:
            ended = _USUAL_ENDS
    question = "It may say who has no access, and no field holds that: without a rule, every row is a member with access."
    if unsure:
        question += f" Whether rows with {_listed(unsure)} have access is for you to say."
    if others := len(words) - len(shown):
        question += f" {others} of its {len(words)} words are not known here: look at them too."
    at = draft.column_of("expiry_date")
    day = None if at is None else draft.sample.names[at]
    ends_on = f"only the date in {day} ends it" if day else "nothing ends it"
    does = f"Says that the column says nothing about access. Every row is a member with access; {ends_on}."
    choices = [
        _choice(name, words, day, end=ended, skip=never, others=unsure),
        *([_choice(name, words, day, end=[*ended, *unsure], skip=never)] if unsure else []),
        {"does": does, "mapping": {"questions": {name: UNRELATED}}},
    ]
    return {"column": name, "question": question, "choices": choices}


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in sorted(words))


def _is_never(tokens: set[str], never_began: Collection[str]) -> bool:
    """`Waived`, `Not Eligible`; `Not Active` has ended."""
    is_denied = tokens & {"not", "non"} and tokens & {"eligible", "enrolled", "covered"}
    return bool(is_denied) or not tokens.isdisjoint(never_began)


def _choice(
    name: str,
    words: Mapping[str, int],
    day: str | None,
    *,
    end: Sequence[str],
    skip: Sequence[str],
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """What ends the rows with the words of `end`, on the date in `day`, and leaves out those of `skip`. `others` are words of
    members."""
    on_day = f"on the day in {day}, else on that of the file" if day else "on the day of the file"
    does = {
        "end": f"Ends the members of rows with {{}}, {on_day}.",
        "skip": "Leaves out the rows with {}: they make no member. A member that is stored already keeps its access, unless the "
        "file is full: a full file ends the members of rows that are left out.",
    }
    chosen = {part: given for part, given in (("end", end), ("skip", skip)) if given}
    rows = {part: sum(words.get(word, 0) for word in given) for part, given in chosen.items()}
    said = [
        does[part].format(f"{_listed(given)} ({rows[part]:,} of the rows that were looked at)")
        for part, given in chosen.items()
    ]
    some = f" ({_listed(others)}, …)" if others else ""
    return {
        "does": " ".join([*said, f"Rows with any other word{some} are members with access."]),
        "mapping": {part: [{"column": name, "equals": sorted(given)}] for part, given in chosen.items()},
    }
