"""The tables of the interface: schemas of JSON bodies (docs/interface.md) and of the mapping of eligibility files, parameters and
headers, in the notation of `notation`. A member's fields are those of the table `eligibility.fields`.

The mapping's schema takes what the parser takes (`mapping.parser`), but for four rules: a date of `open` is a real one,
no two names of columns, nor two words, are the same once letter case and spaces are taken away, and an open question is taken
with a rule for its column in `end` or `skip`.
"""

import re

from frontdesk.api.notation import Schema, read_fields, read_objects
from frontdesk.eligibility import fields

_SCHEMAS = r"""
ProviderGroup: The group of doctors that serves a plan.
    id: integer — Primary identifier.
    type: "provider_groups"
    name: string
    external_id: string?
    created_at: time
PlanQueueInfoCacheInfo: How long the queue's values are served.
    ttl: count — In seconds.
    expires_at: time — When the values are read again.
PlanQueueInfo: The plan's queue; all values are of one moment.
    estimated_wait_time: integer {"minimum": -1} — Seconds until a patient joining now reaches a doctor; -1 when none is on duty.
    queue_length: count — Patients waiting in this plan's queue.
    is_active: boolean — Whether a doctor is on duty for the plan now.
    cache_info?: PlanQueueInfoCacheInfo
PlanQueueInterval: The interval that a share of the waits of patients joining now is expected in. Its ends count.
    share: number — Of the waits, between the ends: 0.8.
    low, high: integer? — Seconds; null when no doctor is on duty for the plan.
Plan: A plan. Only reads have `queue_info`.
    id: integer — Primary identifier of the plan in the service.
    type: "plans"
    external_id: string — Identifier of the plan outside the service.
    name: string
    description: string?
    active: boolean — Whether the plan accepts patients; not the same as `queue_info.is_active`.
    created_at: time
    provider_group: ProviderGroup
    queue_info?: PlanQueueInfo
    queue_interval?: PlanQueueInterval
PageLinks: Addresses of this page and of the next.
    self: string — The request's address.
    next?: string — The next page, if there is one.
Plans = PageLinks&Plan[]: Plans in the order of `id`; one plan is an array of one.
PlanPatch: Absent fields keep their values; `{}` changes nothing. The plan's other fields may be sent back, but another `id`,
        `type`, `active` or `created_at` is the fault `read_only`.
    name?: name
    description?: string? {"maxLength": DESCRIPTION_LENGTH} — null or blank clears it.
    external_id?: name — Unique among the account's plans.
FileProblem: Why the file failed or is held.
    code: FILE_PROBLEMS — {FILE_PROBLEMS}
    message: string — The reason in words; it never repeats what the file says.
    place: integer? — Row (834: segment) at fault; the first is 1.
    suggestion?: object {"additionalProperties": true} — `needs_mapping`: the suggested `mapping`, its reasons, figures.
UsedMapping: The mapping that read the file.
    name: string? — Name of the account's mapping; null for one that came with the file.
    version: string {"pattern": "^[0-9a-f]{12}$"} — First digits of the SHA-256 of its JSON, keys in order.
File: An eligibility file and how far it is.
    id: integer — Primary identifier.
    type: "eligibility_files"
    plan_id: integer — Plan of the file's members.
    undoes_id: integer? — The file that this one takes back.
    state: FileState — `held`: a person has to approve it.
    step: FileStep — Done now or done last: check the file, apply its rows, end the members that a full file omits.
    mode: FileMode — What the upload or the 834 says. `compare` reports differences and writes nothing.
    dry_run: boolean — Whether nothing is written.
    client: string — Who handed it in: the `client_id`, or `cli:` and the operator.
    file_name: string? {"maxLength": 255} — Its name, if the upload gave one.
    format: Format? — null until the service knows it.
    encoding: string? — Of its text; until the check has ended, the declared one.
    delimiter: string? — Between the columns of a CSV; null until the service knows it.
    sheet: string? — The requested sheet; null stands for the first visible one.
    mapping: UsedMapping?
    file_date: date? — The date that the file states, else the day it came.
    size_bytes: count — Size of the body as it was sent.
    sha256: sha256? — SHA-256 of the body as it was sent.
    rows_total: count? — null until the check has ended.
    rows_done: count
    counts: closed {"properties": COUNTED} — Rows by outcome, where there are any. A row that is `warned` counts twice.
    codes: {count} — Report lines by code.
    members_before: count? — Full file: the plan's members with access before it.
    members_missing: count? — Full file: the members that it omits.
    ignored_columns: string[] — Columns (CSV) and keys (JSON lines) that are no field; 40 characters of each, 20 at most.
    problem: FileProblem?
    created_at: time
    started_at: time? — null until a worker has begun with the rows.
    finished_at: time? — null until the file has ended.
FileLinks: Addresses of the file and of its report.
    self, report: string
EligibilityFile = FileLinks&File: An eligibility file in its envelope.
EligibilityFiles = PageLinks&File[]: A page of eligibility files, the newest first.
StoredMapping: A mapping that the account keeps.
    type: "eligibility_mappings"
    name: string
    is_default: boolean — Whether files that come without a mapping are read by it.
    changed_at: time
    mapping: Mapping — As it was sent.
MappingLinks: The request's address.
    self: string
EligibilityMapping = MappingLinks&StoredMapping: A mapping in its envelope.
EligibilityMappings = MappingLinks&StoredMapping[]: Every mapping of the account, by name.
SuggestedColumn: A column of the file, and what it may hold.
    column: string — Its name in the file.
    fields: string[] — Fields that the mapping makes of it; none if it is not used.
    confidence: number {"minimum": 0, "maximum": 1} — How sure that is: its name and its values count.
    samples: string[] {"maxItems": 5} — The most frequent shapes of its values: letters are X and x, digits 9.
    note: string? — Why it is not used although its name is that of an identifier.
AnswerChoice: An answer that a person may give.
    does: string — What it does.
    mapping: object {"$ref": "#/components/schemas/Mapping"} — What it adds to the mapping.
SuggestionQuestion: A column that a person has to decide about.
    column: string — Its name in the file.
    question: string — What it may be.
    choices: AnswerChoice[] — The answers.
RefusedRows: Rows that one fault would refuse.
    field, code: string
    rows: count
    advice: string? — What to give for a field that no column holds, with an example.
MappingSuggestion: A mapping that would read the file. No value of a member is in it.
    type: "mapping_suggestions"
    format: Format
    rows: count — Rows that were looked at: 1,000 at most.
    mapping: object {"additionalProperties": true} — To be stored or sent once `questions` are answered in it.
    columns: SuggestedColumn[]
    questions: SuggestionQuestion[] — What a person has to answer: a mapping that says `open` of a column is refused.
    refused_rows: count — Rows that would be refused, if their members were new.
    skipped_rows: count — Rows that the mapping leaves out, such as totals.
    refused: RefusedRows[] — What would refuse them; a row may have several faults.
    reasons?: string[] — Of an 834: why its members are named so.
    people?: count — Of an 834: the people that it names.
    dependents?: count — Of an 834: how many of them are dependents.
    references?: ReferenceFigures[] — Of an 834: who carries which reference.
ReferenceFigures: A reference of an 834 that members carry.
    reference: string
    people: count — Those who carry it.
    with_others: count — Those who carry a value that somebody else carries, too.
    looks_like_ssn: boolean
EligibilityMappingSuggestion = MappingLinks&MappingSuggestion: A suggestion in its envelope.
EligibleMember = NewMember|MemberChange: A new member, or a change of a stored one: the `external_id` decides.
NewMember: A member that may be new. Text is trimmed and must not hold control characters.
MemberChange: A change of a stored member: absent fields keep their values. Text is read as that of a new member.
EligibleMembers = EligibleMember[] {"minItems": 1, "maxItems": MOST_RECORDS}: Members to be written in this order.
BatchResult: The result of one record. A refused record has `detail` and perhaps `errors`, a written one all the others.
    index: count — Its place in the batch, from 0.
    status: integer — What a POST of the record alone would be answered: 201, 200, or the status of its problem.
    outcome?: Outcome
    id?: integer — Identifier of the member record.
    external_id?: string
    changed?: string[] — The fields that an update changed.
    left_plan?: string — `external_id` of the plan that a moved record was under.
    invitation?: string — As the header `Invitation`.
    warnings?: string[] — As the header `Eligibility-Warnings`.
    detail?: string — Why the record was refused.
    errors?: Fault[] {"minItems": 1} — All faults of the record.
BatchCounts: Records by outcome.
    created, updated, unchanged, moved, refused: count
BatchResults: The result of each record, in the order of the batch.
    links: MappingLinks
    data: BatchResult[]
    counts: BatchCounts
MemberEnd: The end of a member's access.
    on: day — Last day of access. It may be past or to come.
MemberRename: The new identifier of a member.
    external_id: string {"maxLength": 255, "pattern": "\\S"} — Unique.
    member_id?: string {"maxLength": 255, "pattern": "\\S"} — Unique. Without it a `member_id` that equals the old `external_id`
        changes with it.
Eligibility: These nine fields, and no others.
    id: integer — Identifier of the member record.
    external_id: string
    dob: date
    first_name, last_name: string
    gender: GENDERS
    member_id, zipcode: string
    metadata: {string}
InvitationStatus: How far the invitation of a member is.
    state: InvitationState? — null for a member without an invitation.
    reason: string? — Why it has this state: {STEPS} Without an invitation, why the member has none: {REASONS}
    at: time? — The time since which it has this state.
EligibilityRecord: A member as it is stored. A field without a value is null.
    id: integer — Identifier of the member record.
    type: "eligibility_members"
    plan_id: integer — Plan of the member.
    external_id, member_id, first_name, last_name: string
    middle_name: string?
    dob: date
    gender: GENDERS
    email, phone: string?
    zipcode: string
    city, county, state: string?
    effective_date: date
    expiry_date: date?
    medical_eligibility, medical_enrollment, medical_plan_description, payor_name, payor_plan_name: string?
    relationship_code, relationship_code_hipaa, subscriber_relationship: string?
    metadata: {string}
    eligible: boolean — Whether the member has access today (UTC): from `effective_date` to `expiry_date`, both inclusive.
    created_at, updated_at: time
    invitation: InvitationStatus
EligibilityRecordEnvelope = MappingLinks&EligibilityRecord: A member in its envelope.
EligibilityRecords = PageLinks&EligibilityRecord[]: Members, by id.
EligibilityChange: A change of a member. Other changes than those of fields have none in `changed`.
    id: integer — Identifier of the change.
    type: "eligibility_changes"
    at: time
    outcome: Outcome — What happened to the member.
    plan_id: integer — The member's plan after the change.
    changed: {value[]} — The changed fields, each with its value before and after; `null` stands for none. Without the values that
        retention has removed.
    client: string — Who changed the member: the `client_id`, or `cli:` and the operator.
    request_id: string
    file_id: integer? — The eligibility file of the change; null for a request.
EligibilityChanges = PageLinks&EligibilityChange[]: Changes of a member, the oldest first.
CallerAccount: An account.
    id: integer
    name: string
CallerClient: An API client.
    client_id, name: string
CallerLimits: The requests of this minute.
    requests_per_minute, remaining: count
    reset_seconds: count — Seconds until the minute ends.
Caller: The client behind a token, as the service sees it.
    type: "callers"
    account: CallerAccount? — null for a client of the operator.
    client: CallerClient
    scopes: string[] — Every right of the token, also those that `customer` includes.
    environment: Environment
    token_expires_at: time
    limits: CallerLimits
CallerEnvelope = MappingLinks&Caller: The caller in its envelope.
EventData: The ids of what an event is about; it holds no value of a person. An event has those that belong to its type.
    eligibility_id?: integer — The member.
    plan_id?: integer — The plan, of a member the one after the event.
    from_plan_id?: integer — The plan that a moved member left.
    file_id?: integer? — The eligibility file; null for a member that a request changed.
    invitation_id?: integer — The invitation.
    fields?: string[] — Names of the member's fields that changed.
    request_id: string? — The request that caused the event, if there was one.
Event: Something that has happened.
    id: EVENT_ID — Identifies the event; of a webhook it is the `webhook-id`.
    type: EVENT_TYPES — {EVENT_TYPES}
    timestamp: time — When it happened.
    data: EventData
NewWebhookEndpoint: A webhook endpoint to create.
    url: string {"minLength": 1, "maxLength": URL_LENGTH} — An https address on the internet. A sandbox takes http on its own
        machine too.
    event_types?: SUBSCRIBED[] — Types of the events that are sent; empty, which is the default, for all.
    state?: EndpointState — `paused`: nothing is sent, events wait.
WebhookEndpointPatch: Absent fields keep their values.
    url?: string {"minLength": 1, "maxLength": URL_LENGTH} — An https address on the internet.
    event_types?: SUBSCRIBED[] — Types of the events that are sent; empty for all.
    state?: EndpointState — `active`: what has waited is sent at once.
WebhookReplay: What is sent again: either field, not both.
    event_id?: EVENT_ID — The event that is sent again.
    since?: moment — All events from this time (UTC) on.
WebhookTarget: A program of the account that is sent its events.
    id: integer — Primary identifier.
    type: "webhook_endpoints"
    url: string
    event_types: SUBSCRIBED[] — Empty for all.
    state: EndpointState — While it is `paused`, events wait for it, for 30 days at most.
    paused_reason: PauseReason? — `asked`: by a PATCH; `gone`: it answered 410; `failing`: for five days.
    attempts: count — Attempts of the next event that have failed.
    next_attempt_at: time? — When the next event is tried again; null unless an attempt has failed.
    last_error: string? — Why the last attempt failed, such as `status_500` or `timeout`; null after a success.
    failing_since: time? — Since when no webhook was taken.
    delivered_at: time? — When a webhook was taken last.
    created_at: time
    secret?: string {"pattern": "^whsec_[A-Za-z0-9+/]{43}=$"} — Signs the webhooks. Only the answers to its creation and to a
        rotation have it.
WebhookEndpoint = MappingLinks&WebhookTarget: A webhook endpoint in its envelope.
WebhookEndpoints = MappingLinks&WebhookTarget[]: Every webhook endpoint of the account, by id.
Events = PageLinks&Event[]: A page of events, the oldest first.
TokenRequest: A token request. Leave `client_id` and `client_secret` out with HTTP Basic.
    client_id?, client_secret?: string
    grant_type: "client_credentials"
    scope?: string — Scopes of the client, separated by spaces; without it, all of them.
RevocationRequest: A revocation. Leave `client_id` and `client_secret` out with HTTP Basic.
    client_id?, client_secret?: string
    token: string {"minLength": 1}
    token_type_hint?: string — Changes nothing.
Token: An access token.
    access_token: string — Sent as `Authorization: Bearer …`.
    token_type: "bearer"
    expires_in: integer — Lifetime in seconds.
    scope: string
    created_at: integer — Seconds since 1970.
Fault: One field at fault.
    field: string — The body's member, dotted below it (`metadata.color`), or the query parameter.
    code: ERROR_CODES — {ERROR_CODES}
    message: string — The rule in words; it never repeats the value.
    did_you_mean?: string — The similar name of a field or parameter that exists.
Problem: Problem details (RFC 9457).
    type: string — Its fragment is the kind of problem: {KINDS}.
    title, detail, request_id: string
    status: integer
    instance: string — The request's path.
    errors?: Fault[] {"minItems": 1} — All faults, or what is wrong more exactly.
    did_you_mean?: {string} — Ignored fields and parameters, each with the similar name that exists.
OAuthError: An error of RFC 6749, section 5.2.
    error: OAUTH_ERRORS
    error_description: string
Health: Health of the process.
    status: "ok"|"ready"
    revision?: string — Of the database.
Mapping = closed: How the files of a sender name things, and how their values are read. Fields may be named in any letter case.
    columns?: {FIELDS|METADATA_FIELD|null} {"propertyNames": {"pattern": COLUMN_NAME}} — Column to field or `metadata.KEY`; to
        null if it is not to be read.
    fields?: {MappingRule} {"properties": OF_IDENTIFIERS, "propertyNames": {"pattern": TARGET}, "maxProperties": MOST_RULES} —
        Field, `metadata.KEY`, `plan` or `family` to the rule that makes its value.
    skip?: MappingRowRule[] {"maxItems": MOST_ROW_RULES} — Rows to leave out, also those of `end`.
    end?: MappingRowRule[] {"maxItems": MOST_ROW_RULES} — Rows that end their members, on `expiry_date` or the file's day.
    questions?: {"unrelated"} {"propertyNames": {"pattern": COLUMN_NAME}} — Columns of a suggestion that may say whose access has
        ended: `unrelated` says nothing about access; `open` is refused until `end` or `skip` names the column.
    delimiter?: DELIMITERS
    header_row?: header_row — The row with the names of the columns; without it the row is found.
    sheet?: sheet — The sheet of a workbook.
    clear?: not_blank+ — The words that clear a field, instead of `\N`.
    plans?: {not_blank} — What the file calls a plan to the plan's `external_id`.
    ssn?: "plain" — Social security numbers may be identifiers, stored and shown as they are.
    834?: MappingOf834
MappingRule = MappingSteps|MappingConstant: How the value of one field is made.
MappingSteps = closed {"anyOf": [{"required": ["pivot"]}, {"properties": {"dates": LONG_YEARS}}]}: The steps
        that make a value, taken in this order: column, join, part, values, dates, open, pad.
    column?: column+ {"maxItems": MOST_JOINED, "uniqueItems": true} — The column, or columns to join; by default the field's.
    join?: joint — What stands between joined cells; a space by default.
    blank?: joint — What stands for a joined cell, other than the first, that is blank.
    part?: CELL_PARTS — What to take of the cell.
    values?: {cell|boolean|null} — Word to value, in any letter case; the empty word is a blank cell, null clears the field.
    dates?: date_format+ {"maxItems": MOST_FORMATS} — `MM/DD/YYYY`, `DD-MON-YY`, `excel`; the first that fits. `YY` needs `pivot`.
    pivot?: integer {"minimum": 0, "maximum": 99} — Two-digit years up to this are 20YY, others 19YY.
    open?: day+ — Dates that mean no end: the field is cleared.
    pad?: integer {"minimum": 1, "maximum": LONGEST_PAD} — Zeros are added until there are so many digits.
MappingConstant = closed: The same value in every row.
    constant: constant|boolean — The value of every row.
MappingRowRule = closed {"anyOf": [{"required": ["equals"]}, {"required": ["starts_with"]}]}: Rows by a cell.
    column: column {"maxLength": LONGEST_VALUE} — The column whose cell is looked at.
    equals?: string+ — The whole cell, in any letter case; the empty text is a blank cell.
    starts_with?: not_blank+ — What the cell begins with, in any letter case.
MappingOf834 = closed: What an account says of its 834s.
    coverages?: "all"|lines — The insurance lines whose coverages count.
    identify?: way|MemberWays — What the `external_id` is made from: one way, or one each for subscribers and dependents.
    member_id?: way|MemberWays — What the `member_id` is made from; without it, what the `external_id` is.
    person_code?: REFERENCE — The reference with a person's number in the family; `REF*17` by default.
    plan?: plan_way+ — What names the plan.
    family_coverage?: FAMILY_WORDS — Whether a subscriber's family coverage (HD05) covers dependents without their own.
    verify?: VERIFY_WORDS — The meaning of BGN08 = 4.
    counts?: COUNTS_WORDS — Whether wrong counts are refused.
MemberWays = closed: What identifiers are made from: one way each for subscribers and dependents.
    subscriber, dependent: way
"""

# Only parameters that a request needs have an example: the reference page fills it in, and would send the others with
# every request that a reader tries.
_EXAMPLES: dict[str, object] = {"asset": "page.js", "mapping_name": "hr-export"}
_EXAMPLES |= dict.fromkeys(("plan_id", "eligibility_id", "file_id", "endpoint_id"), 1)
# By key. A parameter that is required is of the path, one with a capital is a header. In the query the key is the name behind
# the thing (`file_mode` is `mode`), and `page_size` is `page[size]`.
_PARAMETERS = r"""
plan_id: integer — `id` of the plan.
asset: string — Name of the file.
file_id: integer — `id` of the file.
file_format?: Format — Format of the file, whatever `Content-Type` says. Without it `Content-Type` decides, then the content.
file_mode?: "change"|"full" — `full` ends the members that the file omits, `change` none, whatever an 834 says of itself.
file_dry_run?: boolean — `true`: the report and the counts, without a change.
file_encoding?: string {"pattern": "^[A-Za-z0-9._-]{1,32}$"} — Encoding of a text without a byte order mark; without it the
        `charset` of `Content-Type`, else utf-8.
file_sheet?: sheet — Name of the sheet of a workbook; without it the mapping's, else the first one.
file_file_name?: string {"minLength": 1, "maxLength": FILE_NAME_LENGTH} — The file's name, for people; without it that of
        `Content-Disposition`. It must not name a member.
file_header_row?: header_row — Number of the row with the names of the columns; without it the mapping's, else it is found.
file_mapping?: string — Name of a mapping of the account, or a mapping itself: a JSON object, percent-encoded. Without it the
        account's default mapping counts; `{}` is none.
file_suggest_mapping?: boolean — `true`: answer a mapping that would read the first 1,000 rows; nothing is loaded or stored.
mapping_name: MAPPING_NAME — Name of the mapping: letters, digits, `.`, `_` or `-`.
mapping_default?: boolean — `true`: files that come without a mapping are read by this one. Without it that stays as it is.
mapping_keep?: boolean — `false`: the mapping is for this file only; else it becomes the account's default.
report_format?: "csv"|"jsonl" — Format of the report; jsonl by default.
report_outcome?: COUNTS — Only lines with this outcome.
report_code?: string {"pattern": "^[a-z_]{1,64}$"} — Only lines with this code.
report_external_id?: string {"minLength": 1, "maxLength": 255} — Only rows of the member with exactly this `external_id`.
report_page_size?: integer {"minimum": 1, "maximum": 10000} — Lines per page; without it and `page[after]` all lines.
report_page_after?: string {"pattern": "^[0-9]{1,9}[.][0-9]{1,9}$"} — Where the page starts, from `Link` of the page before.
file_state?: FileState — Only files in this state.
file_sha256?: sha256 — Only files with this SHA-256 of the body.
file_page_size?: integer {"minimum": 1, "maximum": 1000} — Files per page; 100 by default.
file_page_after?: page_start — The `id` below which the page starts; `links.next` has it.
Accept-Encoding?: string — `gzip` for a compressed report.
Idempotency-Key?: string {"pattern": "^[!-~]{1,255}$"} — Your name for this request: 1 to 255 visible ASCII characters. For a
        day a retry with the same key and the same request gets the first answer again; another request is refused.
eligibility_id: integer — `id` of the member.
member_external_id?: string {"minLength": 1, "maxLength": 255} — Only the member with exactly this `external_id`; no other
        parameter is given with it. That of a merged member leads to the kept one.
member_member_id?: string {"minLength": 1, "maxLength": 255} — Only the member with exactly this `member_id`, as `external_id`.
member_email?: string {"minLength": 1, "maxLength": EMAIL_LENGTH} — Only the member with this e-mail address in any letter case,
        as `external_id`.
member_updated_since?: moment — Only members that were created or changed at this time (UTC) or later.
member_eligible_on?: day — Only members with access on this day.
member_page_size?: integer {"minimum": 1, "maximum": 1000} — Members per page; 100 by default.
member_page_after?: page_start — The `id` after which the page starts; `links.next` has it.
history_page_size?: integer {"minimum": 1, "maximum": 1000} — Changes per page; 100 by default.
history_page_after?: page_start — The `id` of the change after which the page starts; `links.next` has it.
event_page_size?: integer {"minimum": 1, "maximum": 1000} — Events per page; 100 by default.
event_page_after?: EVENT_ID — The `id` of the event after which the page starts; `links.next` has it.
endpoint_id: integer — `id` of the webhook endpoint.
queue_interval?: boolean — `true`: each plan has a `queue_interval` beside its `queue_info`.
external_id?: string — Only the plan with exactly this `external_id`.
page_size?: integer {"minimum": 1, "maximum": 1000} — Plans per page; without it the answer holds every plan.
page_after?: page_start — The `id` after which the page starts; `links.next` has it.
If-None-Match?: string — The `ETag` of an earlier read, such as `"8c6c1d7f0a3b2e19"`: 304 if nothing has changed since. To
        write a member, `*`: 412 if it is stored already.
If-Match?: string — The `ETag` of a read of the one plan: 412 if the plan has changed since. `*` is any version. To write a
        member, `*`: 404 if it is not stored.
only?: "update" — `update`: a member that is not stored is 404, as with `If-Match: *`.
move?: boolean — `false`: a member of another plan of the account is 409; without it the member moves.
Prefer?: string — `handling=strict` makes unknown fields and query parameters a fault.
X-Request-Id?: string — An identifier for the log: 1 to 64 letters, digits, `.`, `_` or `-`.
"""

# Headers of answers. One without `?` is in each answer that lists it.
_HEADERS = r"""
X-Request-Id: string {"pattern": "^[A-Za-z0-9._-]{1,64}$"} — Identifies the request in the log: the caller's, else a new one.
X-Content-Type-Options: "nosniff" — Browsers must not guess another content type.
Referrer-Policy: "no-referrer" — No page that is opened from here learns this address.
Content-Security-Policy: string — The page loads from this service only, and sends requests to it only.
Cache-Control?: string — Whether, and how long, the answer may be kept.
Pragma?: "no-cache" — `Cache-Control` for HTTP/1.0 (RFC 6749).
Connection: "close" — The server does not read the rest of the body.
Location: string — Address of the new file, or of the new endpoint.
Vary: string — The answer depends on this header of the request.
Content-Encoding?: "gzip" — `gzip` if the request accepts it.
Link?: string — Address of the next page, if there is one (RFC 8288).
Content-Disposition: string — Name to save the file by.
ETag: string {"pattern": "^\"[^\"]+\"$"} — Version of what was read, for `If-None-Match`; of one plan for `If-Match` too.
Allow: string — Methods of this path.
WWW-Authenticate?: string — How to authenticate, and what was wrong.
Retry-After?: integer {"minimum": 1} — Seconds to wait before the next request.
RateLimit?: string {"pattern": "^\"minute\";r=[0-9]+;t=[0-9]+$"} — Requests left in this minute (`r`), and seconds until it
        ends (`t`). With each answer to a request that counts against the client's limit.
RateLimit-Policy?: string {"pattern": "^\"minute\";q=[0-9]+;w=60$"} — Requests per minute of this client (`q`).
RateLimit-Limit?: count — Requests per minute of this client. The three older headers come with each answer to a client
        with a limit of its own, to others when less than a tenth is left.
RateLimit-Remaining?: count — Requests left in this minute.
RateLimit-Reset?: count — Seconds until the minute ends.
Ignored-Fields?: string — Unknown fields of the body, which were ignored: percent-encoded, 40 characters of each, 20 names at
        most; `+3` at the end stands for 3 more. A refusal names them too.
Ignored-Parameters?: string — Unknown parameters of the query, which were ignored, written as `Ignored-Fields` are.
Did-You-Mean?: string {"pattern": "^[^=,]+=[a-z_\\[\\]]+(?:,[^=,]+=[a-z_\\[\\]]+)*$"} — Unknown fields and parameters, each
        with the similar name that exists.
Idempotency-Replayed?: "true" — The answer of an earlier request with the same `Idempotency-Key`; nothing was written now.
Eligibility-Outcome: Outcome — What the request did. `moved`: the record was under another plan of the account.
Eligibility-Changed?: string {"pattern": "^[a-z_]+(?:,[a-z_]+)*$"} — The fields that an update changed, if any.
Eligibility-Left-Plan?: string — `external_id`, percent-encoded, of the plan that a moved record was under.
Eligibility-Warnings?: string {"pattern": "^[a-z_]+(?:;member=[0-9]+)?(?:,[a-z_]+(?:;member=[0-9]+)?)*$"} — Likely mistakes
        that are no faults; the record is written. {WARNINGS}
Invitation: string {"pattern": "^(?:immediate|queued|none; reason=[a-z_]+)$"} — Whether the member is invited by e-mail: at
        once, in the account's batches (`queued`), or not, with the reason. {REASONS}
"""


def _parameter(key: str, schema: Schema, *, is_optional: bool) -> tuple[str, Schema]:
    """The parameter as OpenAPI describes it, by its key."""
    name, place = key, "query" if is_optional else "path"
    if key[0].isupper():
        key, place = key.lower().replace("-", "_").removeprefix("x_"), "header"
    elif is_optional:
        name = re.sub("^(?:event|file|history|mapping|member|report)_", "", key)
        name = re.sub("^page_(.*)", r"page[\1]", name)
    parameter = {"name": name, "in": place, "description": schema.pop("description")}
    parameter |= {"required": not is_optional, "schema": schema}
    return key, parameter | ({"example": _EXAMPLES[key]} if key in _EXAMPLES else {})


PARAMETERS: dict[str, Schema] = dict(
    _parameter(key, schema, is_optional=is_optional) for key, is_optional, schema in read_fields(_PARAMETERS)
)
HEADERS: dict[str, Schema] = {
    name: {"description": schema.pop("description"), "required": not is_optional, "schema": schema}
    for name, is_optional, schema in read_fields(_HEADERS)
}


def schemas() -> dict[str, Schema]:
    """Every named schema. Bodies stay open to unknown fields, because the service ignores them."""
    found = read_objects(_SCHEMAS)
    member = {field.name: _member_property(field) for field in fields.FIELDS.values()}
    # Two whole objects: generators of clients lose what an `allOf` requires beyond the object that it extends.
    found["NewMember"] |= {"properties": member, "required": list(fields.REQUIRED)}
    found["MemberChange"] |= {"properties": member, "required": ["external_id"]}
    return found


def _member_property(field: fields.Field) -> Schema:
    """The field's schema, widened by what every field allows: spaces around text, and null or blank to clear it."""
    schema = dict(field.kind.schema)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "pattern" in schema:
        again = "" if field.required else "?"
        schema["pattern"] = rf"^\s*(?:{schema['pattern'][1:-1]}){again}\s*$"
    elif field.required:
        schema["pattern"] = r"\S"  # not blank
    elif "string" not in types:
        schema["pattern"] = r"^\s*$"  # blank
    if not field.required:
        schema["type"] = [*types, "null"] if "string" in types else [*types, "string", "null"]
    note = "Required for a new member; never null or blank." if field.required else "null or blank clears it."
    return schema | {"description": f"{field.description} {note}", "examples": [field.example]}
