"""What the page of an upload's columns shows of each column, and what its form says of it: never a
value, only shapes (pure).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.eligibility.fields import FIELDS, REQUIRED
from frontdesk.mapping.suggest.accepted import (
    DATES,
    answer_of,
    any_day_first,
    double_claims,
    fields_of,
    is_open,
    reads_day_first,
)
from frontdesk.mapping.suggest.date_shapes import has_two_orders
from frontdesk.mapping.suggest.names import LONGEST_NAME
from frontdesk.mapping.suggest.sample import SAMPLE_ROWS
from frontdesk.mapping.suggest.suggestion import REPEATED
from frontdesk.mapping.values import fold_name, mappable_field
from frontdesk.text import count_text

MOST_SELECTS = 40  # each has the names of all fields: the others take a text
SURE = 0.8  # a confidence below it is a guess
OWN = "own"  # the answer that a rule of the mapping gives, which is none of the choices
DAY_FIRST = "day"
MONTH_FIRST = "month"
KEY = "external_id"
OPTIONS = tuple(name for name in FIELDS if name != "metadata")
_SHAPES_SHOWN = 2

Json = Mapping[str, Any]


class ColumnQuestion(NamedTuple):
    """A question about a column. `choices` are the values and texts of its radio buttons, `chosen` is
    the value of the pressed one, "" for none.
    """

    text: str
    choices: Sequence[tuple[str, str]]
    chosen: str
    fault: str


class ColumnRow(NamedTuple):
    """A column. `fields` are those that the mapping reads from it, `chosen` is the text of its field in
    the form; `order` is that of its dates, "" where their format has only one; `is_date`: it holds
    dates by now, else it only looks so. `note` says why it is
    not used. `has_select`: else its field takes a text. A column that no mapping can name can't be
    chosen (`is_named`).
    """

    number: int
    name: str
    filled: int
    shapes: Sequence[str]
    words: int
    fields: Sequence[str]
    chosen: str
    order: str
    is_date: bool
    note: str
    fault: str
    is_unsure: bool
    is_named: bool
    has_select: bool
    question: ColumnQuestion | None


class Choices(NamedTuple):
    """What the form says: by column its field, whether its day stands first, and the answer."""

    columns: Mapping[str, str | None]
    day_first: Mapping[str, bool]
    answers: Mapping[str, int]


class WrongChoices(Exception):
    """The form can't be taken. `faults` are sentences by place: the name of the form's field."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__()
        self.faults = faults


def column_rows(
    suggestion: Json, mapping: Json, typed: Mapping[str, str], faults: Mapping[str, str]
) -> list[ColumnRow]:
    """The columns of the file as the mapping reads them, with what was typed instead."""
    questions = {each["column"]: each for each in suggestion["questions"]}
    named = _named(suggestion)
    rows = []
    selects = sum(_is_looked_at(each, mapping, questions) for each in suggestion["columns"])
    for number, each in enumerate(suggestion["columns"]):
        name = each["column"]
        fields = fields_of(mapping, name) if name in named else ()
        has_select = _is_looked_at(each, mapping, questions)
        if not has_select and selects < MOST_SELECTS:
            has_select = True
            selects += 1
        is_suggested = bool(fields) and set(fields) == set(each["fields"])
        asked = questions.get(name)
        row = ColumnRow(
            number=number,
            name=name,
            filled=each["filled"],
            shapes=each["samples"][:_SHAPES_SHOWN],
            words=each["distinct"] if asked else 0,
            fields=fields,
            chosen=typed.get(f"c{number}", fields[0] if fields else ""),
            order=typed.get(f"d{number}", _order_of(mapping, each) if name in named else ""),
            is_date=bool({*DATES}.intersection(fields)),
            note=_note_of(each) if not fields else "",
            fault=faults.get(f"c{number}", ""),
            is_unsure=is_suggested and each["confidence"] < SURE,
            is_named=name in named,
            has_select=has_select,
            question=_question(asked, mapping, number, typed, faults) if asked else None,
        )
        rows.append(row)
    return rows


def read_choices(suggestion: Json, mapping: Json, typed: Mapping[str, str]) -> Choices:
    """What the form says of the columns. Raises WrongChoices: a field that there is none of, one that
    two columns have, a question without an answer, no column with the key.
    """
    faults: dict[str, str] = {}
    columns: dict[str, str | None] = {}
    day_first: dict[str, bool] = {}
    numbers: dict[str, int] = {}
    named = _named(suggestion)
    for number, each in enumerate(suggestion["columns"]):
        name = each["column"]
        if name not in named or f"c{number}" not in typed:
            continue
        numbers[name] = number
        text = typed[f"c{number}"].strip()
        fields = fields_of(mapping, name)
        field = text if text in fields else mappable_field(text) if text else None
        if text and field is None:
            faults[f"c{number}"] = "There is no such field. Choose one of the list."
        columns[name] = field
        if f"d{number}" in typed:
            day_first[name] = typed[f"d{number}"] == DAY_FIRST
    for field, claimed in double_claims(mapping, columns).items():
        for name in claimed:
            others = ", ".join(f"“{other}”" for other in claimed if other != name)
            faults[f"c{numbers[name]}"] = f"{field} is also chosen for {others}. Choose one column."
    answers = _answers(suggestion, mapping, typed, faults)
    if KEY in missing_fields(suggestion, mapping, typed):
        faults[KEY] = (
            f"Choose the column that holds the {KEY}: it says which member a row is about."
        )
    if faults:
        raise WrongChoices(faults)
    return Choices(columns, day_first, answers)


def missing_fields(suggestion: Json, mapping: Json, typed: Mapping[str, str]) -> list[str]:
    """The fields that a new member needs and that neither a column nor a rule of the mapping gives."""
    held = {name for name, rule in mapping.get("fields", {}).items() if "constant" in rule}
    for number, each in enumerate(suggestion["columns"]):
        fields = fields_of(mapping, each["column"])
        text = typed.get(f"c{number}")
        if text is None or text in fields:
            held |= {*fields}
        elif field := mappable_field(text):
            held.add(field)
    return [name for name in REQUIRED if name not in held]


class Trial(NamedTuple):
    """What came of the first rows by the suggested mapping, in sentences."""

    summary: str
    faults: Sequence[str]


def trial_words(suggestion: Json, missing: Sequence[str]) -> Trial:
    """How many of the first rows are good by the suggestion, and what is wrong with the others. A field
    that the suggestion lacked is left out once it is chosen: `missing` are those that lack now.
    """
    chosen = {*missing_fields(suggestion, suggestion["mapping"], {})} - {*missing}
    looked_at = suggestion["rows"]
    left_out = suggestion["skipped_rows"]
    bad = suggestion["refused_rows"]
    first = "the first" if looked_at >= SAMPLE_ROWS else "its"
    good = _number_are(looked_at - left_out - bad)
    summary = f"Of {first} {count_text(looked_at, 'row')} {good} good."
    if left_out:
        summary += f" {_number_are(left_out)} left out: totals, or lines without a person."
    refused = [each for each in suggestion["refused"] if each["field"] not in chosen]
    return Trial(summary, [_fault_words(each) for each in refused])


def _number_are(number: int) -> str:
    return f"{number:,} {'is' if number == 1 else 'are'}"


def _fault_words(fault: Json) -> str:
    rows = fault["rows"]
    field = fault["field"]
    if fault["code"] == codes.faults.REQUIRED:
        lack = "lacks" if rows == 1 else "lack"
        return f"{rows:,} {lack} {field}: choose a column for it, or ask the sender."
    places = (Where.FAULT, Where.ROW)
    found = (codes.find(where, fault["code"]) for where in places)
    sentence = next((entry.sentence for entry in found if entry), fault["code"])
    return f"{rows:,} in {field}: {sentence}"


def _named(suggestion: Json) -> set[str]:
    """The columns that a mapping can name: with a name that is no text, and no other column's."""
    names = [each["column"] for each in suggestion["columns"]]
    folded = [fold_name(name) for name in names]
    return {
        name
        for name, own in zip(names, folded, strict=True)
        if own and len(name) <= LONGEST_NAME and folded.count(own) == 1
    }


def _note_of(column: Json) -> str:
    note: str = column["note"] or ""
    if note.startswith(REPEATED):
        return f"{REPEATED} If this one holds a field of its own, choose it."
    return note


def _is_looked_at(column: Json, mapping: Json, questions: Json) -> bool:
    """Whether a person has to look at the column: it is used, asked about, or almost used."""
    name = column["column"]
    return bool(name in questions or column["note"] or column["fields"] or fields_of(mapping, name))


def _order_of(mapping: Json, column: Json) -> str:
    """The order of the column's dates; of one that only looks like dates, that of the file's others."""
    is_day_first = reads_day_first(mapping, column["column"])
    if is_day_first is None:
        if not has_two_orders(column["samples"]):
            return ""
        is_day_first = any_day_first(mapping)
    return DAY_FIRST if is_day_first else MONTH_FIRST


def _question(
    asked: Json, mapping: Json, number: int, typed: Mapping[str, str], faults: Mapping[str, str]
) -> ColumnQuestion:
    choices = [(str(at), choice["does"]) for at, choice in enumerate(asked["choices"])]
    answer = answer_of(mapping, asked)
    chosen = "" if answer is None else str(answer)
    if answer is None and not is_open(mapping, asked):
        choices.append((OWN, "As the mapping says now, by rules of its own."))
        chosen = OWN
    place = f"q{number}"
    return ColumnQuestion(
        asked["question"], choices, typed.get(place, chosen), faults.get(place, "")
    )


def _answers(
    suggestion: Json, mapping: Json, typed: Mapping[str, str], faults: dict[str, str]
) -> dict[str, int]:
    """The answers by column. Adds to `faults` the questions without one."""
    answers: dict[str, int] = {}
    numbers = {each["column"]: at for at, each in enumerate(suggestion["columns"])}
    for asked in suggestion["questions"]:
        place = f"q{numbers[asked['column']]}"
        text = typed.get(place, "")
        if text == OWN and not is_open(mapping, asked):
            continue
        if text.isascii() and text.isdecimal() and int(text[:3]) < len(asked["choices"]):
            answers[asked["column"]] = int(text[:3])
        else:
            faults[place] = "Answer this question: it says who has access."
    return answers
