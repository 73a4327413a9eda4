"""Reading one record: every rule of every field, all faults at once, and nothing but faults
whatever is sent.
"""

from contextlib import suppress
from typing import Any

import pytest
from email_validator import validate_email
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.field_kinds import parse_email
from frontdesk.eligibility.fields import FIELDS, read_external_ids
from frontdesk.eligibility.model import MemberRecord
from frontdesk.text import Rejected

TODAY = "2026-11-20"
# a busy machine draws few in a second
UNHURRIED = settings(suppress_health_check=list(HealthCheck))


def read(**body: Any) -> MemberRecord:
    record = parse_member({"external_id": "X"} | body, today=TODAY)
    assert {fault.code for fault in record.faults} <= set(codes.of(Where.FAULT))
    return record


@pytest.mark.parametrize(
    ("field", "sent", "stored"),
    [
        ("first_name", "Zoe\u0308", "Zoë"),
        ("dob", "1977-01-11T00:00:00+14:00", "1977-01-11"),
        ("dob", "1900-01-01", "1900-01-01"),
        ("dob", TODAY, TODAY),
        ("effective_date", "2026-01-01T23:59:59.999-0500", "2026-01-01"),
        ("dob", "\ufeff1977-01-11\u200b", "1977-01-11"),
        ("gender", "FEMALE", "female"),
        ("email", " Robin@Example.COM ", "Robin@Example.COM"),
        ("email", "o'hara@example.com", "o'hara@example.com"),
        ("phone", "+1 (617) 555-0100", "6175550100"),
        ("zipcode", "02134-1000", "02134-1000"),
        ("zipcode", "02134\n", "02134"),
        ("zipcode", "021341000", "021341000"),
        ("state", "massachusetts", "MA"),
        ("medical_eligibility", True, "TRUE"),
        ("relationship_code_hipaa", 1, "01"),
        ("relationship_code_hipaa", 18.0, "18"),
        ("relationship_code_hipaa", "018", "018"),
        ("subscriber_relationship", "dependent", "Dependent"),
        ("metadata", {"b": " kept ", "a": ""}, {"b": " kept ", "a": ""}),
        ("metadata", None, {}),
        ("city", "  ", None),
        ("city", "\u200b", None),
        ("phone", None, None),
        ("external_id", "\u200bAB 1\u200b ", "AB 1"),
        ("phone", "\u202d6175550100\u202c", "6175550100"),
        ("phone", "(617) 555\u20110100", "6175550100"),
        ("phone", "+1\u00a0617\u2013555\u20120100", "6175550100"),
        ("phone", "\u202a+1 (617) 555-\u200b0100\u202c", "6175550100"),
        ("phone", "1-617-555-0100", "6175550100"),
        ("phone", "9999999999", "9999999999"),
        ("zipcode", "02134\u20131234", "02134-1234"),
        ("zipcode", "02134 1234", "02134-1234"),
        ("zipcode", "02134\u00a01234", "02134-1234"),
        ("zipcode", "02134 \u2014 1234", "02134-1234"),
        ("zipcode", "02134-", "02134"),
        ("zipcode", "02134\u2011", "02134"),
        ("external_id", "AB 1-2", "AB 1-2"),
        ("member_id", "Č 1-2", "Č 1-2"),
    ],
)
def test_a_good_value_is_stored_in_its_form(field: str, sent: Any, stored: Any) -> None:
    record = read(**{field: sent})
    assert record.faults == ()
    assert record.given[field] == stored


@pytest.mark.parametrize(
    ("field", "sent", "code"),
    [
        ("external_id", "", "required"),
        ("last_name", "x" * 101, "too_long"),
        ("city", "a\x07b", "control_character"),
        ("city", "a\ud800b", "control_character"),
        ("city", 5, "wrong_type"),
        ("first_name", "\u200b", "required"),
        ("dob", "1977-01-11T00:00:00+0", "not_a_date"),
        ("dob", "2026-11-21", "in_the_future"),
        ("dob", "1899-12-31", "before_1900"),
        ("dob", "1977-W02-2", "not_a_date"),
        ("dob", "1977-01-11 00:00:00", "not_a_date"),
        ("dob", "1977-01-11T25:00:00Z", "not_a_date"),
        ("dob", "\u0661977-01-11", "not_a_date"),
        ("effective_date", 20260101, "wrong_type"),
        ("email", "x" * 250 + "@example.com", "malformed_email"),
        ("phone", "617555010\u0663", "not_ten_digits"),
        ("phone", "617-555-CALL", "not_ten_digits"),
        ("phone", "26175550100", "not_ten_digits"),
        ("phone", 6175550100, "wrong_type"),
        ("phone", "+49 30 901820", "not_ten_digits"),
        ("phone", "+65 6123 4567", "not_ten_digits"),
        ("phone", "+47 22 12 34 56", "not_ten_digits"),
        ("phone", "+1 555 123 456", "not_ten_digits"),
        ("phone", "1 555 123 456", "not_ten_digits"),
        ("phone", "06 12 34 56 78", "not_ten_digits"),
        ("phone", "617+555+0100", "not_ten_digits"),
        ("zipcode", "0213\u20134", "malformed_zipcode"),
        ("zipcode", "02134-12", "malformed_zipcode"),
        ("external_id", "AB\u00a01", "lookalike_character"),
        ("external_id", "AB\u00ad1", "lookalike_character"),
        ("external_id", "AB\u200b1", "lookalike_character"),
        ("external_id", "AB\u20131", "lookalike_character"),
        ("member_id", "AB\u22121", "lookalike_character"),
        ("member_id", "AB1\ufe0f", "lookalike_character"),
        ("external_id", "AB\ufffd1", "lookalike_character"),
        ("member_id", "AB\u02d71", "lookalike_character"),
        ("member_id", "AB\u31641", "lookalike_character"),
        ("zipcode", 2134, "wrong_type"),
        ("invite_immediately", "true", "wrong_type"),
        ("relationship_code_hipaa", True, "wrong_type"),
        ("relationship_code_hipaa", 2**64, "not_allowed"),
        ("metadata", [], "wrong_type"),
        ("metadata", {str(n): "" for n in range(51)}, "too_many_keys"),
    ],
)
def test_a_wrong_value_is_one_fault_with_its_code(field: str, sent: Any, code: str) -> None:
    assert [(fault.field, fault.code) for fault in read(**{field: sent}).faults] == [(field, code)]


@pytest.mark.parametrize(
    ("metadata", "field", "code"),
    [
        ({"color": 1}, "metadata.color", "wrong_type"),
        ({"color": "x" * 501}, "metadata.color", "too_long"),
        ({"x" * 41: "1"}, "metadata." + "x" * 40, "too_long"),
        ({"": "1"}, "metadata", "empty_key"),
        ({"a\r\nb": ""}, "metadata.a%0D%0Ab", "control_character"),
        ({"color": "a\x00"}, "metadata.color", "control_character"),
    ],
)
def test_a_fault_inside_metadata_names_its_key(metadata: Any, field: str, code: str) -> None:
    assert [(fault.field, fault.code) for fault in read(metadata=metadata).faults] == [
        (field, code)
    ]


def test_faults_in_metadata_are_shown_at_once_up_to_the_limit_of_keys() -> None:
    sent: dict[str, Any] = {"a": 1, "b": "x" * 501, "good": "", "c\n": None, "": "1"}
    told = [f"{fault.field} {fault.code}" for fault in read(metadata=sent, city=5).faults]
    assert told[:2] == ["metadata.a wrong_type", "metadata.b too_long"]
    assert told[2:4] == ["metadata.c%0A control_character", "metadata.c%0A wrong_type"]
    assert told[4:] == ["metadata empty_key", "city wrong_type"]
    faults = read(metadata={str(n): n for n in range(5000)}).faults
    assert [fault.code for fault in faults] == ["too_many_keys", *["wrong_type"] * 50]


@pytest.mark.parametrize(
    ("field", "sent", "code", "message"),
    [
        ("medical_eligibility", 5, "wrong_type", "must be TRUE or FALSE, as a string or a boolean"),
        ("medical_enrollment", "5", "not_allowed", "must be TRUE or FALSE; it looks like a code"),
        ("relationship_code_hipaa", 200, "not_allowed", "as a number must be from 0 to 99"),
        ("relationship_code_hipaa", -1, "not_allowed", "as a number must be from 0 to 99"),
        ("relationship_code_hipaa", 1.5, "wrong_type", "must be a string or a whole number"),
        ("metadata", {"": "x"}, "empty_key", "must not have an empty key"),
    ],
)
def test_a_message_tells_the_rule_that_was_broken(
    field: str, sent: Any, code: str, message: str
) -> None:
    assert [(fault.code, fault.message) for fault in read(**{field: sent}).faults] == [
        (code, message)
    ]


@pytest.mark.parametrize(
    ("field", "sent", "warning"),
    [
        ("dob", "1977-01-11T05:00:00Z", "dob_not_midnight"),
        ("state", "Atlantis", "state_not_recognised"),
        ("relationship_code_hipaa", "99", "relationship_code_hipaa_unknown"),
    ],
)
def test_a_likely_mistake_is_kept_and_warned_of(field: str, sent: str, warning: str) -> None:
    record = read(**{field: sent})
    assert record.faults == ()
    [found] = record.warnings
    assert (found.code, found.field) == (warning, field)


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        ("email", "none@none.com"),
        ("email", "NoEmail@corp.example.com"),
        ("email", "no-email@example.com"),
        ("email", "no@no.com"),
        ("phone", "0000000000"),
        ("phone", "(000) 000-0000"),
        ("phone", "111-111-1111"),
        ("phone", "555-555-5555"),
        ("phone", "1234567890"),
        ("phone", "(123) 456-7890"),
        ("phone", "+1 000 000 0000"),
        ("phone", "1-111-111-1111"),
    ],
)
def test_a_placeholder_is_absent_and_warned_of(field: str, sent: str) -> None:
    record = read(**{field: sent})
    assert (record.faults, [*record.given]) == ((), ["external_id"])
    [found] = record.warnings
    assert (found.code, found.field) == ("placeholder", field)


def test_an_address_that_resembles_a_placeholder_is_kept() -> None:
    for email in ("nona@example.com", "robin@none.com", "na@example.com", "test@example.com"):
        assert (read(email=email).given["email"], read(email=email).warnings) == (email, ())


NO_IDENTIFIERS = [
    "1.23457E+11",
    "1.00002E+10",
    "1E+15",
    "#N/A",
    "N/A",
    "null",
    "NULL",
    "NaN",
    "None",
]


@pytest.mark.parametrize("name", ["external_id", "member_id"])
@pytest.mark.parametrize("sent", NO_IDENTIFIERS)
def test_what_a_spreadsheet_leaves_of_an_identifier_refuses_the_row(name: str, sent: str) -> None:
    record = parse_member({"external_id": "X", name: sent}, today=TODAY, lenient=True)
    [fault] = record.faults
    assert (fault.field, fault.code, name in record.given) == (name, "spreadsheet_value", False)
    assert "spreadsheet" in fault.message
    assert "format the column as text" in fault.message
    assert read(**{name: sent}).faults == (), "a POST says what it means"


def test_a_key_that_would_be_refused_counts_as_no_key() -> None:
    sent = ["E-1", "AB\u20111", *NO_IDENTIFIERS, "E+1"]
    expected = ["E-1", *[None] * (len(NO_IDENTIFIERS) + 1), "E+1"]
    assert [*read_external_ids(sent)] == expected
    for key, found in zip(sent, expected, strict=True):
        assert [*read_external_ids([key])] == [found]


def test_in_a_file_a_malformed_email_is_dropped_and_the_row_kept() -> None:
    record = parse_member({"external_id": "X", "email": "a@"}, today=TODAY, lenient=True)
    assert record.faults == ()
    [warning] = record.warnings
    assert (warning.code, warning.field) == ("email_dropped", "email")
    assert warning.detail.startswith("must be an e-mail address")
    assert "email" not in record.given  # absent, so that a stored address stays


@given(st.dictionaries(st.sampled_from(list(FIELDS)), st.text(), max_size=8))
def test_what_was_stored_can_be_sent_again_and_stays_the_same(body: dict[str, Any]) -> None:
    given_ = dict(parse_member(body, today=TODAY).given)
    given_.pop("email_folded", None)
    again = parse_member(given_, today=TODAY).given
    again.pop("email_folded", None)
    assert again == given_


# Addresses that are accepted by a pattern, without the library, as long as they are this short.
SHORT_ADDRESSES = (
    r"[A-Za-z0-9_]{1,12}([.+-][A-Za-z0-9_]{1,12}){0,3}"
    r"@([A-Za-z0-9]{1,12}(-[A-Za-z0-9]{1,12}){0,2}\.){1,3}[A-Za-z]{2,24}"
)


@UNHURRIED
@given(st.from_regex(SHORT_ADDRESSES, fullmatch=True))
def test_a_plain_address_is_accepted_only_if_the_library_accepts_it(email: str) -> None:
    with suppress(Rejected):
        parse_email(email)
        validate_email(email, check_deliverability=False)


UNMAILABLE = [
    *(
        "robin@host.internal",
        "Robin@Service.ONION",
        "robin@printer.local",
        "robin@acme.test",
        "robin@home.arpa",
    ),
    *("robin@example.123", "robin@1.2", "robin|cat@example.com", "|robin@example.com"),
    *(
        "röbin@host.internal",
        "robin@bücher.internal",
        "robin@host\N{FULLWIDTH FULL STOP}internal",
        f"{'r' * 60}@host.lan",
    ),
]


@pytest.mark.parametrize("email", UNMAILABLE)
def test_an_address_that_no_mail_can_reach_is_refused(email: str) -> None:
    [fault] = read(email=email).faults
    assert (fault.field, fault.code) == ("email", "malformed_email")
    assert email not in fault.message


@pytest.mark.parametrize(
    "email", ["robin@internal.com", "robin@test.example", "robin@xn--j6w193g.xn--j6w193g"]
)
def test_an_address_that_only_resembles_one_without_mail_is_kept(email: str) -> None:
    assert read(email=email).given["email"] == email
