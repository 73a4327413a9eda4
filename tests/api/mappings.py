"""A stored mapping, and the request that stores it."""

from typing import Any

from tests.conftest import Api

MAPPINGS = "/v2/eligibility-mappings"
HR = {
    "columns": {"Employee No": "external_id", "First": "first_name", "Last": "last_name"},
    "fields": {
        "member_id": {"column": "Employee No"},
        "gender": {"column": "Sex", "values": {"M": "male", "F": "female", "": "unknown"}},
        "dob": {"column": "Born", "dates": ["MM/DD/YYYY"]},
        "zipcode": {"column": "ZIP", "pad": 5},
        "expiry_date": {"column": "Until", "dates": ["MM/DD/YYYY"], "open": "9999-12-31"},
        "effective_date": {"constant": "2026-01-01"},
    },
    "skip": [{"column": "Employee No", "equals": ["", "Total"]}],
}


def put(api: Api, name: str, mapping: Any, query: str = "") -> Any:
    return api.request("PUT", f"{MAPPINGS}/{name}{query}", json=mapping)
