"""What clients send about members, and the answer to a batch.

The fields of a member are those of the table `eligibility.fields`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict, Union

from frontdesk.eligibility.fields import FIELDS, REQUIRED, Field
from frontdesk.eligibility.model import MOST_RECORDS, Outcome
from frontdesk.interface.schema import Derived, Keywords, Named, Schema
from frontdesk.interface.types.mappings import MappingLinks
from frontdesk.interface.types.problems import FaultBody
from frontdesk.interface.words import Count, Day


def _property(field: Field) -> Schema:
    """The schema of a sent value, widened by what every field allows: spaces around text, and null
    or blank to clear it.
    """
    schema = dict(field.kind.schema)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "pattern" in schema:
        again = "" if field.required else "?"
        schema["pattern"] = rf"^\s*(?:{schema['pattern'][1:-1]}){again}\s*$"
    elif field.required:
        schema["pattern"] = r"\S"  # not blank
    elif "string" not in types:
        schema["pattern"] = r"^\s*$"  # blank
    note = "Required for a new member; never null or blank."
    if not field.required:
        schema["type"] = [*types, "null"] if "string" in types else [*types, "string", "null"]
        note = "null or blank clears it."
    return schema | {"description": f"{field.description} {note}", "examples": [field.example]}


def _member(description: str, required: Sequence[str]) -> Schema:
    """A whole object with every field: generators of clients lose what an `allOf` requires beyond
    the object that it extends.
    """
    properties = {field.name: _property(field) for field in FIELDS.values()}
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [*required],
    }


EligibleMember = Annotated[
    Union["NewMember", "MemberChange"],
    Named(
        "EligibleMember", "A new member, or a change of a stored one: the `external_id` decides."
    ),
]


NewMember = Annotated[
    dict[str, Any],
    Derived(
        "NewMember",
        _member(
            "A member that may be new. Text is trimmed and must not hold control characters.",
            REQUIRED,
        ),
    ),
]
MemberChange = Annotated[
    dict[str, Any],
    Derived(
        "MemberChange",
        _member(
            "A change of a stored member: absent fields keep their values. Text is read as that of "
            "a new member.",
            ("external_id",),
        ),
    ),
]
EligibleMembers = Annotated[
    list[EligibleMember],
    Keywords(minItems=1, maxItems=MOST_RECORDS),
    Named("EligibleMembers", "Members to be written in this order."),
]


class BatchResult(TypedDict):
    """The result of one record. A refused record has `detail` and perhaps `errors`, a written one
    all the others.
    """

    index: Annotated[Count, "Its place in the batch, from 0."]
    status: Annotated[
        int,
        "What a POST of the record alone would be answered: 201, 200, or the status of its "
        "problem.",
    ]
    outcome: NotRequired[Outcome]
    id: NotRequired[Annotated[int, "Identifier of the member record."]]
    external_id: NotRequired[str]
    changed: NotRequired[Annotated[list[str], "The fields that an update changed."]]
    left_plan: NotRequired[
        Annotated[str, "`external_id` of the plan that a moved record was under."]
    ]
    invitation: NotRequired[Annotated[str, "As the header `Invitation`."]]
    warnings: NotRequired[Annotated[list[str], "As the header `Eligibility-Warnings`."]]
    ignored_fields: NotRequired[
        Annotated[
            list[str],
            "The unknown fields of the record: 20 at most, 40 characters of each. Absent without any.",
        ]
    ]
    detail: NotRequired[Annotated[str, "Why the record was refused."]]
    errors: NotRequired[
        Annotated[list[FaultBody], Keywords(minItems=1), "All faults of the record."]
    ]


class BatchCounts(TypedDict):
    """Records by outcome."""

    created: Count
    updated: Count
    unchanged: Count
    moved: Count
    reopened: Count
    refused: Count


class BatchResults(TypedDict):
    """The result of each record, in the order of the batch."""

    links: MappingLinks
    data: list[BatchResult]
    counts: BatchCounts


class MemberEnd(TypedDict):
    """The end of a member's access."""

    on: Annotated[Day, "Last day of access. It may be past or to come."]


class MemberRename(TypedDict):
    """The new identifier of a member."""

    external_id: Annotated[str, Keywords(maxLength=255, pattern=r"\S"), "Unique."]
    member_id: NotRequired[
        Annotated[
            str,
            Keywords(maxLength=255, pattern=r"\S"),
            "Unique. Without it a `member_id` that equals the old `external_id` changes with it.",
        ]
    ]
