"""Faults: the codes of `errors[]` in a problem, of a batch's results, and of refused rows.

Each code has the request that leads to it, where one short request does; a test sends them.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from frontdesk.codes.model import POST_MEMBER, Code, Example, Kind, Remedy, Where

_fault = partial(Code.declared, Where.FAULT)
_invalid = partial(_fault, kind=Kind.INVALID)


def _member(
    fields: Mapping[str, Any], field: str, rule: str, *, headers: Mapping[str, str] | None = None
) -> Example:
    """A POST of the member E-1001 with these fields."""
    return Example(POST_MEMBER, field, rule, {"external_id": "E-1001", **fields}, headers or {})


REQUIRED = _invalid(
    "required",
    "The field is missing, null or blank, and must not be.",
    example=_member({"last_name": None}, "last_name", "must not be null or blank"),
)
WRONG_TYPE = _invalid(
    "wrong_type",
    "The value has another JSON type than the field's.",
    example=_member(
        {"zipcode": 2134}, "zipcode", "must be a string, so that leading zeros are kept"
    ),
)
TOO_LONG = _invalid(
    "too_long",
    "The text is longer than the field allows.",
    example=_member({"first_name": "R" * 101}, "first_name", "must have at most 100 characters"),
)
CONTROL_CHARACTER = _invalid(
    "control_character",
    "The text contains a control character, a bidirectional one too, or half of a surrogate pair.",
    example=_member({"city": "Bos\x07ton"}, "city", "must not contain control characters"),
)
LOOKALIKE_CHARACTER = _invalid(
    "lookalike_character",
    "The identifier has an invisible character, or another dash or space than hyphen and space, so "
    "it would look like another member's.",
    example=_member(
        {"member_id": "M\u20131001"},
        "member_id",
        "must not have invisible characters, nor other dashes and spaces than hyphen and space: it "
        "would look like another identifier; send it with plain ones, or without them",
    ),
)
NOT_A_DATE = _invalid(
    "not_a_date",
    "The value is not a real date in ISO 8601 form.",
    example=_member(
        {"dob": "01/31/1977"},
        "dob",
        "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp; it looks like month/day/year",
    ),
)
IN_THE_FUTURE = _invalid(
    "in_the_future",
    "The date of birth is in the future.",
    example=_member({"dob": "2077-01-11"}, "dob", "must not be in the future"),
)
BEFORE_1900 = _invalid(
    "before_1900",
    "The date of birth is before 1900.",
    example=_member({"dob": "1877-01-11"}, "dob", "must not be before 1900"),
)
EXPIRY_BEFORE_EFFECTIVE = _invalid(
    "expiry_before_effective",
    "expiry_date is before effective_date on the record as it would be.",
    example=_member(
        {"effective_date": "2026-01-01", "expiry_date": "2025-12-31"},
        "expiry_date",
        "must not be before effective_date",
    ),
)
NOT_ALLOWED = _invalid(
    "not_allowed",
    "The value is not one of the allowed ones.",
    example=_member(
        {"gender": "f"},
        "gender",
        "must be one of male, female, other, unknown; it looks like a code",
    ),
)
NOT_TEN_DIGITS = _invalid(
    "not_ten_digits",
    "The phone number does not have the 10 digits of a number of North America.",
    example=_member({"phone": "555-0100"}, "phone", "must have exactly 10 digits"),
)
MALFORMED_EMAIL = _invalid(
    "malformed_email",
    "The e-mail address is malformed.",
    example=_member(
        {"email": "robin@example"},
        "email",
        "must be an e-mail address of at most 254 characters, in a domain that can have mail",
    ),
)
MALFORMED_ZIPCODE = _invalid(
    "malformed_zipcode",
    "The zip code is malformed.",
    example=_member(
        {"zipcode": "0213"},
        "zipcode",
        "must have 5 or 9 digits, or 5 and 4 with a hyphen; it looks like a zip without its "
        "leading zeros",
    ),
)
TOO_MANY_KEYS = _invalid(
    "too_many_keys",
    "metadata has more than 50 keys.",
    example=_member(
        {"metadata": {f"key_{n}": "x" for n in range(51)}}, "metadata", "must have at most 50 keys"
    ),
)
EMPTY_KEY = _invalid(
    "empty_key",
    "metadata has a key without a character.",
    example=_member({"metadata": {"": "North"}}, "metadata", "must not have an empty key"),
)
UNKNOWN_FIELD = _invalid(
    "unknown_field",
    "There is no such field (where unknown ones are refused).",
    example=_member(
        {"favourite_color": "blue"},
        "favourite_color",
        "there is no such field",
        headers={"Prefer": "handling=strict"},
    ),
)
NOT_ENROLLED = _invalid(
    "not_enrolled",
    "There is no such member under the plan (only in files, which can end or compare a member).",
)
NOT_UNIQUE = _invalid(
    "not_unique",
    "Another record carries this value already.",
    example=Example(
        POST_MEMBER,
        "member_id",
        "is already in use by another record",
        {
            "external_id": "E-1002",
            "member_id": "M-1001",
            "first_name": "Robin",
            "last_name": "Sample",
            "dob": "1977-01-11",
            "gender": "female",
            "zipcode": "02134",
            "effective_date": "2026-01-01",
        },
    ),
)
READ_ONLY = _invalid(
    "read_only",
    "The field can't be changed here.",
    example=Example(
        "PATCH /v2/plans/1",
        "active",
        "can't be changed here; leave it out or echo it",
        {"active": False},
    ),
)
REPEATED = _invalid(
    "repeated",
    "A query parameter is given more than once.",
    example=Example(
        "GET /v2/plans?external_id=gold&external_id=silver", "external_id", "must be given once"
    ),
)
UNKNOWN_PARAMETER = _invalid(
    "unknown_parameter",
    "There is no such query parameter (where unknown ones are refused; always of an upload and "
    "a mapping).",
    example=Example(
        "GET /v2/plans?colour=blue",
        "colour",
        "there is no such parameter",
        headers={"Prefer": "handling=strict"},
    ),
)
EMPTY = _invalid(
    "empty",
    "The upload has no content, or the batch no record.",
    example=Example(
        "POST /v2/plans/1/eligibility-files",
        "body",
        "must be a file; it is empty",
        headers={"Content-Type": "text/csv"},
    ),
)
TOO_MANY_RECORDS = _invalid(
    "too_many_records",
    "The batch has more than 1,000 records.",
    example=Example("POST /v2/plans/1/eligibility/batch", "records", "must be 1,000 at most"),
)
TOO_MANY_BLANK_LINES = _invalid(
    "too_many_blank_lines",
    "The batch has more than 1,000 blank lines.",
    example=Example(
        "POST /v2/plans/1/eligibility/batch",
        "records",
        "must have 1,000 blank lines between them at most",
        headers={"Content-Type": "application/x-ndjson"},
    ),
)
UNKNOWN_ENCODING = _invalid(
    "unknown_encoding",
    "The declared encoding is not one that is read (only with files).",
    example=Example(
        "POST /v2/plans/1/eligibility-files?encoding=klingon",
        "encoding",
        "The encoding is not one of those that are read: ascii, cp1252, cp437, cp850, "
        "iso8859-1, iso8859-15, mac-roman, utf-16, utf-16-be, utf-16-le, utf-8, utf-8-sig.",
        "external_id\nE-1001\n",
        headers={"Content-Type": "text/csv"},
    ),
)
IDEMPOTENCY_KEY_REUSED = _invalid(
    "idempotency_key_reused",
    "The idempotency key was sent before, with another request.",
    example=Example(
        "POST /v2/plans/1/eligibility-files",
        "Idempotency-Key",
        "was sent before with another request; a key is for one request and its retries",
        "external_id\nE-1002\n",
        headers={"Content-Type": "text/csv", "Idempotency-Key": "members-2026-11-20"},
    ),
)
TOO_MANY_UPLOADS = _fault(
    "too_many_uploads",
    "The account has as many open uploads as it may have.",
    kind=Kind.RATE_LIMITED,
)
TOO_MANY_FILES = _fault(
    "too_many_files",
    "The account has as many eligibility files that wait or run as it may have.",
    kind=Kind.RATE_LIMITED,
)
TOO_MANY_BYTES = _fault(
    "too_many_bytes",
    "The account's eligibility files that wait or run have as many bytes as they may have.",
    kind=Kind.TOO_LARGE,
)
TOO_MANY_TAKEN = _fault(
    "too_many_taken",
    "The record has another account's value, and too many records had one today; send it "
    "again tomorrow.",
    kind=Kind.RATE_LIMITED,
)
STORAGE_USED_UP = _fault(
    "storage_used_up",
    "The account has stored as many bytes as it may in a day; writes are taken again tomorrow.",
    kind=Kind.RATE_LIMITED,
)
SUGGESTION_OPEN = _fault(
    "suggestion_open",
    "Another mapping is being suggested for this account.",
    kind=Kind.RATE_LIMITED,
)
TOO_MANY_AT_ONCE = _fault(
    "too_many_at_once",
    "Too many lists, batches, files or changes of the account are under way.",
    kind=Kind.RATE_LIMITED,
)
REPORT_OPEN = _fault(
    "report_open", "Another whole report is on its way to this client.", kind=Kind.RATE_LIMITED
)
NO_SUCH_MEMBER = _fault(
    "no_such_member",
    "No member of the account has this external_id, and the request creates none.",
    remedy=Remedy.CREATE_MEMBER,
    kind=Kind.NOT_FOUND,
    example=Example(
        "POST /v2/plans/1/eligibility?only=update",
        "external_id",
        "No member of the account has this external_id, and the request creates none.",
        {"external_id": "E-9999", "last_name": "Sample-Lee"},
    ),
)
MEMBER_EXISTS = _fault(
    "member_exists",
    "A member of the account has this external_id already, and the request updates none.",
    remedy=Remedy.UPDATE_MEMBER,
    kind=Kind.PRECONDITION_FAILED,
    example=_member(
        {"last_name": "Sample-Lee"},
        "external_id",
        "A member of the account has this external_id already, and the request updates none.",
        headers={"If-None-Match": "*"},
    ),
)
OTHER_PLAN = _fault(
    "other_plan",
    "The member is under another plan of the account, and the request moves none.",
    remedy=Remedy.MOVE_MEMBER,
    kind=Kind.CONFLICT,
    example=Example(
        "POST /v2/plans/2/eligibility?move=false",
        "external_id",
        "The member is under another plan of the account, and the request moves none.",
        {"external_id": "E-1001", "last_name": "Sample-Lee"},
    ),
)
IDEMPOTENCY_IN_FLIGHT = _fault(
    "idempotency_in_flight",
    "A request with this idempotency key is under way; send it again.",
    kind=Kind.CONFLICT,
)
WRONG_STATE = _fault(
    "wrong_state",
    "The thing is in a state in which that can't be done to it.",
    kind=Kind.WRONG_STATE,
)
CURSOR_TOO_OLD = _fault(
    "cursor_too_old",
    "Events after this place are deleted already: read the members anew, and the feed from its start.",
    kind=Kind.GONE,
)
CURSOR_UNKNOWN = _fault(
    "cursor_unknown",
    "The feed has no such event: read the members anew, and the feed from its start.",
    kind=Kind.GONE,
)
SECOND_PERSON_NEEDED = _fault(
    "second_person_needed",
    "The account wants another client or operator than the uploader for this.",
    kind=Kind.SECOND_PERSON_NEEDED,
)

# What a request may ask for with its member: to create one only, to update one only, to move none.
INTENT = (NO_SUCH_MEMBER, MEMBER_EXISTS, OTHER_PLAN)
