"""Members as answers show them, and their histories."""

from typing import Annotated, Any, Literal, TypedDict

from frontdesk.eligibility.field_kinds import GENDERS, METADATA
from frontdesk.eligibility.fields import FIELDS, STORED_FIELDS, Field
from frontdesk.eligibility.model import Outcome
from frontdesk.interface.schema import (
    Derived,
    Named,
    Schema,
    descriptions,
    explained,
    object_schema,
    one_of,
)
from frontdesk.interface.types.mappings import MappingLinks
from frontdesk.interface.types.plans import PageLinks
from frontdesk.interface.words import AnswerEnvelope, Date, Timestamp
from frontdesk.invitations.model import (
    HIDDEN_STEPS,
    InvitationState,
    InvitationStep,
    NotInvitedReason,
)

Gender = Annotated[str, one_of(GENDERS)]
Value = str | dict[str, Any] | None  # of a field, before or after a change
_STEPS = descriptions(step for step in InvitationStep if step not in HIDDEN_STEPS)


class Eligibility(TypedDict):
    """These nine fields, and no others."""

    id: Annotated[int, "Identifier of the member record."]
    external_id: str
    dob: Date
    first_name: str
    last_name: str
    gender: Gender
    member_id: str
    zipcode: str
    metadata: dict[str, str]


class InvitationStatus(TypedDict):
    """How far the invitation of a member is."""

    state: Annotated[InvitationState | None, "null for a member without an invitation."]
    reason: Annotated[
        str | None,
        "Why it has this state:"
        + explained(_STEPS)
        + " Without an invitation, why the member has none:"
        + explained(descriptions(NotInvitedReason)),
    ]
    at: Annotated[Timestamp | None, "The time since which it has this state."]


class _RecordBefore(TypedDict):
    """What stands before the fields of a member."""

    id: Annotated[int, "Identifier of the member record."]
    type: Literal["eligibility_members"]
    plan_id: Annotated[int, "Plan of the member."]


class _RecordAfter(TypedDict):
    """What stands behind the fields of a member."""

    eligible: Annotated[
        bool,
        "Whether the member has access today, in the time zone of the account: from "
        "`effective_date` to `expiry_date`, both inclusive.",
    ]
    created_at: Timestamp
    updated_at: Timestamp
    invitation: InvitationStatus


def _stored(field: Field) -> Schema:
    """The schema of a stored value. A cleared one is null; cleared metadata is empty."""
    schema = field.kind.stored
    if field.required or field.kind is METADATA:
        return schema
    return schema | {"type": [schema["type"], "null"]}


def _record() -> Schema:
    properties = (
        object_schema(_RecordBefore)["properties"]
        | {name: _stored(FIELDS[name]) for name in STORED_FIELDS}
        | object_schema(_RecordAfter)["properties"]
    )
    return {
        "type": "object",
        "description": "A member as it is stored. A field without a value is null.",
        "properties": properties,
        "required": [*properties],
    }


EligibilityRecord = Annotated[dict[str, Any], Derived("EligibilityRecord", _record())]

EligibilityRecordEnvelope = Annotated[
    AnswerEnvelope[MappingLinks, EligibilityRecord],
    Named("EligibilityRecordEnvelope", "A member in its envelope."),
]


EligibilityRecords = Annotated[
    AnswerEnvelope[PageLinks, list[EligibilityRecord]],
    Named("EligibilityRecords", "Members, by id."),
]


class EligibilityChange(TypedDict):
    """A change of a member. Other changes than those of fields have none in `changed`."""

    id: Annotated[int, "Identifier of the change."]
    type: Literal["eligibility_changes"]
    at: Timestamp
    outcome: Annotated[Outcome, "What happened to the member."]
    plan_id: Annotated[int, "The member's plan after the change."]
    changed: Annotated[
        dict[str, list[Value]],
        "The changed fields, each with its value before and after; `null` stands for none. "
        "Without the values that retention has removed.",
    ]
    client: Annotated[
        str,
        "Who changed the member: the `client_id`, `user:` and the id of a user, or `cli:` and the operator.",
    ]
    request_id: str
    file_id: Annotated[int | None, "The eligibility file of the change; null for a request."]


EligibilityChanges = Annotated[
    AnswerEnvelope[PageLinks, list[EligibilityChange]],
    Named("EligibilityChanges", "Changes of a member, the oldest first."),
]
