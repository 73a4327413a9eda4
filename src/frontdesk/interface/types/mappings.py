"""The account's mappings, and suggestions of one."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from frontdesk.formats.model import Format
from frontdesk.interface.schema import Keywords, Named, ref
from frontdesk.interface.types.mapping_rules import Mapping
from frontdesk.interface.words import AnswerEnvelope, Count, Timestamp


class StoredMappingBody(TypedDict):
    """A mapping that the account keeps."""

    type: Literal["eligibility_mappings"]
    name: str
    is_default: Annotated[bool, "Whether files that come without a mapping are read by it."]
    changed_at: Timestamp
    mapping: Annotated[Mapping, "As it was sent."]


class MappingLinks(TypedDict):
    """The request's address."""

    self: str


EligibilityMapping = Annotated[
    AnswerEnvelope[MappingLinks, StoredMappingBody],
    Named("EligibilityMapping", "A mapping in its envelope."),
]


EligibilityMappings = Annotated[
    AnswerEnvelope[MappingLinks, list[StoredMappingBody]],
    Named("EligibilityMappings", "Every mapping of the account, by name."),
]


class SuggestedColumn(TypedDict):
    """A column of the file, and what it may hold."""

    column: Annotated[str, "Its name in the file."]
    fields: Annotated[list[str], "Fields that the mapping makes of it; none if it is not used."]
    confidence: Annotated[
        float, Keywords(minimum=0, maximum=1), "How sure that is: its name and its values count."
    ]
    filled: Annotated[
        int, Keywords(minimum=0, maximum=100), "Percent of its cells that have a value."
    ]
    distinct: Annotated[Count, "How many different values these are, in any letter case."]
    samples: Annotated[
        list[str],
        Keywords(maxItems=5),
        "The most frequent shapes of its values: letters are X and x, digits 9.",
    ]
    note: Annotated[str | None, "Why it is not used although its name is that of a field."]


class AnswerChoice(TypedDict):
    """An answer that a person may give."""

    does: Annotated[str, "What it does."]
    mapping: Annotated[dict[str, Any], Keywords(**ref("Mapping")), "What it adds to the mapping."]


class SuggestionQuestion(TypedDict):
    """A column that a person has to decide about."""

    column: Annotated[str, "Its name in the file."]
    question: Annotated[str, "What it may be."]
    choices: Annotated[list[AnswerChoice], "The answers."]


class RefusedRows(TypedDict):
    """Rows that one fault would refuse."""

    field: str
    code: str
    rows: Count
    advice: Annotated[
        str | None,
        "What to give for a field that no column holds, with an example; the rows of several "
        "people under one identifier, by number.",
    ]


class MappingSuggestion(TypedDict):
    """A mapping that would read the file. No value of a member is in it."""

    type: Literal["mapping_suggestions"]
    format: Format
    rows: Annotated[Count, "Rows that were looked at: 1,000 at most."]
    mapping: Annotated[
        dict[str, Any],
        Keywords(additionalProperties=True),
        "To be stored or sent once `questions` are answered in it.",
    ]
    columns: list[SuggestedColumn]
    questions: Annotated[
        list[SuggestionQuestion],
        "What a person has to answer: a mapping that says `open` of a column is refused.",
    ]
    refused_rows: Annotated[Count, "Rows that would be refused, if their members were new."]
    skipped_rows: Annotated[Count, "Rows that the mapping leaves out, such as totals."]
    refused: Annotated[list[RefusedRows], "What would refuse them; a row may have several faults."]
    reasons: NotRequired[
        Annotated[
            list[str],
            "Of an 834: why its members are named so. Of a workbook: that more sheets have rows.",
        ]
    ]
    people: NotRequired[Annotated[Count, "Of an 834: the people that it names."]]
    dependents: NotRequired[Annotated[Count, "Of an 834: how many of them are dependents."]]
    references: NotRequired[
        Annotated[list["ReferenceFigures"], "Of an 834: who carries which reference."]
    ]


class ReferenceFigures(TypedDict):
    """A reference of an 834 that members carry."""

    reference: str
    people: Annotated[Count, "Those who carry it."]
    with_others: Annotated[Count, "Those who carry a value that somebody else carries, too."]
    looks_like_ssn: bool


EligibilityMappingSuggestion = Annotated[
    AnswerEnvelope[MappingLinks, MappingSuggestion],
    Named("EligibilityMappingSuggestion", "A suggestion in its envelope."),
]
