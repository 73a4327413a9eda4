"""The examples of the OpenAPI document, as the service would take and answer them; tests send every one of them."""

from typing import Any

from frontdesk.eligibility.fields import FIELDS

Json = dict[str, Any]

REQUEST_ID = "5f0c1a2b00000001"

_PLAN: Json = {
    "id": 1,
    "type": "plans",
    "external_id": "gold-2027",
    "name": "Gold",
    "description": None,
    "active": True,
    "created_at": "2016-09-28T23:33:32Z",
    "provider_group": {
        "id": 1,
        "type": "provider_groups",
        "name": "Primary Care",
        "external_id": None,
        "created_at": "2016-09-28T23:33:32Z",
    },
}
_QUEUE: Json = {
    "estimated_wait_time": 540,
    "queue_length": 2,
    "is_active": True,
    "cache_info": {"ttl": 15, "expires_at": "2026-11-21T09:00:15Z"},
}
_NOBODY_ON_DUTY: Json = _QUEUE | {"estimated_wait_time": -1, "is_active": False}

MEMBER: Json = {field.name: field.example for field in FIELDS.values()}
MEMBER_CHANGE: Json = {"external_id": MEMBER["external_id"], "last_name": "Sample-Lee", "middle_name": None}
MEMBER_ANSWER: Json = {
    "id": 1001,
    "external_id": "AB 123356",
    "dob": "1977-01-11",
    "first_name": "Robin",
    "last_name": "Sample",
    "gender": "female",
    "member_id": "M-100200",
    "zipcode": "02134",
    "metadata": {"department": "North"},
}
CHANGED_MEMBER_ANSWER = MEMBER_ANSWER | {"last_name": MEMBER_CHANGE["last_name"]}

PLAN_PATCH: Json = {
    "name": "Gold Plus",
    "description": "With a shorter wait.",
    "external_id": "gold-plus-2027",
}

TOKEN_REQUEST: Json = {
    "grant_type": "client_credentials",
    "client_id": "client-id",
    "client_secret": "client-secret",
    "scope": "customer",
}
TOKEN: Json = {
    "access_token": "access-token",
    "token_type": "bearer",
    "expires_in": 7200,
    "scope": "customer",
    "created_at": 1795244400,
}
REVOCATION_REQUEST: Json = {
    "token": "access-token",
    "client_id": "client-id",
    "client_secret": "client-secret",
}


def one_plan(base_url: str) -> Json:
    return {"links": {"self": f"{base_url}/v2/plans/1"}, "data": [_PLAN | {"queue_info": _QUEUE}]}


def changed_plan(base_url: str) -> Json:
    return {"links": {"self": f"{base_url}/v2/plans/1"}, "data": [_PLAN | PLAN_PATCH]}


def plan_lists(base_url: str) -> Json:
    """Named examples of the list, for there are three kinds of answer."""
    address = f"{base_url}/v2/plans"
    silver = _PLAN | {"id": 2, "external_id": "silver-2027", "name": "Silver", "queue_info": _NOBODY_ON_DUTY}
    page = {"self": f"{address}?page[size]=1", "next": f"{address}?page[size]=1&page[after]=1"}
    gold = _PLAN | {"queue_info": _QUEUE}
    return {
        "every_plan": _named(
            "Every plan of the account", {"links": {"self": address}, "data": [gold, silver]}
        ),
        "first_page": _named("A page, asked for with `page[size]=1`", {"links": page, "data": [gold]}),
        "no_match": _named(
            "No plan has the `external_id` that was asked for",
            {"links": {"self": f"{address}?external_id=bronze"}, "data": []},
        ),
    }


def member_requests() -> Json:
    return {
        "new_member": _named("A new member, with every field", MEMBER),
        "change": _named("An update: a new last name, and the middle name cleared", MEMBER_CHANGE),
    }


def _named(summary: str, value: Json) -> Json:
    return {"summary": summary, "value": value}


# What the service says of each kind of problem on each kind of endpoint, by the name of the example.
DETAILS: dict[str, dict[str, str]] = {
    "malformed": {
        "two_tokens": "There are two Authorization headers.",
        "not_json": "The body is not valid JSON.",
        "not_an_object": "The body must be a JSON object.",
        "duplicate_keys": "The body has duplicate keys.",
    },
    "unauthorized": {
        "no_token": "The request carries no bearer token.",
        "bad_token": "The access token is unknown, expired or revoked.",
    },
    "not_acceptable": {"accept": "Only application/json is served here."},
    "timeout": {"slow": "The body did not arrive in time."},
    "conflict": {"raced": "The plan is being changed by somebody else."},
    "precondition_failed": {"stale": "The plan has changed since it was read."},
    "too_large": {"large": "The body may have 65536 bytes at most."},
    "unsupported_media_type": {"type": "Send the body as application/json in UTF-8, not compressed."},
    "rate_limited": {"limited": "The client has used its requests of this minute."},
    "method_not_allowed": {"method": "This path has other methods."},
    "headers_too_large": {"long": "The headers may have 16384 bytes at most."},
    "unavailable": {"busy": "The database is busy."},
    "invalid": {"faults": "Some fields are not valid."},
}

# And where an endpoint has words of its own, by operation and kind.
DETAILS_OF: dict[tuple[str, str], dict[str, str]] = {
    ("isReady", "unavailable"): {
        "not_migrated": "The database needs migrating: run frontdesk migrate.",
        **DETAILS["unavailable"],
    },
    ("uploadEligibilityFile", "too_large"): {"large": "The file may have 1073741824 bytes at most."},
    ("uploadEligibilityFile", "unsupported_media_type"): {
        "form": "Send the file itself as the body, not in a form."
    },
}

# The 422 of each operation: query and body that are sent for it, and the faults that are told.
INVALID: dict[str, tuple[str, Json, list[tuple[str, str, str]]]] = {
    "listPlans": (
        "?page[size]=0&page[after]=first",
        {},
        [
            ("page[size]", "not_allowed", "must be a whole number up to 1000"),
            ("page[after]", "not_allowed", "must be a whole number up to 999999999999999999"),
        ],
    ),
    "changePlan": (
        "",
        {"name": " ", "active": False},
        [
            ("name", "required", "must not be null or blank"),
            ("active", "read_only", "can't be changed here; leave it out or echo it"),
        ],
    ),
    "enrolMember": (
        "",
        MEMBER | {"dob": "1977-02-30", "phone": "555", "metadata": {"color": 7}},
        [
            ("dob", "not_a_date", "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp"),
            ("phone", "not_ten_digits", "must have exactly 10 digits"),
            ("metadata.color", "wrong_type", "must be a string"),
        ],
    ),
    "uploadEligibilityFile": (
        "?mode=all&dry_run=yes&format=xlsx",
        {},
        [
            ("format", "not_allowed", "must be one of csv, jsonl, 834"),
            ("mode", "not_allowed", "must be one of change, full"),
            ("dry_run", "not_allowed", "must be one of true, false"),
        ],
    ),
    "approveEligibilityFile": (
        "", {}, [("state", "wrong_state", "The file is done; only one that is held can be approved.")]),
    "cancelEligibilityFile": (
        "", {}, [("state", "wrong_state", "The file is done; only one that waits or is held can be cancelled.")]),
    "undoEligibilityFile": (
        "", {}, [("state", "wrong_state", "The file is waiting. Let it end, or cancel it, before it is undone.")]),
    "reportEligibilityFile": ("?format=pdf", {}, [("format", "not_allowed", "must be one of csv, jsonl")]),
}  # fmt: skip
