"""The JSON Schema of a mapping of eligibility files. What it takes is what the parser takes (`files.mapping`), but for four
rules: a date of `open` is a real one, no two names of columns, nor two words, are the same once
letter case and spaces are taken away, and an open question is taken with a rule for its column in `end` or `skip`."""

import re
from typing import Any

from frontdesk.eligibility.fields import FIELDS
from frontdesk.files.dates import DATE_FORMAT, EXCEL_SERIAL
from frontdesk.files.mapping import DELIMITERS, LONGEST_SHEET_NAME, OPEN, PLAIN, SEARCHED_ROWS, UNRELATED
from frontdesk.files.mapping_834 import (
    COUNTS_WORDS,
    EVERY_LINE,
    FAMILY_WORDS,
    LONGEST_WAY,
    MOST_ALTERNATIVES,
    REFERENCE,
    SOURCES,
    VERIFY_WORDS,
    WAY,
)
from frontdesk.files.names import COLUMN_NAME, METADATA_FIELD
from frontdesk.files.rules import (
    FAMILY,
    LONGEST_JOIN,
    LONGEST_PAD,
    LONGEST_VALUE,
    MOST_FORMATS,
    MOST_JOINED,
    MOST_ROW_RULES,
    MOST_RULES,
    MOST_WORDS,
    NAME_PARTS,
    PLAN,
)

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NOT_BLANK: Schema = {"type": "string", "pattern": r"\S"}
_VALUE: Schema = {"type": "string", "maxLength": LONGEST_VALUE}
_COLUMN: Schema = {"type": "string", "pattern": COLUMN_NAME.pattern}
_LONG_YEARS = {"pattern": "^(?:[^Y]*YYYY[^Y]*|[^Y]*)$"}


def _whole(pattern: re.Pattern[str], *others: str) -> Schema:
    return {"type": "string", "pattern": f"^(?:{'|'.join((pattern.pattern, *others))})$"}


def _one_or_several(one: Schema, most: int = MOST_WORDS, **keywords: Any) -> Schema:
    """A string, or an array of them."""
    several = {"type": "array", "items": one, "minItems": 1, "maxItems": most} | keywords
    return {"anyOf": [one, several]}


def _object(text: str, properties: dict[str, Schema], **keywords: Any) -> Schema:
    closed = {"type": "object", "description": text, "properties": properties, "additionalProperties": False}
    return closed | keywords


def _told(schema: Schema, text: str) -> Schema:
    return schema | {"description": text}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_STEPS = {
    "column": _told(
        _one_or_several(_COLUMN, MOST_JOINED, uniqueItems=True),
        "The column, or columns to join; without it the one that has the field's name.",
    ),
    "join": _TEXT
    | {"maxLength": LONGEST_JOIN, "description": "What stands between joined cells; a space by default."},
    "blank": _TEXT
    | {
        "maxLength": LONGEST_JOIN,
        "description": "What stands for a joined cell, other than the first, that is blank.",
    },
    "part": _TEXT | {"enum": list(NAME_PARTS), "description": "What to take of the cell."},
    "values": {
        "type": "object",
        "additionalProperties": {"anyOf": [_VALUE, {"type": "boolean"}, {"type": "null"}]},
        "description": "Word to value, in any letter case; the empty word is a blank cell, null clears the field.",
    },
    "dates": _told(
        _one_or_several(_whole(DATE_FORMAT, EXCEL_SERIAL), MOST_FORMATS),
        "Formats such as `MM/DD/YYYY`, `DD-MON-YY` or `excel`; the first that fits counts. `YY` needs `pivot`.",
    ),
    "pivot": {
        "type": "integer",
        "minimum": 0,
        "maximum": 99,
        "description": "Two-digit years up to this are 20YY, others 19YY.",
    },
    "open": _told(
        _one_or_several({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date"}),
        "Dates that mean no end: the field is cleared.",
    ),
    "pad": {
        "type": "integer",
        "minimum": 1,
        "maximum": LONGEST_PAD,
        "description": "Zeros are added until there are so many digits.",
    },
}
_LONG_DATES = _one_or_several(_TEXT | _LONG_YEARS)
_CONSTANT = {
    "constant": {
        "anyOf": [_NOT_BLANK | {"maxLength": LONGEST_VALUE}, {"type": "boolean"}],
        "description": "The value of every row.",
    }
}
_SOURCES = _one_or_several(_whole(SOURCES) | {"maxLength": LONGEST_WAY}, MOST_ALTERNATIVES)
_WAY = _whole(WAY) | {"maxLength": LONGEST_WAY}
_MEMBER_WAY = {
    "anyOf": [
        _WAY,
        {
            "type": "object",
            "properties": {"subscriber": _WAY, "dependent": _WAY},
            "required": ["subscriber", "dependent"],
            "additionalProperties": False,
        },
    ]
}
_COVERAGES = {
    "anyOf": [_TEXT | {"const": EVERY_LINE}, {"type": "array", "items": _NOT_BLANK, "minItems": 1}],
    "description": "The insurance lines whose coverages count.",
}
_FIELD = {"anyOf": [{"type": "string", "enum": list(FIELDS)}, _whole(METADATA_FIELD)]}
# No constant is an identifier.
_IDENTIFIERS = "|".join(name for name, field in FIELDS.items() if field.unique)
_TARGETS = "|".join(
    [name for name, field in FIELDS.items() if not field.unique] + [PLAN, FAMILY, METADATA_FIELD.pattern]
)

MAPPING_SCHEMAS: dict[str, Schema] = {
    "Mapping": _object(
        "How the files of a sender name things, and how their values are read. Names of fields may also be in another "
        "letter case.",
        {
            "columns": {
                "type": "object",
                "propertyNames": {"pattern": COLUMN_NAME.pattern},
                "additionalProperties": {"anyOf": [*_FIELD["anyOf"], {"type": "null"}]},
                "description": "Column to field or `metadata.KEY`; to null if the column is not to be read.",
            },
            "fields": _object(
                "Field, `metadata.KEY`, `plan` or `family` to the rule that makes its value.",
                {},
                patternProperties={
                    f"^(?:{_IDENTIFIERS})$": _ref("MappingSteps"),
                    f"^(?:{_TARGETS})$": _ref("MappingRule"),
                },
                maxProperties=MOST_RULES,
            ),
            **{
                part: {
                    "type": "array",
                    "items": _ref("MappingRowRule"),
                    "maxItems": MOST_ROW_RULES,
                    "description": text,
                }
                for part, text in (
                    ("skip", "Rows to leave out, also those of `end`."),
                    (
                        "end",
                        "Rows that end their members, on their `expiry_date`, else on the day of the file.",
                    ),
                )
            },
            "questions": {
                "type": "object",
                "propertyNames": {"pattern": COLUMN_NAME.pattern},
                "additionalProperties": _TEXT | {"enum": [UNRELATED]},
                "description": "Columns of a suggestion that may say whose access has ended, answered: "
                f"`{UNRELATED}` says nothing about access. `{OPEN}`, as suggestions have it, is refused until `end` or `skip` "
                "names it.",
            },
            "delimiter": _TEXT | {"enum": list(DELIMITERS)},
            "header_row": {
                "type": "integer",
                "minimum": 1,
                "maximum": SEARCHED_ROWS,
                "description": "The row with the names of the columns; without it the row is found.",
            },
            "sheet": _TEXT
            | {"minLength": 1, "maxLength": LONGEST_SHEET_NAME, "description": "The sheet of a workbook."},
            "clear": _told(_one_or_several(_NOT_BLANK), r"The words that clear a field, instead of `\N`."),
            "plans": {
                "type": "object",
                "additionalProperties": _NOT_BLANK,
                "description": "What the file calls a plan to the plan's `external_id`.",
            },
            "ssn": _TEXT
            | {
                "const": PLAIN,
                "description": "Social security numbers may be identifiers, stored and shown as they are.",
            },
            "834": _ref("MappingOf834"),
        },
    ),
    "MappingRule": {
        "anyOf": [_ref("MappingSteps"), _ref("MappingConstant")],
        "description": "How the value of one field is made.",
    },
    "MappingSteps": _object(
        "The steps that make a value, taken in this order: column, join, part, values, dates, open, pad.",
        _STEPS,
        anyOf=[{"required": ["pivot"]}, {"properties": {"dates": _LONG_DATES}}],
    ),
    "MappingConstant": _object("The same value in every row.", _CONSTANT, required=["constant"]),
    "MappingRowRule": _object(
        "Rows by a cell.",
        {
            "column": _told(_COLUMN | {"maxLength": LONGEST_VALUE}, "The column whose cell is looked at."),
            "equals": _told(
                _one_or_several(_TEXT),
                "The whole cell, in any letter case; the empty text is a blank cell.",
            ),
            "starts_with": _told(
                _one_or_several(_NOT_BLANK), "What the cell begins with, in any letter case."
            ),
        },
        required=["column"],
        anyOf=[{"required": ["equals"]}, {"required": ["starts_with"]}],
    ),
    "MappingOf834": _object(
        "What an account says of its 834s.",
        {
            "coverages": _COVERAGES,
            "identify": _told(
                _MEMBER_WAY,
                "What the `external_id` is made from: one way, or one each for subscribers and dependents.",
            ),
            "member_id": _told(
                _MEMBER_WAY, "What the `member_id` is made from; without it, what the `external_id` is."
            ),
            "person_code": _told(
                _whole(REFERENCE), "The reference with a person's number in the family; `REF*17` by default."
            ),
            "plan": _told(_SOURCES, "What names the plan."),
            "family_coverage": _TEXT
            | {
                "enum": list(FAMILY_WORDS),
                "description": "Whether a subscriber's coverage for the family (HD05) covers dependents without their own.",
            },
            "verify": _TEXT | {"enum": list(VERIFY_WORDS), "description": "The meaning of BGN08 = 4."},
            "counts": _TEXT
            | {"enum": list(COUNTS_WORDS), "description": "Whether wrong counts are refused."},
        },
    ),
}
