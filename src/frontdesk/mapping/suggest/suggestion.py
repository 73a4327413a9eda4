"""Suggests a mapping for a file with names of its own: what its columns may hold, how sure that is,
and what would still be refused (docs/file-formats.md). Nothing is stored, and no value of a member
is in the answer.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from frontdesk.eligibility.fields import FIELDS
from frontdesk.formats.model import Format
from frontdesk.formats.source import open_source
from frontdesk.mapping.parser import OPEN, UNRELATED
from frontdesk.mapping.suggest import names
from frontdesk.mapping.suggest.columns import MappingDraft, draft_mapping
from frontdesk.mapping.suggest.names import meanings, words_of
from frontdesk.mapping.suggest.sample import Sample, masked, read_sample
from frontdesk.mapping.suggest.trial import try_mapping
from frontdesk.mapping.values import FAMILY, field_named
from frontdesk.mapping.x12 import suggest_x12

if TYPE_CHECKING:
    from _typeshed import SupportsRead

# What the suggestion for an 834 has none of.
_OF_TABLES = {"columns": [], "questions": [], "refused_rows": 0, "skipped_rows": 0, "refused": []}

_TOTALS = ("total", "grand total", "record count", "end of")
_MEDICAL = re.compile(r"\b(?:med|medical|health|hlt|hmo|ppo|pos|epo|hdhp|mm)\b")
_OTHER = re.compile(
    r"\b(?:den|dent|dental|vis|vision|eye|life|add|ad d|std|ltd|disability|fsa|hsa|dcfsa|hra|"
    r"accident|critical|hospital|legal|pet"
    r"|eap|cancer|rx|drug|pharmacy|hearing|401k|retirement|commuter|voluntary|wellness|identity theft)\b"
)
# Words beside these in the name of a coverage. Any other may be a value of a member, which no suggestion
# shows.
_COVERAGE_WORDS = (
    "plan insurance ins coverage benefit benefits care group policy rider option term short long basic "
    "base low high plus core standard enhanced premium buy up voluntary optional supplemental limited "
    "purpose flexible spending savings account reimbursement arrangement employee employer paid only "
    "and or of the ppo hmo dhmo dppo epo hdhp aetna anthem bcbs cigna delta eyemed humana metlife uhc "
    "unum vsp child children spouse dependent family"
)
_OF_COVERAGE = frozenset(_COVERAGE_WORDS.split())
_YES = {"y", "yes", "true", "1"}
_NO = {"n", "no", "false", "0"}
# in the name of a column of yes and no: yes means ended
_ENDED = {"inactive", "terminated", "termed"}
_OF_STATUS = {"status", "action", "active", *_ENDED}
# they are stored, and give or take no access
_FLAG_FIELDS = {"medical_eligibility", "medical_enrollment"}
_TELLING = {
    "active",
    "inactive",
    "terminated",
    "termed",
    "cobra",
    "retired",
    "retiree",
    "waived",
    "deceased",
}
_WAIVED = {"waive", "waived", "waiver"}
_OTHER_PEOPLE = {"dependent", "spouse", "child"}
_OF_PERSON = {"name", "first", "last", "birth"}
_ROW_EACH = "ask the sender for a row for each person, whose own columns say who it is."
_UNRELATED = (
    "Says that the column says nothing about access. Every row is a member with access until its "
    "expiry_date."
)
REPEATED = "Another column has this name."
_USUAL_ENDS = ["deceased", "inactive", "terminated"]  # where the sample has none, a later file may
_MOST_WORDS = 50
_MOST_QUESTIONS = 10


def suggest_mapping(
    stream: "SupportsRead[bytes]",
    *,
    today: str,
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
    is_cut: bool = False,
    sheet: str | None = None,
) -> dict[str, Any]:
    """A mapping for the file, of a table from its first 1,000 rows, as JSON (docs/interface.md);
    `is_cut` says that the stream is a part of it, `sheet` names a sheet of a workbook. The mapping
    can be stored once its `questions` are answered.

    `today` is `YYYY-MM-DD`. Raises Unreadable for what has no header, and as the readers do.
    """
    content, source, found = open_source(stream, format, encoding)
    if source is not None and found is Format.X12:
        suggested = suggest_x12(source)
        return _OF_TABLES | {"rows": suggested["people"]} | suggested
    sample = read_sample(content, source, found, is_cut=is_cut, sheet=sheet)
    other, members = _other_lines(sample) or (None, sample)
    draft = draft_mapping(members, year=int(today[:4]))
    questions = _status_questions(draft)
    mapping = _columns_and_fields(draft) | {
        "delimiter": sample.delimiter if sample.delimiter != "," else None,
        "skip": [*filter(None, [other]), *_totals(draft)],
        "sheet": sample.sheet if sheet is not None else None,
    }
    mapping = {name: part for name, part in mapping.items() if part}
    tried = try_mapping(sample, mapping, today)
    asked = {"questions": {each["column"]: OPEN for each in questions}} if questions else {}
    return (tried | _of_sheets(sample)) | {
        "type": "mapping_suggestions",
        "format": sample.format,
        "mapping": mapping | asked,
        "columns": _columns(draft),
        "questions": questions,
    }


def _of_sheets(sample: Sample) -> dict[str, Any]:
    """Of a workbook whose other sheets have values too: that only one is read, and for the console the
    names to choose from.
    """
    if not sample.other_sheets:
        return {}
    reason = (
        f"One sheet of the workbook is read, and {len(sample.other_sheets)} more have rows: `sheet` of "
        "the mapping or of the upload names the one to read."
    )
    sheets = {"read": sample.sheet, "others": [*sample.other_sheets]}
    return {"reasons": [reason], "sheets": sheets}


def _other_lines(sample: Sample) -> tuple[dict[str, Any], Sample] | None:
    """A rule that leaves out the rows of other coverages than the medical one, and the sample
    without them; None if the file has no such rows. Every cell of the column must have a known word:
    another one may be medical. Those that are left out have known words alone: the rule shows them.
    """
    for position, name in enumerate(sample.names):
        is_such = sample.can_be_mapped(position) and names.COVERAGE_LINE in meanings(name)
        words = {word.casefold() for word in sample.column(position)} if is_such else set()
        plain = {word: " ".join(re.findall("[a-z0-9]+", word)) for word in words}
        medical = {word for word in words if _MEDICAL.search(plain[word])}
        others = {word for word in words - medical if _OTHER.search(plain[word])}
        are_shown = all(_is_coverage_alone(plain[word]) for word in others)
        is_known = words == medical | others and len(others) <= _MOST_WORDS
        if medical and others and is_known and are_shown:
            kept = [
                (place, row)
                for place, row in zip(sample.places, sample.rows, strict=True)
                if row[position].strip().casefold() not in others
            ]
            rows = [row for _, row in kept]
            places = [place for place, _ in kept]
            rule = {"column": sample.apart[position], "equals": sorted(others)}
            return rule, replace(sample, rows=rows, places=places)
    return None


def _is_coverage_alone(plain: str) -> bool:
    """Whether the words of a cell are those of other coverages, and of no member."""
    left = _OTHER.sub(" ", plain).split()
    return _OF_COVERAGE.issuperset(left)


def _totals(draft: MappingDraft) -> list[dict[str, Any]]:
    """Rules that leave out lines with a total or without an identifier, where all such rows are
    half empty.
    """
    sample = draft.sample
    key = draft.column_of("external_id")
    if key is None or not sample.rows:
        return []
    rows = [(row, sum(map(bool, map(str.strip, row)))) for row in (*sample.rows, *sample.odd_rows)]
    half = median(filled for _, filled in rows) / 2
    rules: list[dict[str, Any]] = []
    for column in filter(sample.can_be_mapped, dict.fromkeys((key, 0))):
        cells = [
            (row[column].strip().casefold(), filled) for row, filled in rows if column < len(row)
        ]
        of_totals = [filled for cell, filled in cells if cell.startswith(_TOTALS)]
        if of_totals and max(of_totals) <= half:
            rules.append({"column": sample.apart[column], "starts_with": [*_TOTALS]})
        blank = [filled for cell, filled in cells if column == key and not cell]
        if blank and max(blank) <= half:
            rules.append({"column": sample.apart[key], "equals": ""})
    return rules


def _status_questions(draft: MappingDraft) -> list[dict[str, Any]]:
    """A question for each column with a status, by its name or by its words: the mapping can't be
    used before. As JSON: the column, the question, and as choices what an answer does and what it
    adds to the mapping.
    """
    questions = []
    others = [
        apart
        for at, (apart, name) in enumerate(zip(draft.sample.apart, draft.sample.names, strict=True))
        if not draft.uses(at) and _names_other(name)
    ]
    if others:
        choices = [{"does": _UNRELATED, "mapping": {"questions": {others[0]: UNRELATED}}}]
        question = f"{_listed(others)} may hold other people, who would get no access: {_ROW_EACH}"
        questions.append({"column": others[0], "question": question, "choices": choices})
    for position, name in enumerate(draft.sample.names):
        words = Counter(map(str.casefold, draft.sample.column(position)))
        uses = draft.uses(position).keys()
        is_flag = bool(uses & _FLAG_FIELDS) and field_named(name) is None
        can_be_asked = not uses and draft.sample.can_be_mapped(position)
        # A column of chosen plans, with a word for none.
        is_choice = uses <= {"medical_plan_description"} and not _OTHER.search(name.casefold())
        is_waived = (
            is_choice and not _WAIVED.isdisjoint(words) and draft.sample.can_be_mapped(position)
        )
        if is_flag or is_waived or (can_be_asked and _is_status(name, words)):
            questions.append(_status_question(draft.sample.apart[position], words))
    return questions[:_MOST_QUESTIONS]


def _names_other(name: str) -> bool:
    """`Dependent 1 First Name`, `Spouse DOB`: of people beside the one that the row is about."""
    of_name = {*words_of(name)}
    return not of_name.isdisjoint(_OTHER_PEOPLE) and not of_name.isdisjoint(_OF_PERSON)


def _is_status(name: str, words: Collection[str]) -> bool:
    of_name = {*words_of(name)}
    tokens = {token for word in words for token in _tokens(word)}
    are_known = tokens <= names.STATUS_WORDS and len(words) <= _MOST_WORDS
    is_told = not tokens.isdisjoint(_TELLING) or tokens == {"a", "t"}
    is_such = not of_name.isdisjoint(_OF_STATUS) or (are_known and is_told)
    return is_such and of_name.isdisjoint(names.OTHER_STATUS)


def _tokens(word: str) -> set[str]:
    return set(re.findall(r"\w+", word))


def _status_question(name: str, words: Mapping[str, int]) -> dict[str, Any]:
    """Proposes to end the members with words of no access, else with the usual ones."""
    bad = _NO if _ENDED.isdisjoint(words_of(name)) else _YES
    # Unknown words may be values of a member: they are counted, never shown.
    known = names.STATUS_WORDS | _YES | _NO
    shown = {
        word: tokens
        for word, tokens in zip(words, map(_tokens, words), strict=True)
        if tokens <= known
    }
    ended = sorted(word for word, tokens in shown.items() if tokens & (names.ENDED_WORDS | bad))[
        :_MOST_WORDS
    ]
    unsure = [word for word in shown.keys() - {*ended} if shown[word] & names.UNSURE_WORDS]
    if not ended:
        ended = sorted(bad) if words and words.keys() <= _YES | _NO else _USUAL_ENDS
    question = (
        "It may say who has no access, and no field holds that: without a rule, every row is a "
        "member with access."
    )
    if unsure:
        question += f" Whether rows with {_listed(unsure)} have access is for you to say."
    if others := len(words) - len(shown):
        question += f" {others} of its {len(words)} words are not known here: look at them too."
    times = sum(words.get(word, 0) for word in ended)
    ends = (
        f"Ends the members of rows with {_listed(ended)} ({times:,} of the rows that were looked "
        "at), on the row's expiry_date, else on the day of the file. Rows with any other word "
        "are members with access."
    )
    choices = [{"does": ends, "mapping": {"end": [{"column": name, "equals": ended}]}}]
    if unsure:
        both = sorted({*ended, *unsure})[:_MOST_WORDS]
        does = f"Ends those with {_listed(unsure)} as well."
        choices.append({"does": does, "mapping": {"end": [{"column": name, "equals": both}]}})
    choices.append({"does": _UNRELATED, "mapping": {"questions": {name: UNRELATED}}})
    return {"column": name, "question": question, "choices": choices}


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in sorted(words)[:_MOST_WORDS])


def _columns_and_fields(draft: MappingDraft) -> dict[str, Any]:
    """Names alone in `columns`, what needs work in `fields`. A column with the name of a field
    needs neither, unless the field is another one, or another column has the same name.
    """
    columns_of = draft.sample.apart
    own = [field_named(name) for name in columns_of]
    columns: dict[str, str | None] = {
        columns_of[at]: None for at in draft.notes if own[at] in FIELDS
    }
    columns |= {
        columns_of[at]: None
        for at, name in enumerate(draft.sample.names)
        if draft.sample.is_repeated(at) and field_named(name) and not draft.uses(at)
    }
    fields: dict[str, Any] = {}
    for target in sorted(draft.fields, key=[*FIELDS, FAMILY].index):
        found = draft.fields[target]
        [name, *others] = (columns_of[at] for at in found.columns)
        held = own[found.columns[0]]
        is_plain = not (found.rule or others or target == FAMILY)
        if is_plain and held is None and name not in columns and target not in own:
            columns[name] = target
        elif not (is_plain and held == target):
            fields[target] = {"column": [name, *others] if others else name} | found.rule
    return {"columns": columns, "fields": fields}


def _note_on_repeated(sample: Sample, at: int) -> str | None:
    if not (sample.is_repeated(at) and sample.can_be_mapped(at) and meanings(sample.names[at])):
        return None
    example = json.dumps({"columns": {sample.apart[at]: "…"}}, ensure_ascii=False)
    return f"{REPEATED} If this one holds a field of its own, name that: {example}."


def _columns(draft: MappingDraft) -> list[dict[str, Any]]:
    """What is suggested for each column, with the percent of its cells that are filled, the number
    of its distinct values, and their shapes; `note` says why a column is not used although it has the
    name of a field.
    """
    sample = draft.sample
    real = frozenset(cell.strip() for row in (*sample.rows, *sample.odd_rows) for cell in row)
    columns = []
    for at, name in enumerate(sample.apart):
        uses = draft.uses(at)
        cells = sample.column(at)
        column = {
            "column": name,
            "fields": [*uses],
            "confidence": max(uses.values(), default=0.0),
            "filled": 100 * len(cells) // max(len(sample.rows), 1),
            "distinct": len({*map(str.casefold, cells)}),
            "samples": masked(cells, real),
            "note": None if uses else draft.notes.get(at) or _note_on_repeated(sample, at),
        }
        columns.append(column)
    return columns
