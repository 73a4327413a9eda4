"""The rows of a sample that are no members: totals, other coverages, and those of a status, about which a person is asked
(docs/file-formats.md, Answer its questions)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from frontdesk.mapping.parser import UNRELATED
from frontdesk.mapping.suggest import names
from frontdesk.mapping.suggest.columns import MappingDraft
from frontdesk.mapping.suggest.names import LONGEST_NAME, meanings, words_of
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.values import field_named, fold_name

_TOTALS = ("total", "grand total", "record count", "end of")
_MEDICAL = re.compile(r"\b(?:med|medical|health|hlt|hmo|ppo|pos|epo|hdhp|mm)\b")
_OTHER = re.compile(
    r"\b(?:den|dent|dental|vis|vision|eye|life|add|ad d|std|ltd|disability|fsa|hsa|dcfsa|hra|accident|critical|hospital|legal|pet"
    r"|eap|cancer|rx|drug|pharmacy|hearing|401k|retirement|commuter|voluntary|wellness|identity theft)\b"
)
_YES, _NO = {"y", "yes", "true", "1"}, {"n", "no", "false", "0"}
_ENDED = {"inactive", "terminated", "termed"}  # in the name of a column of yes and no: yes means ended
_OF_STATUS = {"status", "active", *_ENDED}
_FLAG_FIELDS = {"medical_eligibility", "medical_enrollment"}  # they are stored, and give or take no access
_TELLING = {"active", "inactive", "terminated", "termed", "cobra", "retired", "retiree", "waived", "deceased"}
_USUAL_ENDS = ["deceased", "inactive", "terminated"]  # where the sample has none, a later file may
_MOST_WORDS, _MOST_QUESTIONS = 50, 10


def other_lines(sample: Sample) -> tuple[dict[str, Any], Sample] | None:
    """A rule that leaves out the rows of other coverages than the medical one, and the sample without them; None if the file has
    no such rows. Every word of the column must be known: another one may be medical.
    """
    for position, name in enumerate(sample.names):
        is_such = names.COVERAGE_LINE in meanings(name)
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
    rows = [(row, sum(map(bool, map(str.strip, row)))) for row in (*sample.rows, *sample.odd_rows)]
    half = median(filled for _, filled in rows) / 2
    rules: list[dict[str, Any]] = []
    for column in dict.fromkeys((key, 0)):
        cells = [(row[column].strip().casefold(), filled) for row, filled in rows if column < len(row)]
        of_totals = [filled for cell, filled in cells if cell.startswith(_TOTALS)]
        if of_totals and max(of_totals) <= half:
            rules.append({"column": sample.names[column], "starts_with": [*_TOTALS]})
        blank = [filled for cell, filled in cells if column == key and not cell]
        if blank and max(blank) <= half:
            rules.append({"column": sample.names[key], "equals": ""})
    return rules


def status_questions(draft: MappingDraft) -> list[dict[str, Any]]:
    """A question for each column with a status, by its name or by its words: the mapping can't be used before. As JSON: the
    column, the question, and as choices what an answer does and what it adds to the mapping."""
    questions = []
    for position, name in enumerate(draft.sample.names):
        words = Counter(map(str.casefold, draft.sample.column(position)))
        uses = draft.uses(position).keys()
        is_flag = bool(uses & _FLAG_FIELDS) and field_named(name) is None
        can_be_named = bool(fold_name(name)) and len(name) <= LONGEST_NAME
        if is_flag or (not uses and can_be_named and _is_status(name, words)):
            questions.append(_status_question(name, words, draft))
    return questions[:_MOST_QUESTIONS]


def _is_status(name: str, words: Collection[str]) -> bool:
    of_name = {*words_of(name)}
    tokens = {token for word in words for token in _tokens(word)}
    are_known = (
        tokens <= names.ENDED_WORDS | names.UNSURE_WORDS | names.ACTIVE_WORDS and len(words) <= _MOST_WORDS
    )
    is_such = not of_name.isdisjoint(_OF_STATUS) or (are_known and not tokens.isdisjoint(_TELLING))
    return is_such and of_name.isdisjoint(names.OTHER_STATUS)


def _tokens(word: str) -> set[str]:
    return set(re.findall(r"\w+", word))


def _status_question(name: str, words: Mapping[str, int], draft: MappingDraft) -> dict[str, Any]:
    """Proposes to end the members of the words that mean so, else of those that usually do."""
    bad = _NO if _ENDED.isdisjoint(words_of(name)) else _YES
    # Words that are not known may be values of a member: they are counted, and never shown.
    known = names.ENDED_WORDS.union(names.UNSURE_WORDS, names.ACTIVE_WORDS, _YES, _NO)
    shown = {word: tokens for word in words if (tokens := _tokens(word)) <= known}
    ended = sorted(word for word, tokens in shown.items() if tokens & (names.ENDED_WORDS | bad))[:_MOST_WORDS]
    unsure = _listed(
        word for word, tokens in shown.items() if tokens & names.UNSURE_WORDS and word not in ended
    )
    if not ended:
        ended = sorted(bad) if words and words.keys() <= _YES | _NO else _USUAL_ENDS
    question = "It may say who has no access, and no field holds that: without a rule, every row is a member with access."
    if unsure:
        question += f" Whether rows with {unsure} have access is for you to say."
    if others := len(words) - len(shown):
        question += f" {others} of its {len(words)} words are not known here: look at them too."
    at = draft.column_of("expiry_date")
    day = None if at is None else f"on the day in {draft.sample.names[at]}, else on that of the file"
    ends = (
        f"Ends the members of rows with {_listed(ended)} ({sum(words.get(word, 0) for word in ended):,} of the rows that were "
        f"looked at), {day or 'on the day of the file'}. Rows with any other word are members with access."
    )
    unrelated = "Says that the column says nothing about access. Every row is a member with access until its expiry_date."
    choices = [
        {"does": ends, "mapping": {"end": [{"column": name, "equals": ended}]}},
        {"does": unrelated, "mapping": {"questions": {name: UNRELATED}}},
    ]
    return {"column": name, "question": question, "choices": choices}


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in sorted(words)[:_MOST_WORDS])
