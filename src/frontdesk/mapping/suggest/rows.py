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
    STATUS_WORDS,
    meanings,
    words_of,
)
from frontdesk.mapping.suggest.sample import Sample
from frontdesk.mapping.values import field_named, fold_name

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
_WAIVED = {"waive", "waived", "waiver"}
_USUAL_ENDS = ["deceased", "inactive", "terminated"]  # where the sample has none, a later file may
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
    names, rows, key = draft.sample.names, draft.sample.rows, draft.column_of("external_id")
    if key is None or not rows:
        return []
    half = median(map(_filled, rows)) / 2
    rules: list[dict[str, Any]] = []
    for column in dict.fromkeys((key, 0)):
        cells = [
            (row[column].strip().casefold(), _filled(row) <= half)
            for row in (*rows, *draft.sample.odd_rows)
            if column < len(row)
        ]
        begun = {word: {is_poor for cell, is_poor in cells if cell.startswith(word)} for word in _TOTALS}
        if words := [word for word, are_poor in begun.items() if are_poor == {True}]:
            rules.append({"column": names[column], "starts_with": words})
    blank = [_filled(row) <= half for row in rows if not row[key].strip()]
    return [*rules, {"column": names[key], "equals": ""}] if blank and all(blank) else rules


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
        # Plans that members chose, and those who chose none.
        is_choice = uses <= {"medical_plan_description"} and not _OTHER.search(name.casefold())
        if (
            is_flag
            or (is_choice and not _WAIVED.isdisjoint(words))
            or (not uses and fold_name(name) and len(name) <= LONGEST_NAME and _is_status(name, words))
        ):
            questions.append(_status_question(name, words, draft))
    return questions[:_MOST_QUESTIONS]


def _is_status(name: str, words: Collection[str]) -> bool:
    of_name = {*words_of(name)}
    if not of_name.isdisjoint(OTHER_STATUS):
        return False
    if not of_name.isdisjoint({"status", "action"}) or (
        not of_name.isdisjoint(_FLAGS) and of_name <= _OF_FLAGS
    ):
        return True
    tokens = {token for word in words for token in _tokens(word)}
    known = tokens <= frozenset().union(*STATUS_WORDS.values())
    return known and len(words) <= _MOST_WORDS and not tokens.isdisjoint(_TELLING)


def _tokens(word: str) -> set[str]:
    return set(re.findall(r"\w+", word))


def _status_question(name: str, words: Mapping[str, int], draft: MappingDraft) -> dict[str, Any]:
    flags = [_FLAGS[word] for word in words_of(name) if word in _FLAGS]
    # `Active: no` has ended; `Eligible: no` never began.
    gone, bad = "end" if flags else "skip", _YES if any(flags) else _NO
    status = STATUS_WORDS | {gone: STATUS_WORDS[gone] | bad}
    known = _YES.union(_NO, *status.values())
    # Words that are not known may be values of a member: they are counted, and never shown.
    shown = [word for word in words if _tokens(word) <= known][:_MOST_WORDS]
    parts = {kind: [word for word in shown if _kind(_tokens(word), status) == kind] for kind in status}
    if not parts["end"] and not parts["skip"]:
        is_flag = words and words.keys() <= _YES | _NO
        parts |= {gone: [*bad]} if is_flag else {"end": _USUAL_ENDS}
    unsure = parts["unsure"]
    question = "It may say who has no access, and no field holds that: without a rule, every row is a member with access."
    if unsure:
        question += f" Whether rows with {_listed(unsure)} have access is for you to say."
    if others := len(words) - len(shown):
        question += f" {others} of its {len(words)} words are not known here: look at them too."
    at = draft.column_of("expiry_date")
    day = "" if at is None else draft.sample.names[at]
    ends_on = f"only the date in {day} ends it" if day else "nothing ends it"
    does = f"Says that the column says nothing about access. Every row is a member with access; {ends_on}."
    choices = [
        _choice(name, words, day, parts),
        *(
            [_choice(name, words, day, parts | {"end": parts["end"] + unsure, "unsure": []})]
            if unsure
            else []
        ),
        {"does": does, "mapping": {"questions": {name: UNRELATED}}},
    ]
    return {"column": name, "question": question, "choices": choices}


def _kind(tokens: set[str], status: Mapping[str, frozenset[str]]) -> str:
    """What a word says: `Waived` and `Not Eligible` that there never was access, `Not Active` that it has ended."""
    if tokens & {"not", "non"} and tokens & {"eligible", "enrolled", "covered"}:
        return "skip"
    return next((kind for kind, words in status.items() if not words.isdisjoint(tokens)), "")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in sorted(words))


def _choice(
    name: str, words: Mapping[str, int], day: str, parts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """What ends the rows with the words of `end`, on the date in `day`, and leaves out those of `skip`."""
    chosen = {part: sorted(parts[part]) for part in ("end", "skip") if parts[part]}
    rows = {part: sum(words.get(word, 0) for word in chosen[part]) for part in chosen}
    told = {
        part: f"{_listed(chosen[part])} ({rows[part]:,} of the rows that were looked at)" for part in chosen
    }
    on_day = f"on the day in {day}, else on that of the file" if day else "on the day of the file"
    does = [f"Ends the members of rows with {told['end']}, {on_day}."] if "end" in told else []
    if "skip" in told:
        does.append(
            f"Leaves out the rows with {told['skip']}: they make no member. A member that is stored already keeps its access, "
            "unless the file is full: a full file ends the members of rows that are left out."
        )
    some = f" ({_listed(parts['unsure'])}, …)" if parts["unsure"] else ""
    does.append(f"Rows with any other word{some} are members with access.")
    mapping = {part: [{"column": name, "equals": chosen[part]}] for part in chosen}
    return {"does": " ".join(does), "mapping": mapping}
