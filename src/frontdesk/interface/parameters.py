"""The parameters of requests and the headers of answers, each declared once.

A constant has the name of its component in the OpenAPI document, in capitals: FILE_MODE is
`file_mode`, the query parameter `mode` of uploads. Operations list the constants.
"""

from typing import Annotated, Any, Literal, NamedTuple

from frontdesk.codes import Where, sentences
from frontdesk.eligibility.field_kinds import EMAIL_LENGTH
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Outcome
from frontdesk.events.model import EVENT_ID
from frontdesk.files import actions
from frontdesk.files.model import COUNTS, FileState
from frontdesk.formats.model import Format
from frontdesk.interface.schema import (
    Keywords,
    Schema,
    descriptions,
    explained,
    matches,
    one_of,
    schema_of,
)
from frontdesk.interface.words import (
    Count,
    Day,
    HeaderRow,
    Identifier,
    Moment,
    PageSize,
    PageStart,
    Sha256,
    Sheet,
)
from frontdesk.invitations.model import NotInvitedReason, QueuedReason
from frontdesk.queues.model import PATIENT_CLASS, PATIENT_CLASS_FORM


class Parameter(NamedTuple):
    """A parameter of requests: the name of its component, its own name, where it stands (`path`,
    `query` or `header`), and the schema of its value. A path has all of its parameters; the others
    may be left out. The reference page sends the `example` of a parameter that a request needs.
    """

    key: str
    name: str
    place: str
    schema: Schema
    description: str
    example: object = None

    def component(self) -> Schema:
        """The parameter as OpenAPI describes it."""
        described = {
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "required": self.place == "path",
            "schema": self.schema,
        }
        return described | ({} if self.example is None else {"example": self.example})


class Header(NamedTuple):
    """A header of answers. One that is `required` is in each answer that lists it."""

    name: str
    schema: Schema
    description: str
    required: bool

    def component(self) -> Schema:
        """The header as OpenAPI describes it, without its example."""
        return {"description": self.description, "required": self.required, "schema": self.schema}


def _path(name: str, hint: Any, text: str, *, example: object) -> Parameter:
    return Parameter(name, name, "path", schema_of(hint), text, example)


def _query(key: str, name: str, hint: Any, text: str) -> Parameter:
    return Parameter(key, name, "query", schema_of(hint), text)


def _sent(key: str, name: str, text: str, hint: Any = str) -> Parameter:
    """A header of requests."""
    return Parameter(key, name, "header", schema_of(hint), text)


def _header(name: str, text: str, hint: Any = str, *, required: bool = False) -> Header:
    """A header of answers."""
    return Header(name, schema_of(hint), text, required)


PLAN_ID = _path("plan_id", int, "`id` of the plan.", example=1)
ASSET = _path("asset", str, "Name of the file.", example="site.js")
FILE_ID = _path("file_id", int, "`id` of the file.", example=1)
FILE_FORMAT = _query(
    "file_format",
    "format",
    Format,
    "Format of the file, whatever `Content-Type` says. Without it `Content-Type` decides, "
    "then the content.",
)
FILE_MODE = _query(
    "file_mode",
    "mode",
    Literal["change", "full"],
    "`full` ends the members that the file omits, `change` none, whatever an 834 says of itself.",
)
FILE_DRY_RUN = _query(
    "file_dry_run", "dry_run", bool, "`true`: the report and the counts, without a change."
)
FILE_ENCODING = _query(
    "file_encoding",
    "encoding",
    Annotated[str, Keywords(pattern="^[A-Za-z0-9._-]{1,32}$")],
    "Encoding of a text without a byte order mark; without it the `charset` of "
    "`Content-Type`, else utf-8.",
)
FILE_SHEET = _query(
    "file_sheet",
    "sheet",
    Sheet,
    "Name of the sheet of a workbook; without it the mapping's, else the first one.",
)
FILE_FILE_NAME = _query(
    "file_file_name",
    "file_name",
    Annotated[str, Keywords(minLength=1, maxLength=actions.FILE_NAME_LENGTH)],
    "The file's name, for people; without it that of `Content-Disposition`. It must not name "
    "a member.",
)
FILE_HEADER_ROW = _query(
    "file_header_row",
    "header_row",
    HeaderRow,
    "Number of the row with the names of the columns; without it the mapping's, else it is found.",
)
FILE_MAPPING = _query(
    "file_mapping",
    "mapping",
    str,
    "Name of a mapping of the account, or a mapping itself: a JSON object, percent-encoded. "
    "Without it the account's default mapping counts; `{}` is none.",
)
FILE_SUGGEST_MAPPING = _query(
    "file_suggest_mapping",
    "suggest_mapping",
    bool,
    "`true`: answer a mapping that would read the first 1,000 rows; nothing is loaded or stored.",
)
MAPPING_NAME = _path(
    "mapping_name",
    Annotated[str, matches(actions.MAPPING_NAME)],
    "Name of the mapping: letters, digits, `.`, `_` or `-`.",
    example="hr-export",
)
MAPPING_DEFAULT = _query(
    "mapping_default",
    "default",
    bool,
    "`true`: files that come without a mapping are read by this one. Without it that stays as "
    "it is.",
)
MAPPING_KEEP = _query(
    "mapping_keep",
    "keep",
    bool,
    "`false`: the mapping is for this file only; else it becomes the account's default.",
)
REPORT_FORMAT = _query(
    "report_format", "format", Literal["csv", "jsonl"], "Format of the report; jsonl by default."
)
REPORT_OUTCOME = _query(
    "report_outcome", "outcome", Annotated[str, one_of(COUNTS)], "Only lines with this outcome."
)
REPORT_CODE = _query(
    "report_code",
    "code",
    Annotated[str, Keywords(pattern="^[a-z_]{1,64}$")],
    "Only lines with this code.",
)
REPORT_EXTERNAL_ID = _query(
    "report_external_id",
    "external_id",
    Identifier,
    "Only rows of the member with exactly this `external_id`.",
)
REPORT_PAGE_SIZE = _query(
    "report_page_size",
    "page[size]",
    Annotated[int, Keywords(minimum=1, maximum=10000)],
    "Lines per page; without it and `page[after]` all lines.",
)
REPORT_PAGE_AFTER = _query(
    "report_page_after",
    "page[after]",
    Annotated[str, Keywords(pattern="^[0-9]{1,9}[.][0-9]{1,9}$")],
    "Where the page starts, from `Link` of the page before.",
)
FILE_STATE = _query("file_state", "state", FileState, "Only files in this state.")
FILE_SHA256 = _query("file_sha256", "sha256", Sha256, "Only files with this SHA-256 of the body.")
FILE_PAGE_SIZE = _query("file_page_size", "page[size]", PageSize, "Files per page; 100 by default.")
FILE_PAGE_AFTER = _query(
    "file_page_after",
    "page[after]",
    PageStart,
    "The `id` below which the page starts; `links.next` has it.",
)
ACCEPT_ENCODING = _sent("accept_encoding", "Accept-Encoding", "`gzip` for a compressed report.")
IDEMPOTENCY_KEY = _sent(
    "idempotency_key",
    "Idempotency-Key",
    "Your name for this request: 1 to 255 visible ASCII characters. For a day a retry with "
    "the same key and the same request gets the first answer again; another request is "
    "refused.",
    Annotated[str, Keywords(pattern="^[!-~]{1,255}$")],
)
ELIGIBILITY_ID = _path("eligibility_id", int, "`id` of the member.", example=1)
MEMBER_EXTERNAL_ID = _query(
    "member_external_id",
    "external_id",
    Identifier,
    "Only the member with exactly this `external_id`; no other parameter is given with it. "
    "That of a merged member leads to the kept one.",
)
MEMBER_MEMBER_ID = _query(
    "member_member_id",
    "member_id",
    Identifier,
    "Only the member with exactly this `member_id`, as `external_id`.",
)
MEMBER_EMAIL = _query(
    "member_email",
    "email",
    Annotated[str, Keywords(minLength=1, maxLength=EMAIL_LENGTH)],
    "Only the member with this e-mail address in any letter case, as `external_id`.",
)
MEMBER_LAST_NAME = _query(
    "member_last_name",
    "last_name",
    Annotated[str, Keywords(minLength=1, maxLength=FIELDS["last_name"].kind.length)],
    "Only members with exactly this last name in any letter case, who were born on `dob`.",
)
MEMBER_DOB = _query(
    "member_dob",
    "dob",
    Day,
    "Only members with this date of birth and `last_name`; both are given.",
)
MEMBER_UPDATED_SINCE = _query(
    "member_updated_since",
    "updated_since",
    Moment,
    "Only members that were created or changed at this time (UTC) or later.",
)
MEMBER_ELIGIBLE_ON = _query(
    "member_eligible_on", "eligible_on", Day, "Only members with access on this day."
)
MEMBER_PAGE_SIZE = _query(
    "member_page_size", "page[size]", PageSize, "Members per page; 100 by default."
)
MEMBER_PAGE_AFTER = _query(
    "member_page_after",
    "page[after]",
    PageStart,
    "The `id` after which the page starts; `links.next` has it.",
)
HISTORY_PAGE_SIZE = _query(
    "history_page_size", "page[size]", PageSize, "Changes per page; 100 by default."
)
HISTORY_PAGE_AFTER = _query(
    "history_page_after",
    "page[after]",
    PageStart,
    "The `id` of the change after which the page starts; `links.next` has it.",
)
EVENT_PAGE_SIZE = _query(
    "event_page_size", "page[size]", PageSize, "Events per page; 100 by default."
)
EVENT_PAGE_AFTER = _query(
    "event_page_after",
    "page[after]",
    Annotated[str, matches(EVENT_ID)],
    "The `id` of the event after which the page starts; `links.next` has it.",
)
ENDPOINT_ID = _path("endpoint_id", int, "`id` of the webhook endpoint.", example=1)
QUEUE_INTERVAL = _query(
    "queue_interval",
    "queue_interval",
    bool,
    "`true`: each plan has a `queue_interval` beside its `queue_info`.",
)
NEWCOMER_CLASS = _query(
    "newcomer_class",
    "class",
    Annotated[str, matches(PATIENT_CLASS), PATIENT_CLASS_FORM],
    "The estimate is for a patient of this class, and each plan has a `queue_interval` that says so.",
)
EXTERNAL_ID = _query(
    "external_id", "external_id", str, "Only the plan with exactly this `external_id`."
)
PAGE_SIZE = _query(
    "page_size", "page[size]", PageSize, "Plans per page; without it the answer holds every plan."
)
PAGE_AFTER = _query(
    "page_after",
    "page[after]",
    PageStart,
    "The `id` after which the page starts; `links.next` has it.",
)
IF_NONE_MATCH = _sent(
    "if_none_match",
    "If-None-Match",
    'The `ETag` of an earlier read, such as `"8c6c1d7f0a3b2e19"`: 304 if nothing has changed '
    "since. To write a member, `*`: 412 if it is stored already.",
)
IF_MATCH = _sent(
    "if_match",
    "If-Match",
    "The `ETag` of a read of the one plan: 412 if the plan has changed since. `*` is any "
    "version. To write a member, `*`: 404 if it is not stored.",
)
ONLY = _query(
    "only",
    "only",
    Literal["update"],
    "`update`: a member that is not stored is 404, as with `If-Match: *`.",
)
MOVE = _query(
    "move",
    "move",
    bool,
    "`false`: a member of another plan of the account is 409; without it the member moves.",
)
MOVE_OF_BATCH = _query(
    "move_of_batch",
    "move",
    bool,
    "`true`: a member of another plan of the account moves to this one; without it its record is "
    "409.",
)
EMAIL_TAKEN = _query(
    "email_taken",
    "email_taken",
    Literal["drop"],
    "`drop`: an e-mail that another member has is left out, with the warning `email_taken`; "
    "without it the record is refused.",
)
PREFER = _sent(
    "prefer", "Prefer", "`handling=strict` makes unknown fields and query parameters a fault."
)
REQUEST_ID = _sent(
    "request_id",
    "X-Request-Id",
    "An identifier for the log: 1 to 64 letters, digits, `.`, `_` or `-`.",
)
# Headers of answers.
X_REQUEST_ID = _header(
    "X-Request-Id",
    "Identifies the request in the log: the caller's, else a new one.",
    Annotated[str, Keywords(pattern="^[A-Za-z0-9._-]{1,64}$")],
    required=True,
)
X_CONTENT_TYPE_OPTIONS = _header(
    "X-Content-Type-Options",
    "Browsers must not guess another content type.",
    Literal["nosniff"],
    required=True,
)
REFERRER_POLICY = _header(
    "Referrer-Policy",
    "No page that is opened from here learns this address.",
    Literal["no-referrer"],
    required=True,
)
CONTENT_SECURITY_POLICY = _header(
    "Content-Security-Policy",
    "The page loads from this service only, and sends requests to it only.",
    required=True,
)
CACHE_CONTROL = _header("Cache-Control", "Whether, and how long, the answer may be kept.")
PRAGMA = _header("Pragma", "`Cache-Control` for HTTP/1.0 (RFC 6749).", Literal["no-cache"])
CONNECTION = _header(
    "Connection", "The server does not read the rest of the body.", Literal["close"], required=True
)
LOCATION = _header("Location", "Address of the new file, or of the new endpoint.", required=True)
VARY = _header("Vary", "The answer depends on this header of the request.", required=True)
CONTENT_ENCODING = _header("Content-Encoding", "`gzip` if the request accepts it.", Literal["gzip"])
LINK = _header("Link", "Address of the next page, if there is one (RFC 8288).")
CONTENT_DISPOSITION = _header("Content-Disposition", "Name to save the file by.", required=True)
ETAG = _header(
    "ETag",
    "Version of what was read, for `If-None-Match`; of one plan for `If-Match` too.",
    Annotated[str, Keywords(pattern='^"[^"]+"$')],
    required=True,
)
ALLOW = _header("Allow", "Methods of this path.", required=True)
WWW_AUTHENTICATE = _header("WWW-Authenticate", "How to authenticate, and what was wrong.")
RETRY_AFTER = _header(
    "Retry-After", "Seconds to wait before the next request.", Annotated[int, Keywords(minimum=1)]
)
RATELIMIT = _header(
    "RateLimit",
    "Requests left in this minute (`r`), and seconds until it ends (`t`). With each answer to "
    "a request that counts against the client's limit.",
    Annotated[str, Keywords(pattern='^"minute";r=[0-9]+;t=[0-9]+$')],
)
RATELIMIT_POLICY = _header(
    "RateLimit-Policy",
    "Requests per minute of this client (`q`).",
    Annotated[str, Keywords(pattern='^"minute";q=[0-9]+;w=60$')],
)
RATELIMIT_LIMIT = _header(
    "RateLimit-Limit",
    "Requests per minute of this client. The three older headers come with each answer to a "
    "client with a limit of its own, to others when less than a tenth is left.",
    Count,
)
RATELIMIT_REMAINING = _header("RateLimit-Remaining", "Requests left in this minute.", Count)
RATELIMIT_RESET = _header("RateLimit-Reset", "Seconds until the minute ends.", Count)
IGNORED_FIELDS = _header(
    "Ignored-Fields",
    "Unknown fields of the body, which were ignored: percent-encoded, 40 characters of each, "
    "20 names at most; `+3` at the end stands for 3 more. A refusal names them too.",
)
IGNORED_PARAMETERS = _header(
    "Ignored-Parameters",
    "Unknown parameters of the query, which were ignored, written as `Ignored-Fields` are.",
)
DID_YOU_MEAN = _header(
    "Did-You-Mean",
    "Unknown fields and parameters, each with the similar name that exists.",
    Annotated[str, Keywords(pattern=r"^[^=,]+=[a-z_\[\]]+(?:,[^=,]+=[a-z_\[\]]+)*$")],
)
IDEMPOTENCY_REPLAYED = _header(
    "Idempotency-Replayed",
    "The answer of an earlier request with the same `Idempotency-Key`; nothing was written now.",
    Literal["true"],
)
ELIGIBILITY_OUTCOME = _header(
    "Eligibility-Outcome",
    "What the request did. `moved`: the record was under another plan of the account.",
    Outcome,
    required=True,
)
ELIGIBILITY_CHANGED = _header(
    "Eligibility-Changed",
    "The fields that an update changed, if any.",
    Annotated[str, Keywords(pattern="^[a-z_]+(?:,[a-z_]+)*$")],
)
ELIGIBILITY_LEFT_PLAN = _header(
    "Eligibility-Left-Plan",
    "`external_id`, percent-encoded, of the plan that a moved record was under.",
)
ELIGIBILITY_WARNINGS = _header(
    "Eligibility-Warnings",
    "Likely mistakes that are no faults; the record is written."
    + explained(sentences(Where.WARNING)),
    Annotated[
        str,
        Keywords(
            pattern="^[a-z_]+(?:;member=[0-9]+|;field=[a-z_]+)?"
            "(?:,[a-z_]+(?:;member=[0-9]+|;field=[a-z_]+)?)*$"
        ),
    ],
)
INVITATION = _header(
    "Invitation",
    "Whether the member is invited by e-mail: at once, in the account's batches (`queued`), "
    "later than at once with the reason, or not, with the reason."
    + explained(descriptions(QueuedReason))
    + explained(descriptions(NotInvitedReason)),
    Annotated[
        str, Keywords(pattern="^(?:immediate|queued|queued; reason=[a-z_]+|none; reason=[a-z_]+)$")
    ],
    required=True,
)

# By key, in the order of the document.
PARAMETERS = {value.key: value for value in [*globals().values()] if isinstance(value, Parameter)}
HEADERS = {value.name: value for value in [*globals().values()] if isinstance(value, Header)}
