"""The bodies of requests and answers, as JSON has them. Written by clients/python/generate.py; do not edit.

An answer may have more keys than its type: the interface changes by addition only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class ProviderGroup(TypedDict):
    """The group of doctors that serves a plan."""

    id: int
    """Primary identifier."""
    type: Literal["provider_groups"]
    name: str
    external_id: str | None
    created_at: str


class QueueCacheInfo(TypedDict):
    """How long the queue's values are served."""

    ttl: int
    """In seconds."""
    expires_at: str
    """When the values are read again."""


class PlanQueue(TypedDict):
    """The plan's queue; all values are of one moment."""

    estimated_wait_time: int
    """Seconds until a patient joining now reaches a doctor; -1 when none is on duty."""
    queue_length: int
    """Patients waiting in this plan's queue."""
    is_active: bool
    """Whether a doctor is on duty for the plan now."""
    cache_info: NotRequired[QueueCacheInfo]


class PlanQueueInterval(TypedDict):
    """The interval that a share of the waits of patients joining now is expected in, and whom the estimate is
    for. The ends count."""

    share: float
    """Of the waits, between the ends: 0.8."""
    low: int | None
    """Seconds; null when no doctor is on duty for the plan."""
    high: int | None
    """Seconds; null when no doctor is on duty for the plan."""
    for_class: str | None
    """The class that was asked for; null: for patients as they came in the last hours."""
    estimated_wait_text: str
    """The estimate for people, such as `about 12 minutes` or `no doctor is on duty`."""


class Plan(TypedDict):
    """A plan. Only reads have `queue_info`."""

    id: int
    """Primary identifier of the plan in the service."""
    type: Literal["plans"]
    external_id: str
    """Identifier of the plan outside the service."""
    name: str
    description: str | None
    active: bool
    """Whether the plan accepts patients; not the same as `queue_info.is_active`."""
    created_at: str
    provider_group: ProviderGroup
    queue_info: NotRequired[PlanQueue]
    queue_interval: NotRequired[PlanQueueInterval]


class PageLinks(TypedDict):
    """Addresses of this page and of the next."""

    self: str
    """The request's address."""
    next: NotRequired[str]
    """The next page, if there is one."""


class Plans(TypedDict):
    """Plans in the order of `id`; one plan is an array of one."""

    links: PageLinks
    data: list[Plan]


class PlanPatch(TypedDict):
    """Absent fields keep their values; `{}` changes nothing. The plan's other fields may be sent back, but
    another `id`, `type`, `active` or `created_at` is the fault `read_only`."""

    name: NotRequired[str]
    description: NotRequired[str | None]
    """null or blank clears it."""
    external_id: NotRequired[str]
    """Unique among the account's plans."""


class FileProblem(TypedDict):
    """Why the file failed or is held."""

    code: Literal[
        "empty",
        "no_rows",
        "no_header",
        "no_key_column",
        "repeated_column",
        "missing_column",
        "unknown_encoding",
        "wrong_encoding",
        "not_text",
        "not_workbook",
        "bad_workbook",
        "old_workbook",
        "encrypted_workbook",
        "no_sheet",
        "sheet_too_large",
        "bad_json_array",
        "line_too_long",
        "rows_run_together",
        "cut_off",
        "not_gzip",
        "too_large",
        "zip_bomb",
        "looks_like_ssn",
        "not_x12",
        "wrong_version",
        "wrong_order",
        "wrong_count",
        "unknown_purpose",
        "wrong_date",
        "mixed_purposes",
        "too_many_moves",
        "too_many_other_people",
        "too_many_similar",
        "too_many_lose_access",
        "begins_later",
        "too_many_ends",
        "too_many_placeholders",
        "older_than_applied",
        "overtaken",
        "needs_mapping",
        "only_compared",
        "only_tested",
        "all_refused",
        "too_many_rows",
        "bad_mapping",
        "internal",
    ]
    """`empty`: There is nothing in the file."""
    message: str
    """The reason in words; it never repeats what the file says."""
    place: int | None
    """Row (834: segment) at fault; the first is 1."""
    suggestion: NotRequired[dict[str, Any]]
    """`needs_mapping`: the suggested `mapping`, its reasons, figures."""


class UsedMapping(TypedDict):
    """The mapping that read the file."""

    name: str | None
    """Name of the account's mapping; null for one that came with the file."""
    version: str
    """First digits of the SHA-256 of its JSON, keys in order."""


class File(TypedDict):
    """An eligibility file and how far it is."""

    id: int
    """Primary identifier."""
    type: Literal["eligibility_files"]
    plan_id: int
    """Plan of the file's members."""
    undoes_id: int | None
    """The file that this one takes back."""
    state: Literal["receiving", "waiting", "running", "held", "done", "failed", "cancelled"]
    """`held`: a person has to approve it."""
    step: Literal["check", "apply", "end"]
    """Done now or done last: check the file, apply its rows, end the members that a full file omits."""
    mode: Literal["change", "compare", "full"]
    """What the upload or the 834 says. `compare` reports differences and writes nothing."""
    dry_run: bool
    """Whether nothing is written."""
    client: str
    """Who handed it in: the `client_id`, `user:` and the id of a user, or `cli:` and the operator."""
    file_name: str | None
    """Its name, if the upload gave one."""
    format: Literal["csv", "jsonl", "json", "834", "xlsx"] | None
    """null until the service knows it."""
    encoding: str | None
    """Of its text; until the check has ended, the declared one."""
    delimiter: str | None
    """Between the columns of a CSV; null until the service knows it."""
    sheet: str | None
    """The requested sheet; null stands for the first visible one."""
    mapping: UsedMapping | None
    file_date: str | None
    """The date that the file states, else the day it came."""
    size_bytes: int
    """Size of the body as it was sent."""
    sha256: str | None
    """SHA-256 of the body as it was sent."""
    rows_total: int | None
    """null until the check has ended."""
    rows_done: int
    counts: dict[str, int]
    """Rows by outcome, where there are any. A row that is `warned` counts twice."""
    codes: dict[str, int]
    """Report lines by code."""
    members_before: int | None
    """Full file: the plan's members with access before it."""
    members_missing: int | None
    """Full file: the members that it omits."""
    ignored_columns: list[str]
    """Columns (CSV) and keys (JSON lines) that are no field; 40 characters of each, 20 at most."""
    problem: FileProblem | None
    created_at: str
    started_at: str | None
    """null until a worker has begun with the rows."""
    finished_at: str | None
    """null until the file has ended."""


class FileLinks(TypedDict):
    """Addresses of the file and of its report."""

    self: str
    report: str


class EligibilityFile(TypedDict):
    """An eligibility file in its envelope."""

    links: FileLinks
    data: File


class EligibilityFiles(TypedDict):
    """A page of eligibility files, the newest first."""

    links: PageLinks
    data: list[File]


class StoredMapping(TypedDict):
    """A mapping that the account keeps."""

    type: Literal["eligibility_mappings"]
    name: str
    is_default: bool
    """Whether files that come without a mapping are read by it."""
    changed_at: str
    mapping: Mapping
    """As it was sent."""


class MappingLinks(TypedDict):
    """The request's address."""

    self: str


class EligibilityMapping(TypedDict):
    """A mapping in its envelope."""

    links: MappingLinks
    data: StoredMapping


class EligibilityMappings(TypedDict):
    """Every mapping of the account, by name."""

    links: MappingLinks
    data: list[StoredMapping]


class SuggestedColumn(TypedDict):
    """A column of the file, and what it may hold."""

    column: str
    """Its name in the file."""
    fields: list[str]
    """Fields that the mapping makes of it; none if it is not used."""
    confidence: float
    """How sure that is: its name and its values count."""
    filled: int
    """Percent of its cells that have a value."""
    distinct: int
    """How many different values these are, in any letter case."""
    samples: list[str]
    """The most frequent shapes of its values: letters are X and x, digits 9."""
    note: str | None
    """Why it is not used although its name is that of a field."""


class AnswerChoice(TypedDict):
    """An answer that a person may give."""

    does: str
    """What it does."""
    mapping: Mapping
    """What it adds to the mapping."""


class SuggestionQuestion(TypedDict):
    """A column that a person has to decide about."""

    column: str
    """Its name in the file."""
    question: str
    """What it may be."""
    choices: list[AnswerChoice]
    """The answers."""


class RefusedRows(TypedDict):
    """Rows that one fault would refuse."""

    field: str
    code: str
    rows: int
    advice: str | None
    """What to give for a field that no column holds, with an example; the rows of several people under one
    identifier, by number."""


class MappingSuggestion(TypedDict):
    """A mapping that would read the file. No value of a member is in it."""

    type: Literal["mapping_suggestions"]
    format: Literal["csv", "jsonl", "json", "834", "xlsx"]
    rows: int
    """Rows that were looked at: 1,000 at most."""
    mapping: dict[str, Any]
    """To be stored or sent once `questions` are answered in it."""
    columns: list[SuggestedColumn]
    questions: list[SuggestionQuestion]
    """What a person has to answer: a mapping that says `open` of a column is refused."""
    refused_rows: int
    """Rows that would be refused, if their members were new."""
    skipped_rows: int
    """Rows that the mapping leaves out, such as totals."""
    refused: list[RefusedRows]
    """What would refuse them; a row may have several faults."""
    reasons: NotRequired[list[str]]
    """Of an 834: why its members are named so. Of a workbook: that more sheets have rows."""
    people: NotRequired[int]
    """Of an 834: the people that it names."""
    dependents: NotRequired[int]
    """Of an 834: how many of them are dependents."""
    references: NotRequired[list[ReferenceFigures]]
    """Of an 834: who carries which reference."""


class ReferenceFigures(TypedDict):
    """A reference of an 834 that members carry."""

    reference: str
    people: int
    """Those who carry it."""
    with_others: int
    """Those who carry a value that somebody else carries, too."""
    looks_like_ssn: bool


class EligibilityMappingSuggestion(TypedDict):
    """A suggestion in its envelope."""

    links: MappingLinks
    data: MappingSuggestion


EligibleMember: TypeAlias = "NewMember | MemberChange"


class NewMember(TypedDict):
    """A member that may be new. Text is trimmed and must not hold control characters."""

    external_id: str
    """Global identifier and match key. Required for a new member; never null or blank."""
    member_id: str
    """Member or program identifier. Required for a new member; never null or blank."""
    first_name: str
    """Patient first name. Required for a new member; never null or blank."""
    last_name: str
    """Patient last name. Required for a new member; never null or blank."""
    middle_name: NotRequired[str | None]
    """Patient middle name. null or blank clears it."""
    dob: str
    """Date of birth, 1900 to today; of a timestamp, the date as written. Required for a new member; never
    null or blank."""
    gender: str
    """Biological sex: male, female, other, unknown; any case. Required for a new member; never null or
    blank."""
    email: NotRequired[str | None]
    """E-mail address; unique whatever its letter case. null or blank clears it."""
    phone: NotRequired[str | None]
    """10 digits of North America; punctuation and a leading 1 are dropped. null or blank clears it."""
    zipcode: str
    """5, 9, or 5-4 digits, with any dash or space. Required for a new member; never null or blank."""
    city: NotRequired[str | None]
    """City. null or blank clears it."""
    county: NotRequired[str | None]
    """County. null or blank clears it."""
    state: NotRequired[str | None]
    """State: USPS code or full name. null or blank clears it."""
    effective_date: str
    """Date since which access is active. Required for a new member; never null or blank."""
    expiry_date: NotRequired[str | None]
    """Last day of access; none means open-ended. null or blank clears it."""
    invite_immediately: NotRequired[bool | str | None]
    """Invite a new member at once. null or blank clears it."""
    medical_eligibility: NotRequired[str | bool | None]
    """TRUE or FALSE. null or blank clears it."""
    medical_enrollment: NotRequired[str | bool | None]
    """TRUE or FALSE. null or blank clears it."""
    medical_plan_description: NotRequired[str | None]
    """Medical plan description. null or blank clears it."""
    payor_name: NotRequired[str | None]
    """Payor name. null or blank clears it."""
    payor_plan_name: NotRequired[str | None]
    """Payor plan name. null or blank clears it."""
    relationship_code: NotRequired[str | None]
    """Relationship to the subscriber, in words. null or blank clears it."""
    relationship_code_hipaa: NotRequired[str | int | None]
    """HIPAA relationship code; zeros are kept, the integer 1 becomes 01. null or blank clears it."""
    subscriber_relationship: NotRequired[str | None]
    """Primary or Dependent. null or blank clears it."""
    metadata: NotRequired[dict[str, str] | str | None]
    """Free-form keys with string values; replaced as a whole. null or blank clears it."""


class MemberChange(TypedDict):
    """A change of a stored member: absent fields keep their values. Text is read as that of a new member."""

    external_id: str
    """Global identifier and match key. Required for a new member; never null or blank."""
    member_id: NotRequired[str]
    """Member or program identifier. Required for a new member; never null or blank."""
    first_name: NotRequired[str]
    """Patient first name. Required for a new member; never null or blank."""
    last_name: NotRequired[str]
    """Patient last name. Required for a new member; never null or blank."""
    middle_name: NotRequired[str | None]
    """Patient middle name. null or blank clears it."""
    dob: NotRequired[str]
    """Date of birth, 1900 to today; of a timestamp, the date as written. Required for a new member; never
    null or blank."""
    gender: NotRequired[str]
    """Biological sex: male, female, other, unknown; any case. Required for a new member; never null or
    blank."""
    email: NotRequired[str | None]
    """E-mail address; unique whatever its letter case. null or blank clears it."""
    phone: NotRequired[str | None]
    """10 digits of North America; punctuation and a leading 1 are dropped. null or blank clears it."""
    zipcode: NotRequired[str]
    """5, 9, or 5-4 digits, with any dash or space. Required for a new member; never null or blank."""
    city: NotRequired[str | None]
    """City. null or blank clears it."""
    county: NotRequired[str | None]
    """County. null or blank clears it."""
    state: NotRequired[str | None]
    """State: USPS code or full name. null or blank clears it."""
    effective_date: NotRequired[str]
    """Date since which access is active. Required for a new member; never null or blank."""
    expiry_date: NotRequired[str | None]
    """Last day of access; none means open-ended. null or blank clears it."""
    invite_immediately: NotRequired[bool | str | None]
    """Invite a new member at once. null or blank clears it."""
    medical_eligibility: NotRequired[str | bool | None]
    """TRUE or FALSE. null or blank clears it."""
    medical_enrollment: NotRequired[str | bool | None]
    """TRUE or FALSE. null or blank clears it."""
    medical_plan_description: NotRequired[str | None]
    """Medical plan description. null or blank clears it."""
    payor_name: NotRequired[str | None]
    """Payor name. null or blank clears it."""
    payor_plan_name: NotRequired[str | None]
    """Payor plan name. null or blank clears it."""
    relationship_code: NotRequired[str | None]
    """Relationship to the subscriber, in words. null or blank clears it."""
    relationship_code_hipaa: NotRequired[str | int | None]
    """HIPAA relationship code; zeros are kept, the integer 1 becomes 01. null or blank clears it."""
    subscriber_relationship: NotRequired[str | None]
    """Primary or Dependent. null or blank clears it."""
    metadata: NotRequired[dict[str, str] | str | None]
    """Free-form keys with string values; replaced as a whole. null or blank clears it."""


EligibleMembers: TypeAlias = "list[EligibleMember]"


class BatchResult(TypedDict):
    """The result of one record. A refused record has `detail` and perhaps `errors`, a written one all the
    others."""

    index: int
    """Its place in the batch, from 0."""
    status: int
    """What a POST of the record alone would be answered: 201, 200, or the status of its problem."""
    outcome: NotRequired[
        Literal[
            "created", "updated", "unchanged", "moved", "ended", "reopened", "restored", "withdrawn"
        ]
    ]
    id: NotRequired[int]
    """Identifier of the member record."""
    external_id: NotRequired[str]
    changed: NotRequired[list[str]]
    """The fields that an update changed."""
    left_plan: NotRequired[str]
    """`external_id` of the plan that a moved record was under."""
    invitation: NotRequired[str]
    """As the header `Invitation`."""
    warnings: NotRequired[list[str]]
    """As the header `Eligibility-Warnings`."""
    ignored_fields: NotRequired[list[str]]
    """The unknown fields of the record: 20 at most, 40 characters of each. Absent without any."""
    detail: NotRequired[str]
    """Why the record was refused."""
    errors: NotRequired[list[Fault]]
    """All faults of the record."""


class BatchCounts(TypedDict):
    """Records by outcome."""

    created: int
    updated: int
    unchanged: int
    moved: int
    reopened: int
    refused: int


class BatchResults(TypedDict):
    """The result of each record, in the order of the batch."""

    links: MappingLinks
    data: list[BatchResult]
    counts: BatchCounts


class MemberEnd(TypedDict):
    """The end of a member's access."""

    on: str
    """Last day of access. It may be past or to come."""


class MemberRename(TypedDict):
    """The new identifier of a member."""

    external_id: str
    """Unique."""
    member_id: NotRequired[str]
    """Unique. Without it a `member_id` that equals the old `external_id` changes with it."""


class Eligibility(TypedDict):
    """These nine fields, and no others."""

    id: int
    """Identifier of the member record."""
    external_id: str
    dob: str
    first_name: str
    last_name: str
    gender: Literal["male", "female", "other", "unknown"]
    member_id: str
    zipcode: str
    metadata: dict[str, str]


class InvitationStatus(TypedDict):
    """How far the invitation of a member is."""

    state: (
        Literal["pending", "claimed", "offered", "sent", "failed", "ambiguous", "cancelled"] | None
    )
    """null for a member without an invitation."""
    reason: str | None
    """Why it has this state:"""
    at: str | None
    """The time since which it has this state."""


class EligibilityRecord(TypedDict):
    """A member as it is stored. A field without a value is null."""

    id: int
    """Identifier of the member record."""
    type: Literal["eligibility_members"]
    plan_id: int
    """Plan of the member."""
    external_id: str
    member_id: str
    first_name: str
    last_name: str
    middle_name: str | None
    dob: str
    gender: Literal["male", "female", "other", "unknown"]
    email: str | None
    phone: str | None
    zipcode: str
    city: str | None
    county: str | None
    state: str | None
    effective_date: str
    expiry_date: str | None
    medical_eligibility: str | None
    medical_enrollment: str | None
    medical_plan_description: str | None
    payor_name: str | None
    payor_plan_name: str | None
    relationship_code: str | None
    relationship_code_hipaa: str | None
    subscriber_relationship: str | None
    metadata: dict[str, str]
    eligible: bool
    """Whether the member has access today, in the time zone of the account: from `effective_date` to
    `expiry_date`, both inclusive."""
    created_at: str
    updated_at: str
    invitation: InvitationStatus


class EligibilityRecordEnvelope(TypedDict):
    """A member in its envelope."""

    links: MappingLinks
    data: EligibilityRecord


class EligibilityRecords(TypedDict):
    """Members, by id."""

    links: PageLinks
    data: list[EligibilityRecord]


class EligibilityChange(TypedDict):
    """A change of a member. Other changes than those of fields have none in `changed`."""

    id: int
    """Identifier of the change."""
    type: Literal["eligibility_changes"]
    at: str
    outcome: Literal[
        "created", "updated", "unchanged", "moved", "ended", "reopened", "restored", "withdrawn"
    ]
    """What happened to the member."""
    plan_id: int
    """The member's plan after the change."""
    changed: dict[str, list[str | dict[str, Any] | None]]
    """The changed fields, each with its value before and after; `null` stands for none. Without the values
    that retention has removed."""
    client: str
    """Who changed the member: the `client_id`, `user:` and the id of a user, or `cli:` and the operator."""
    request_id: str
    file_id: int | None
    """The eligibility file of the change; null for a request."""


class EligibilityChanges(TypedDict):
    """Changes of a member, the oldest first."""

    links: PageLinks
    data: list[EligibilityChange]


class CallerAccount(TypedDict):
    """An account."""

    id: int
    name: str
    time_zone: str | None
    """Where the days of its members begin and end, such as `America/New_York`; null: from the beginning of a
    day in UTC to its end in Honolulu."""


class CallerClient(TypedDict):
    """An API client."""

    client_id: str
    name: str


class RequestLimits(TypedDict):
    """The requests of this minute."""

    requests_per_minute: int
    remaining: int
    reset_seconds: int
    """Seconds until the minute ends."""


class Caller(TypedDict):
    """The client behind a token, as the service sees it."""

    type: Literal["callers"]
    account: CallerAccount | None
    """null for a client of the operator."""
    client: CallerClient
    scopes: list[str]
    """Every right of the token, also those that `customer` includes."""
    environment: Literal["sandbox", "production"]
    token_expires_at: str
    limits: RequestLimits


class CallerEnvelope(TypedDict):
    """The caller in its envelope."""

    links: MappingLinks
    data: Caller


class EventData(TypedDict):
    """The ids of what an event is about; it holds no value of a person. An event has those that belong to its
    type."""

    eligibility_id: NotRequired[int]
    """The member."""
    plan_id: NotRequired[int]
    """The plan, of a member the one after the event."""
    from_plan_id: NotRequired[int]
    """The plan that a moved member left."""
    kept_id: NotRequired[int]
    """The member that a merged member leads to."""
    file_id: NotRequired[int | None]
    """The eligibility file; null for a member that a request changed."""
    invitation_id: NotRequired[int]
    """The invitation."""
    fields: NotRequired[list[str]]
    """Names of the member's fields that changed."""
    code: NotRequired[str]
    """Of a held file: the code of its problem."""
    message: NotRequired[str]
    """Of a held file: why it is held."""
    counts: NotRequired[dict[str, int]]
    """Of a held file: its counts."""
    request_id: str | None
    """The request that caused the event, if there was one."""


class Event(TypedDict):
    """Something that has happened."""

    id: str
    """Identifies the event; of a webhook it is the `webhook-id`."""
    type: Literal[
        "member.created",
        "member.updated",
        "member.moved",
        "member.ended",
        "member.reopened",
        "member.withdrawn",
        "member.merged",
        "member.erased",
        "invitation.sent",
        "invitation.bounced",
        "invitation.suppressed",
        "file.done",
        "file.held",
        "file.failed",
        "plan.queue.opened",
        "plan.queue.closed",
        "webhook.test",
    ]
    """`member.created`: A member is new."""
    timestamp: str
    """When it happened."""
    data: EventData


class NewWebhookEndpoint(TypedDict):
    """A webhook endpoint to create."""

    url: str
    """An https address on the internet. A sandbox on your own machine takes http on that machine too."""
    event_types: NotRequired[
        list[
            Literal[
                "member.created",
                "member.updated",
                "member.moved",
                "member.ended",
                "member.reopened",
                "member.withdrawn",
                "member.merged",
                "member.erased",
                "invitation.sent",
                "invitation.bounced",
                "invitation.suppressed",
                "file.done",
                "file.held",
                "file.failed",
                "plan.queue.opened",
                "plan.queue.closed",
            ]
        ]
    ]
    """Types of the events that are sent; empty, which is the default, for all."""
    state: NotRequired[Literal["active", "paused"]]
    """`active`: it is sent events once it has answered a `webhook.test` with 2xx. `paused`: nothing is sent,
    events wait."""


class WebhookEndpointPatch(TypedDict):
    """Absent fields keep their values."""

    url: NotRequired[str]
    """An https address on the internet."""
    event_types: NotRequired[
        list[
            Literal[
                "member.created",
                "member.updated",
                "member.moved",
                "member.ended",
                "member.reopened",
                "member.withdrawn",
                "member.merged",
                "member.erased",
                "invitation.sent",
                "invitation.bounced",
                "invitation.suppressed",
                "file.done",
                "file.held",
                "file.failed",
                "plan.queue.opened",
                "plan.queue.closed",
            ]
        ]
    ]
    """Types of the events that are sent; empty for all."""
    state: NotRequired[Literal["active", "paused"]]
    """`active`: what has waited is sent at once, to an address that is not verified after a test."""


class WebhookReplay(TypedDict):
    """What is sent again: either field, not both."""

    event_id: NotRequired[str]
    """The event that is sent again."""
    since: NotRequired[str]
    """All events from this time (UTC) on."""


class WebhookTarget(TypedDict):
    """A program of the account that is sent its events."""

    id: int
    """Primary identifier."""
    type: Literal["webhook_endpoints"]
    url: str
    event_types: list[
        Literal[
            "member.created",
            "member.updated",
            "member.moved",
            "member.ended",
            "member.reopened",
            "member.withdrawn",
            "member.merged",
            "member.erased",
            "invitation.sent",
            "invitation.bounced",
            "invitation.suppressed",
            "file.done",
            "file.held",
            "file.failed",
            "plan.queue.opened",
            "plan.queue.closed",
        ]
    ]
    """Empty for all."""
    state: Literal["unverified", "active", "paused"]
    """`unverified`: it is only sent a `webhook.test`, until it answers with 2xx. While it is not `active`,
    events wait for it, for 30 days at most."""
    paused_reason: Literal["asked", "gone", "failing", "unverified"] | None
    """`asked`: by a PATCH; `gone`: it answered 410 for five minutes; `failing`: for five days; `unverified`:
    it answered no test with 2xx for a day."""
    attempts: int
    """Attempts of the next event that have failed."""
    next_attempt_at: str | None
    """When the next event is tried again; null unless an attempt has failed."""
    last_error: str | None
    """Why the last attempt failed, such as `status_500` or `timeout`; null after a success."""
    failing_since: str | None
    """Since when no webhook was taken."""
    delivered_at: str | None
    """When a webhook was taken last."""
    created_at: str
    secret: NotRequired[str]
    """Signs the webhooks. Only the answers to its creation and to a rotation have it."""


class WebhookEndpoint(TypedDict):
    """A webhook endpoint in its envelope."""

    links: MappingLinks
    data: WebhookTarget


class WebhookEndpoints(TypedDict):
    """Every webhook endpoint of the account, by id."""

    links: MappingLinks
    data: list[WebhookTarget]


class Events(TypedDict):
    """A page of events, the oldest first."""

    links: PageLinks
    data: list[Event]


class TokenRequest(TypedDict):
    """A token request. Leave `client_id` and `client_secret` out with HTTP Basic."""

    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    grant_type: Literal["client_credentials"]
    scope: NotRequired[str]
    """Scopes of the client, separated by spaces; without it, all of them."""


class RevocationRequest(TypedDict):
    """A revocation. Leave `client_id` and `client_secret` out with HTTP Basic."""

    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    token: str
    token_type_hint: NotRequired[str]
    """Changes nothing."""


class Token(TypedDict):
    """An access token."""

    access_token: str
    """Sent as `Authorization: Bearer …`."""
    token_type: Literal["bearer"]
    expires_in: int
    """Lifetime in seconds."""
    scope: str
    created_at: int
    """Seconds since 1970."""


class AuthorizationServer(TypedDict):
    """What a program needs to get tokens (RFC 8414)."""

    issuer: str
    token_endpoint: str
    revocation_endpoint: str
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    grant_types_supported: list[str]
    response_types_supported: list[str]
    """Empty: nobody signs in by a browser."""
    scopes_supported: list[str]
    """A client has some of them."""
    service_documentation: str


class Fault(TypedDict):
    """One field at fault."""

    field: str
    """The body's member, dotted below it (`metadata.color`), or the query parameter."""
    code: Literal[
        "required",
        "wrong_type",
        "too_long",
        "control_character",
        "lookalike_character",
        "not_a_date",
        "in_the_future",
        "before_1900",
        "expiry_before_effective",
        "not_allowed",
        "not_ten_digits",
        "malformed_email",
        "malformed_zipcode",
        "too_many_keys",
        "empty_key",
        "unknown_field",
        "not_enrolled",
        "not_unique",
        "read_only",
        "repeated",
        "unknown_parameter",
        "empty",
        "too_many_records",
        "too_many_blank_lines",
        "unknown_encoding",
        "idempotency_key_reused",
        "too_many_uploads",
        "too_many_files",
        "too_many_bytes",
        "too_many_taken",
        "storage_used_up",
        "suggestion_open",
        "too_many_at_once",
        "report_open",
        "no_such_member",
        "member_exists",
        "other_plan",
        "idempotency_in_flight",
        "wrong_state",
        "cursor_too_old",
        "cursor_unknown",
        "second_person_needed",
    ]
    """`required`: The field is missing, null or blank, and must not be."""
    message: str
    """The rule in words; it never repeats the value."""
    did_you_mean: NotRequired[str]
    """The similar name of a field or parameter that exists."""


class ProblemRemedy(TypedDict):
    """What to do about a problem."""

    action: Literal[
        "accept_mapping",
        "approve_file",
        "cancel_file",
        "create_member",
        "declare_encoding",
        "give_mapping",
        "list_accounts",
        "list_clients",
        "list_invitations",
        "list_messages",
        "list_plans",
        "list_provider_groups",
        "list_users",
        "move_member",
        "name_account",
        "name_sheet",
        "rename_member",
        "rename_members",
        "say_header",
        "say_mode",
        "show_member",
        "stop_suppressing",
        "update_member",
    ]
    """The word of the remedy."""
    method: str
    """Method of the operation."""
    path: str
    """Its path; an id that the service does not know is a name in braces."""
    note: NotRequired[str]
    """What its request has to be like."""


class Problem(TypedDict):
    """Problem details (RFC 9457)."""

    type: str
    """Its fragment is the kind of problem: `malformed`, `unauthorized`, `forbidden`, `second_person_needed`,
    `suspended`, `not_found`, `method_not_allowed`, `not_acceptable`, `timeout`, `conflict`, `wrong_state`,
    `gone`, `precondition_failed`, `too_large`, `unsupported_media_type`, `invalid`, `rate_limited`,
    `headers_too_large`, `internal`, `unavailable`."""
    title: str
    detail: str
    request_id: str
    status: int
    instance: str
    """The request's path."""
    errors: NotRequired[list[Fault]]
    """All faults, or what is wrong more exactly."""
    did_you_mean: NotRequired[dict[str, str]]
    """Ignored fields and parameters, each with the similar name that exists."""
    remedy: NotRequired[ProblemRemedy]
    """What to do about it, where one operation does it."""


class OAuthError(TypedDict):
    """An error of RFC 6749, section 5.2."""

    error: Literal[
        "invalid_request",
        "invalid_scope",
        "unsupported_grant_type",
        "invalid_client",
        "rate_limited",
    ]
    error_description: str


class Health(TypedDict):
    """Health of the process."""

    status: Literal["ok", "ready"]
    revision: NotRequired[str]
    """Of the database."""


Mapping = TypedDict(
    "Mapping",
    {
        "columns": "NotRequired[dict[str, str | None]]",
        "fields": "NotRequired[dict[str, MappingRule]]",
        "skip": "NotRequired[list[MappingRowRule]]",
        "end": "NotRequired[list[MappingRowRule]]",
        "questions": 'NotRequired[dict[str, Literal["unrelated"]]]',
        "delimiter": 'NotRequired[Literal[",", "\\t", "|", ";"]]',
        "header_row": "NotRequired[int]",
        "sheet": "NotRequired[str]",
        "clear": "NotRequired[str | list[str]]",
        "plans": "NotRequired[dict[str, str]]",
        "ssn": 'NotRequired[Literal["plain"]]',
        "834": "NotRequired[MappingOf834]",
    },
)

MappingRule: TypeAlias = "MappingSteps | MappingConstant"


class MappingSteps(TypedDict):
    """The steps that make a value, taken in this order: column, join, part, values, dates, open, pad."""

    column: NotRequired[str | list[str]]
    """The column, or columns to join; by default the field's."""
    join: NotRequired[str]
    """What stands between joined cells; a space by default."""
    blank: NotRequired[str]
    """What stands for a joined cell, other than the first, that is blank."""
    part: NotRequired[Literal["first_name", "middle_name", "last_name", "phone"]]
    """What to take of the cell."""
    values: NotRequired[dict[str, str | bool | None]]
    """Word to value, in any letter case; the empty word is a blank cell, null clears the field."""
    dates: NotRequired[str | list[str]]
    """`MM/DD/YYYY`, `DD-MON-YY`, `excel`; the first that fits. `YY` needs `pivot`."""
    pivot: NotRequired[int]
    """Two-digit years up to this are 20YY, others 19YY."""
    open: NotRequired[str | list[str]]
    """Dates that mean no end: the field is cleared."""
    pad: NotRequired[int]
    """Zeros are added until there are so many digits."""


class MappingConstant(TypedDict):
    """The same value in every row."""

    constant: str | bool
    """The value of every row."""


class MappingRowRule(TypedDict):
    """Rows by a cell."""

    column: str
    """The column whose cell is looked at."""
    equals: NotRequired[str | list[str]]
    """The whole cell, in any letter case; the empty text is a blank cell."""
    starts_with: NotRequired[str | list[str]]
    """What the cell begins with, in any letter case."""


class MappingOf834(TypedDict):
    """What an account says of its 834s."""

    coverages: NotRequired[Literal["all"] | list[str]]
    """The insurance lines whose coverages count."""
    identify: NotRequired[str | MemberWays]
    """What the `external_id` is made from: one way, or one each for subscribers and dependents."""
    member_id: NotRequired[str | MemberWays]
    """What the `member_id` is made from; without it, what the `external_id` is."""
    person_code: NotRequired[str]
    """The reference with a person's number in the family; `REF*17` by default."""
    plan: NotRequired[str | list[str]]
    """What names the plan."""
    family_coverage: NotRequired[Literal["own", "subscriber"]]
    """Whether a subscriber's family coverage (HD05) covers dependents without their own."""
    verify: NotRequired[Literal["compare", "full"]]
    """The meaning of BGN08 = 4."""
    counts: NotRequired[Literal["strict", "lenient"]]
    """Whether wrong counts are refused."""
    tests: NotRequired[Literal["dry_run", "apply"]]
    """What becomes of a test (ISA15 = T) in production."""


class MemberWays(TypedDict):
    """What identifiers are made from: one way each for subscribers and dependents."""

    subscriber: str
    dependent: str
