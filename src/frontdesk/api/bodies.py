"""The JSON bodies of the interface as types (docs/interface.md). Their docstrings and notes are the schemas' descriptions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from frontdesk.eligibility.model import FAULT_CODES
from frontdesk.files.model import COUNTS, FILE_PROBLEMS, FileMode, FileState, FileStep, Format
from frontdesk.plans.changes import DESCRIPTION_LENGTH, NAME_LENGTH
from frontdesk.web.problems import EXACT_CODES, PROBLEMS

# The error codes of /oauth (RFC 6749, section 5.2, and `rate_limited`), with the status of each.
OAUTH_ERRORS = {
    "invalid_request": (400, "A parameter is missing, repeated or unreadable, or the client authenticates in two ways."),
    "invalid_scope": (400, "The client does not have every scope that it asks for."),
    "unsupported_grant_type": (400, "Only client_credentials is supported."),
    "invalid_client": (401, "The client is unknown, its secret is wrong, it did not authenticate, or its account is suspended."),
    "rate_limited": (
        429,
        "Too many failed attempts by this client or from this address, or the client has used its requests of the minute.",
    ),
}  # fmt: skip


def explained(codes: Mapping[str, str]) -> str:
    """A list of codes and their meanings, in Markdown."""
    return "\n".join(f"- `{code}`: {text}" for code, text in codes.items())


def one_of(codes: Mapping[str, str]) -> dict[str, Any]:
    """The schema keywords of a text that is one of the codes."""
    return {"enum": list(codes), "description": explained(codes)}


# A note beside a type is a description (text) or JSON Schema keywords (an object).
_TIME, _DAY, _COUNT = {"format": "date-time"}, {"format": "date"}, {"minimum": 0}
Time = Annotated[str, _TIME]
Count = Annotated[int, _COUNT]
_COUNTS = {
    "properties": {name: {"type": "integer"} | _COUNT for name in COUNTS},
    "additionalProperties": False,
}
RowCounts = Annotated[dict[str, int], _COUNTS]
PlanName = Annotated[str, {"maxLength": NAME_LENGTH, "pattern": r"\S"}]


class ProviderGroupBody(TypedDict):
    """The group of doctors that serves a plan."""

    id: Annotated[int, "Primary identifier."]
    type: Literal["provider_groups"]
    name: str
    external_id: str | None
    created_at: Time


class PlanQueueInfoCacheInfoBody(TypedDict):
    """How long the queue's values are served."""

    ttl: Annotated[Count, "How long the values are served, in seconds."]
    expires_at: Annotated[Time, "When the values are read again."]


class PlanQueueInfoBody(TypedDict):
    """The plan's queue; all values are of one moment."""

    estimated_wait_time: Annotated[
        int,
        {"minimum": -1},
        "Seconds until a patient joining now reaches a doctor; -1 when no doctor is on duty for the plan.",
    ]
    queue_length: Annotated[Count, "Patients waiting in this plan's queue."]
    is_active: Annotated[bool, "Whether a doctor is on duty for the plan now."]
    cache_info: NotRequired[PlanQueueInfoCacheInfoBody]


class PlanQueueIntervalBody(TypedDict):
    """The interval of the wait: a share of the patients joining now is expected to wait for so long. The ends count."""

    share: Annotated[float, "The share of the waits that is expected between the ends: 0.8."]
    low: Annotated[int | None, "Seconds; null when no doctor is on duty for the plan."]
    high: Annotated[int | None, "Seconds; null when no doctor is on duty for the plan."]


class PlanBody(TypedDict):
    """A plan. Only reads have `queue_info`."""

    id: Annotated[int, "Primary identifier of the plan in the service."]
    type: Literal["plans"]
    external_id: Annotated[str, "Identifier of the plan outside the service."]
    name: str
    description: str | None
    active: Annotated[bool, "Whether the plan accepts patients; not the same as `queue_info.is_active`."]
    created_at: Time
    provider_group: ProviderGroupBody
    queue_info: NotRequired[PlanQueueInfoBody]
    queue_interval: NotRequired[PlanQueueIntervalBody]


class PlansLinksBody(TypedDict):
    """Addresses of this page of plans and the next."""

    self: Annotated[str, "The request's address."]
    next: NotRequired[Annotated[str, "The next page, if `page[size]` was given and more plans follow."]]


class PlansBody(TypedDict):
    """Plans in the order of `id`; one plan is an array of one."""

    links: PlansLinksBody
    data: list[PlanBody]


class PlanPatchBody(TypedDict, total=False):
    """Absent fields keep their values; `{}` changes nothing. The plan's other fields may be sent back, but another `id`,
    `type`, `active` or `created_at` is the fault `read_only`."""

    name: PlanName
    description: Annotated[str | None, {"maxLength": DESCRIPTION_LENGTH}, "null or blank clears it."]
    external_id: Annotated[PlanName, "Unique among the account's plans."]


class FileProblemBody(TypedDict):
    """Why the file failed or is held."""

    code: Annotated[str, one_of(FILE_PROBLEMS)]
    message: Annotated[str, "The reason in words; it never repeats what the file says."]
    place: Annotated[int | None, "Row (834: segment) at fault; the first is 1."]
    suggestion: NotRequired[
        Annotated[
            dict[str, Any],
            {"additionalProperties": True},
            "`needs_mapping`: the suggested `mapping`, its `reasons` and figures.",
        ]
    ]


class UsedMappingBody(TypedDict):
    """The mapping that read the file."""

    name: Annotated[str | None, "Name of the account's mapping; null for one that came with the file."]
    version: Annotated[
        str, {"pattern": "^[0-9a-f]{12}$"}, "First digits of the SHA-256 of its JSON, keys in order."
    ]


class FileBody(TypedDict):
    """An eligibility file and how far it is."""

    id: Annotated[int, "Primary identifier."]
    type: Literal["eligibility_files"]
    plan_id: Annotated[int, "Plan of the file's members."]
    undoes_id: Annotated[int | None, "The file that this one takes back."]
    state: Annotated[FileState, "`held`: a person has to approve it."]
    step: Annotated[
        FileStep,
        "What is done now or was done last: check the file, apply its rows, end the members that a full file omits.",
    ]
    mode: Annotated[
        FileMode,
        "What the upload said, else what an 834 says of itself. `compare` reports differences and writes nothing.",
    ]
    dry_run: Annotated[bool, "Whether nothing is written."]
    client: Annotated[str, "Who handed it in: the `client_id`, or `cli:` and the operator."]
    file_name: Annotated[str | None, {"maxLength": 255}, "Its name, if the upload gave one."]
    format: Annotated[Format | None, "null until it is known."]
    encoding: Annotated[str | None, "Of its text; until the check has ended, the declared one."]
    delimiter: Annotated[str | None, "Between the columns of a CSV; null until it is known."]
    sheet: Annotated[str | None, "The sheet that is asked for; null stands for the first one that is shown."]
    mapping: UsedMappingBody | None
    file_date: Annotated[str | None, _DAY, "The date that the file states, else the day it came."]
    size_bytes: Annotated[Count, "Size of the body as it was sent."]
    sha256: Annotated[str | None, {"pattern": "^[0-9a-f]{64}$"}, "SHA-256 of the body as it was sent."]
    rows_total: Annotated[int | None, _COUNT, "null until the check has ended."]
    rows_done: Count
    counts: Annotated[RowCounts, "Rows by outcome, where there are any. A row that is `warned` counts twice."]
    codes: Annotated[
        dict[str, int], {"additionalProperties": {"type": "integer"} | _COUNT}, "Report lines by code."
    ]
    members_before: Annotated[int | None, _COUNT, "Full file: the plan's members with access before it."]
    members_missing: Annotated[int | None, _COUNT, "Full file: the members that it omits."]
    ignored_columns: Annotated[
        list[str], "Columns (CSV) and keys (JSON lines) that are no field; 40 characters of each, 20 at most."
    ]
    problem: FileProblemBody | None
    created_at: Time
    started_at: Annotated[str | None, _TIME, "null until a worker has begun with the rows."]
    finished_at: Annotated[str | None, _TIME, "null until the file has ended."]


class FileLinksBody(TypedDict):
    """Addresses of the file and of its report."""

    self: str
    report: str


class EligibilityFileBody(TypedDict):
    """An eligibility file in its envelope."""

    links: FileLinksBody
    data: FileBody


class FilePageLinksBody(TypedDict):
    """Addresses of this page and of the next one, if there is one."""

    self: str
    next: NotRequired[str]


class EligibilityFilesBody(TypedDict):
    """A page of eligibility files, the newest first."""

    links: FilePageLinksBody
    data: list[FileBody]


class StoredMappingBody(TypedDict):
    """A mapping that the account keeps."""

    type: Literal["eligibility_mappings"]
    name: str
    is_default: Annotated[bool, "Whether files that come without a mapping are read by it."]
    changed_at: Time
    mapping: Annotated[dict[str, str], "As it was sent."]


class MappingLinksBody(TypedDict):
    """The request's address."""

    self: str


class EligibilityMappingBody(TypedDict):
    """A mapping in its envelope."""

    links: MappingLinksBody
    data: StoredMappingBody


class EligibilityMappingsBody(TypedDict):
    """Every mapping of the account, by name."""

    links: MappingLinksBody
    data: list[StoredMappingBody]


class SuggestedColumnBody(TypedDict):
    """A column of the file, and what it may hold."""

    column: Annotated[str, "Its name in the file."]
    fields: Annotated[list[str], "Fields that the mapping makes of it; none if it is not used."]
    confidence: Annotated[
        float, {"minimum": 0, "maximum": 1}, "How sure that is: its name and its values count."
    ]
    samples: Annotated[
        list[str], {"maxItems": 5}, "The most frequent shapes of its values: letters are X and x, digits 9."
    ]
    note: Annotated[str | None, "Why it is not used although its name is that of an identifier."]


class AnswerChoiceBody(TypedDict):
    """An answer that a person may give."""

    does: Annotated[str, "What it does."]
    mapping: Annotated[
        dict[str, str], {"$ref": "#/components/schemas/Mapping"}, "What it adds to the mapping."
    ]


class SuggestionQuestionBody(TypedDict):
    """A column that a person has to decide about."""

    column: Annotated[str, "Its name in the file."]
    question: Annotated[str, "What it may be."]
    choices: Annotated[list[AnswerChoiceBody], "The answers."]


class RefusedRowsBody(TypedDict):
    """Rows that one fault would refuse."""

    field: str
    code: str
    rows: Count
    advice: Annotated[str | None, "What to give for a field that no column holds, with an example."]


class MappingSuggestionBody(TypedDict):
    """A mapping that would read the file. No value of a member is in it."""

    type: Literal["mapping_suggestions"]
    format: Format
    rows: Annotated[Count, "Rows that were looked at: 1,000 at most."]
    mapping: Annotated[
        dict[str, str],
        {"type": "object", "additionalProperties": True},
        "To be stored or sent once `questions` are answered in it.",
    ]
    columns: list[SuggestedColumnBody]
    questions: Annotated[
        list[SuggestionQuestionBody],
        "What a person has to answer: a mapping that says `open` of a column is refused.",
    ]
    refused_rows: Annotated[Count, "Rows that would be refused, if their members were new."]
    skipped_rows: Annotated[Count, "Rows that the mapping leaves out, such as totals."]
    refused: Annotated[list[RefusedRowsBody], "What would refuse them; a row may have several faults."]


class EligibilityMappingSuggestionBody(TypedDict):
    """A suggestion in its envelope."""

    links: MappingLinksBody
    data: MappingSuggestionBody


class TokenRequestBody(TypedDict):
    """A token request. Leave `client_id` and `client_secret` out with HTTP Basic."""

    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    grant_type: Literal["client_credentials"]
    scope: NotRequired[Annotated[str, "Scopes of the client, separated by spaces; without it, all of them."]]


class RevocationRequestBody(TypedDict):
    """A revocation. Leave `client_id` and `client_secret` out with HTTP Basic."""

    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    token: Annotated[str, {"minLength": 1}]
    token_type_hint: NotRequired[Annotated[str, "Changes nothing."]]


class TokenBody(TypedDict):
    """An access token."""

    access_token: Annotated[str, "Sent as `Authorization: Bearer …`."]
    token_type: Literal["bearer"]
    expires_in: Annotated[int, "Lifetime in seconds."]
    scope: str
    created_at: Annotated[int, "Seconds since 1970."]


class FaultBody(TypedDict):
    """One field at fault."""

    field: Annotated[str, "The body's member, dotted below it (`metadata.color`), or the query parameter."]
    code: Annotated[str, one_of(FAULT_CODES | EXACT_CODES)]
    message: Annotated[str, "The rule in words; it never repeats the value."]
    did_you_mean: NotRequired[Annotated[str, "The known name near to an unknown field or parameter."]]


class ProblemBody(TypedDict):
    """Problem details (RFC 9457)."""

    type: Annotated[str, f"Its fragment is the kind of problem: {', '.join(PROBLEMS)}."]
    title: str
    status: int
    detail: str
    instance: Annotated[str, "The request's path."]
    request_id: str
    errors: NotRequired[
        Annotated[list[FaultBody], {"minItems": 1}, "All faults, or what is wrong more exactly."]
    ]
    did_you_mean: NotRequired[
        Annotated[
            dict[str, str],
            {"additionalProperties": {"type": "string"}},
            "Fields and parameters that were ignored, each with the known name that is near to it.",
        ]
    ]


class OAuthErrorBody(TypedDict):
    """An error of RFC 6749, section 5.2."""

    error: Annotated[str, {"enum": list(OAUTH_ERRORS)}]
    error_description: str


class HealthBody(TypedDict):
    """Health of the process."""

    status: Literal["ok", "ready"]
    revision: NotRequired[Annotated[str, "Of the database."]]
