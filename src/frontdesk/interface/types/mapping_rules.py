"""How an eligibility file is read: the mapping that an account sends.

The schema takes what the parser takes (`mapping.parser`), but for four rules: a date of `open` is
a real one, no two names of columns, nor two words, are the same once letter case and spaces are
taken away, and an open question is taken with a rule for its column in `end` or `skip`.
"""

from typing import Annotated, Literal, NotRequired, TypedDict, Union

from frontdesk.eligibility.fields import FIELDS, UNIQUE
from frontdesk.formats.model import DELIMITERS
from frontdesk.interface.schema import Keywords, Named, Schema, closed, matches, one_of, ref
from frontdesk.interface.words import Day, HeaderRow, Sheet
from frontdesk.mapping.parser import (
    COUNTS_WORDS,
    FAMILY_WORDS,
    LONGEST_JOIN,
    LONGEST_PAD,
    LONGEST_VALUE,
    LONGEST_WAY,
    MOST_FORMATS,
    MOST_JOINED,
    MOST_ROW_RULES,
    MOST_RULES,
    MOST_WORDS,
    REFERENCE,
    SOURCES,
    TESTS_WORDS,
    VERIFY_WORDS,
    WAY,
)
from frontdesk.mapping.values import (
    CELL_PARTS,
    COLUMN_NAME,
    DATE_FORMAT,
    FAMILY,
    METADATA_FIELD,
    PLAN,
)

NotBlank = Annotated[str, Keywords(pattern=r"[^\s\x1c-\x1f\x85]")]
Constant = Annotated[NotBlank, Keywords(maxLength=LONGEST_VALUE)]
Cell = Annotated[str, Keywords(maxLength=LONGEST_VALUE)]
ColumnName = Annotated[str, Keywords(pattern=COLUMN_NAME.pattern)]
Joint = Annotated[str, Keywords(maxLength=LONGEST_JOIN)]
# Annotated, so that it stays a choice of its own where it is a part of another one.
DateFormat = Annotated[Annotated[str, matches(DATE_FORMAT)] | Literal["excel"], Keywords()]
Lines = Annotated[list[NotBlank], Keywords(minItems=1)]
Way = Annotated[str, matches(WAY), Keywords(maxLength=LONGEST_WAY)]
PlanWay = Annotated[str, matches(SOURCES), Keywords(maxLength=LONGEST_WAY)]
Target = Annotated[str, one_of(FIELDS)] | Annotated[str, matches(METADATA_FIELD)] | None

_LONG_YEARS: Schema = {"pattern": "^[^Y]*(?:YYYY[^Y]*)?$"}  # those that need no pivot
_TARGETS = "|".join((*FIELDS, PLAN, FAMILY, METADATA_FIELD.pattern))


class _MappingOfColumns(TypedDict):
    columns: NotRequired[
        Annotated[
            dict[str, Target],
            Keywords(propertyNames={"pattern": COLUMN_NAME.pattern}),
            "Column to field or `metadata.KEY`; to null if it is not to be read.",
        ]
    ]
    fields: NotRequired[
        Annotated[
            dict[str, "MappingRule"],
            Keywords(
                properties=dict.fromkeys(UNIQUE, ref("MappingSteps")),
                propertyNames={"pattern": f"^(?:{_TARGETS})$"},
                maxProperties=MOST_RULES,
            ),
            "Field, `metadata.KEY`, `plan` or `family` to the rule that makes its value.",
        ]
    ]
    skip: NotRequired[
        Annotated[
            list["MappingRowRule"],
            Keywords(maxItems=MOST_ROW_RULES),
            "Rows to leave out, also those of `end`.",
        ]
    ]
    end: NotRequired[
        Annotated[
            list["MappingRowRule"],
            Keywords(maxItems=MOST_ROW_RULES),
            "Rows that end their members, on `expiry_date` or the file's day.",
        ]
    ]
    questions: NotRequired[
        Annotated[
            dict[str, Literal["unrelated"]],
            Keywords(propertyNames={"pattern": COLUMN_NAME.pattern}),
            "Columns of a suggestion that may say whose access has ended: `unrelated` says "
            "nothing about access; `open` is refused until `end` or `skip` names the column.",
        ]
    ]
    delimiter: NotRequired[Annotated[str, one_of(DELIMITERS)]]
    header_row: NotRequired[
        Annotated[HeaderRow, "The row with the names of the columns; without it the row is found."]
    ]
    sheet: NotRequired[Annotated[Sheet, "The sheet of a workbook."]]
    clear: NotRequired[
        Annotated[
            NotBlank | Annotated[list[NotBlank], Keywords(minItems=1, maxItems=MOST_WORDS)],
            r"The words that clear a field, instead of `\N`.",
        ]
    ]
    plans: NotRequired[
        Annotated[dict[str, NotBlank], "What the file calls a plan to the plan's `external_id`."]
    ]
    ssn: NotRequired[
        Annotated[
            Literal["plain"],
            "Social security numbers may be identifiers, stored and shown as they are.",
        ]
    ]


# `834` is no name of Python.
_MappingOfX12 = TypedDict("_MappingOfX12", {"834": NotRequired["MappingOf834"]})


@closed()
class Mapping(_MappingOfColumns, _MappingOfX12):
    """How the files of a sender name things, and how their values are read. Fields may be
    named in any letter case.
    """


MappingRule = Annotated[
    Union["MappingSteps", "MappingConstant"],
    Named("MappingRule", "How the value of one field is made."),
]


@closed(
    anyOf=[{"required": ["pivot"]}, {"properties": {"dates": _LONG_YEARS | {"items": _LONG_YEARS}}}]
)
class MappingSteps(TypedDict):
    """The steps that make a value, taken in this order: column, join, part, values, dates, open,
    pad.
    """

    column: NotRequired[
        Annotated[
            ColumnName
            | Annotated[
                list[ColumnName], Keywords(minItems=1, maxItems=MOST_JOINED, uniqueItems=True)
            ],
            "The column, or columns to join; by default the field's.",
        ]
    ]
    join: NotRequired[Annotated[Joint, "What stands between joined cells; a space by default."]]
    blank: NotRequired[
        Annotated[Joint, "What stands for a joined cell, other than the first, that is blank."]
    ]
    part: NotRequired[Annotated[str, one_of(CELL_PARTS), "What to take of the cell."]]
    values: NotRequired[
        Annotated[
            dict[str, Cell | bool | None],
            "Word to value, in any letter case; the empty word is a blank cell, null clears the "
            "field.",
        ]
    ]
    dates: NotRequired[
        Annotated[
            DateFormat | Annotated[list[DateFormat], Keywords(minItems=1, maxItems=MOST_FORMATS)],
            "`MM/DD/YYYY`, `DD-MON-YY`, `excel`; the first that fits. `YY` needs `pivot`.",
        ]
    ]
    pivot: NotRequired[
        Annotated[
            int,
            Keywords(minimum=0, maximum=99),
            "Two-digit years up to this are 20YY, others 19YY.",
        ]
    ]
    open: NotRequired[
        Annotated[
            Day | Annotated[list[Day], Keywords(minItems=1, maxItems=MOST_WORDS)],
            "Dates that mean no end: the field is cleared.",
        ]
    ]
    pad: NotRequired[
        Annotated[
            int,
            Keywords(minimum=1, maximum=LONGEST_PAD),
            "Zeros are added until there are so many digits.",
        ]
    ]


@closed()
class MappingConstant(TypedDict):
    """The same value in every row."""

    constant: Annotated[Constant | bool, "The value of every row."]


@closed(anyOf=[{"required": ["equals"]}, {"required": ["starts_with"]}])
class MappingRowRule(TypedDict):
    """Rows by a cell."""

    column: Annotated[
        ColumnName, Keywords(maxLength=LONGEST_VALUE), "The column whose cell is looked at."
    ]
    equals: NotRequired[
        Annotated[
            str | Annotated[list[str], Keywords(minItems=1, maxItems=MOST_WORDS)],
            "The whole cell, in any letter case; the empty text is a blank cell.",
        ]
    ]
    starts_with: NotRequired[
        Annotated[
            NotBlank | Annotated[list[NotBlank], Keywords(minItems=1, maxItems=MOST_WORDS)],
            "What the cell begins with, in any letter case.",
        ]
    ]


@closed()
class MappingOf834(TypedDict):
    """What an account says of its 834s."""

    coverages: NotRequired[
        Annotated[Literal["all"] | Lines, "The insurance lines whose coverages count."]
    ]
    identify: NotRequired[
        Annotated[
            Way | "MemberWays",
            "What the `external_id` is made from: one way, or one each for subscribers and "
            "dependents.",
        ]
    ]
    member_id: NotRequired[
        Annotated[
            Way | "MemberWays",
            "What the `member_id` is made from; without it, what the `external_id` is.",
        ]
    ]
    person_code: NotRequired[
        Annotated[
            str,
            matches(REFERENCE),
            "The reference with a person's number in the family; `REF*17` by default.",
        ]
    ]
    plan: NotRequired[
        Annotated[
            PlanWay | Annotated[list[PlanWay], Keywords(minItems=1, maxItems=MOST_WORDS)],
            "What names the plan.",
        ]
    ]
    family_coverage: NotRequired[
        Annotated[
            str,
            one_of(FAMILY_WORDS),
            "Whether a subscriber's family coverage (HD05) covers dependents without their own.",
        ]
    ]
    verify: NotRequired[Annotated[str, one_of(VERIFY_WORDS), "The meaning of BGN08 = 4."]]
    counts: NotRequired[Annotated[str, one_of(COUNTS_WORDS), "Whether wrong counts are refused."]]
    tests: NotRequired[
        Annotated[str, one_of(TESTS_WORDS), "What becomes of a test (ISA15 = T) in production."]
    ]


@closed()
class MemberWays(TypedDict):
    """What identifiers are made from: one way each for subscribers and dependents."""

    subscriber: Way
    dependent: Way
