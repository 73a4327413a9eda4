"""Warnings: the record is written, and something about it looks wrong.

Each code has the request that leads to it, where one short request does; a test sends them.
"""

from functools import partial
from typing import Any

from frontdesk.codes.model import POST_MEMBER, Code, Example, Where

_warning = partial(Code.declared, Where.WARNING)


def _member(fields: dict[str, Any]) -> Example:
    """A POST of the member E-1001 with these fields."""
    return Example(POST_MEMBER, body={"external_id": "E-1001", **fields})


DOB_NOT_MIDNIGHT = _warning(
    "dob_not_midnight",
    "The date of birth came as a timestamp that is not midnight; its date as written was taken.",
    field="dob",
    example=_member({"dob": "1977-01-11T08:30:00Z"}),
)
EFFECTIVE_DATE_NOT_MIDNIGHT = _warning(
    "effective_date_not_midnight",
    "The first day came as a timestamp that is not midnight; its date as written was taken.",
    field="effective_date",
    example=_member({"effective_date": "2026-01-01T23:00:00Z"}),
)
EXPIRY_DATE_NOT_MIDNIGHT = _warning(
    "expiry_date_not_midnight",
    "The last day came as a timestamp that is not midnight; its date as written was taken.",
    field="expiry_date",
    example=_member({"expiry_date": "2036-12-31T05:00:00Z"}),
)
DOB_SHIFTED_ONE_DAY = _warning(
    "dob_shifted_one_day",
    "The date of birth moved by exactly one day: the classic time-zone mistake.",
    field="dob",
    example=_member({"dob": "1977-01-10"}),
)
IDENTITY_CHANGED = _warning(
    "identity_changed",
    "First name and date of birth both changed: a recycled identifier, or a twin?",
    field="external_id",
    example=_member({"first_name": "Alex", "dob": "2001-02-03"}),
)
STATE_NOT_RECOGNISED = _warning(
    "state_not_recognised",
    "The state is neither a USPS code nor a state's name; it was kept as sent.",
    field="state",
    example=_member({"state": "Massachussets"}),
)
RELATIONSHIP_CODE_HIPAA_UNKNOWN = _warning(
    "relationship_code_hipaa_unknown",
    "The HIPAA relationship code is unknown; it was kept as sent.",
    field="relationship_code_hipaa",
    example=_member({"relationship_code_hipaa": "77"}),
)
PLACEHOLDER = _warning(
    "placeholder",
    "The value stands for none, such as none@none.com or 0000000000; it was left out, and a stored "
    "value stays.",
    example=_member({"email": "none@none.com"}),
)
LOOKS_LIKE_SSN = _warning(
    "looks_like_ssn",
    "The external_id of the new member looks like a social security number, which is stored and "
    "shown as it is: use another number.",
    field="external_id",
)
SIMILAR_MEMBER = _warning(
    "similar_member",
    "A new member has the names and birth date of a stored one, or its family and its birth date or "
    "first name.",
    field="external_id",
    example=Example(
        POST_MEMBER,
        body={
            "external_id": "E-2001",
            "member_id": "M-2001",
            "first_name": "Robin",
            "last_name": "Sample",
            "dob": "1977-01-11",
            "gender": "female",
            "zipcode": "02134",
            "effective_date": "2026-01-01",
        },
    ),
)
PLAN_INACTIVE = _warning(
    "plan_inactive",
    "The plan accepts no patients at present: was another one meant? The record is stored.",
    field="plan",
)
EMAIL_TAKEN = _warning(
    "email_taken",
    "Another record has the e-mail address, so the record was written without it.",
    field="email",
)
STILL_ENDED = _warning(
    "still_ended",
    "The access has ended, or ends today, and the record names no expiry_date, so the end stays; to "
    "reopen the access, clear expiry_date.",
    field="expiry_date",
)
