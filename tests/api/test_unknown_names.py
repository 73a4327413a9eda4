"""A misspelt field or parameter is never silent: every response names it, with the known name that
is near.
"""

import re

import pytest

from frontdesk.api.eligibility import likely_field
from frontdesk.api.routes import ENDPOINTS
from frontdesk.db import Database
from frontdesk.text import nearest_name
from frontdesk.web.endpoint import Endpoint
from tests.conftest import Api
from tests.factories import EVERY_SCOPE, Customer, make_customer, member_body

STRICT = {"Prefer": "handling=strict"}
OF_V2 = [endpoint for endpoint in ENDPOINTS if endpoint.path.startswith("/v2/")]


@pytest.fixture
def plan(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}"


@pytest.mark.parametrize(
    ("sent", "meant"),
    [("expiration_date", "expiry_date"), ("termination_date", "expiry_date"), ("externalId", "external_id"),
     ("Email", "email"), ("zip_code", "zipcode"), ("postal_code", "zipcode"), ("date_of_birth", "dob"),
     ("sex", "gender"), ("first_nam", "first_name"), ("memberid", "member_id"),
     ("medicalEligibility", "medical_eligibility"),
     ("start_date", "effective_date"), ("favourite_color", None), ("country", None), ("ssn", None),
     ("name", None), ("", None), ("external_id" * 400, None), ("\u00e9" * 40, None), ("(" * 40, None)],
)  # fmt: skip
def test_the_field_that_was_meant_is_found(sent: str, meant: str | None) -> None:
    assert likely_field(sent, {}) == meant


def test_a_name_that_is_far_or_given_already_was_not_meant() -> None:
    assert likely_field("id", {}) == "external_id"
    assert likely_field("id", {"external_id": "1", "id": "2"}) is None
    known = ("external_id", "page[size]", "page[after]")
    near = [nearest_name(sent, known) for sent in ("page_size", "PAGE[AFTER]", "size", "")]
    assert near == ["page[size]", "page[after]", None, None]


def test_every_answer_names_ignored_fields_and_those_that_were_meant(api: Api, plan: str) -> None:
    body = member_body(1, expiration_date="2026-12-31", **{"shoe size": 44, "Zip-Code": "02134"})
    created = api.post(f"{plan}/eligibility", body)
    assert created.status_code == 201
    assert created.headers["Ignored-Fields"] == "expiration_date,shoe%20size,Zip-Code"
    assert created.headers["Did-You-Mean"] == "expiration_date=expiry_date"  # a zipcode is given
    refused = api.post(
        f"{plan}/eligibility", {"externalId": "1", "zip_code": "02134", "shoe size": 44}
    )
    assert refused.status_code == 422
    assert refused.headers["Ignored-Fields"] == "externalId,zip_code,shoe%20size"
    assert refused.headers["Did-You-Mean"] == "externalId=external_id,zip_code=zipcode"
    assert refused.json()["did_you_mean"] == {"externalId": "external_id", "zip_code": "zipcode"}
    assert {fault["code"] for fault in refused.json()["errors"]} == {"required"}
    changed = api.patch(plan, {"Descripton": "New"})
    assert (changed.status_code, changed.headers["Ignored-Fields"]) == (200, "Descripton")
    assert changed.headers["Did-You-Mean"] == "Descripton=description"
    unknown = api.post("/v2/plans/999999/eligibility", {"external_id": "1", "shoe size": 44})
    assert (unknown.status_code, unknown.headers["Ignored-Fields"]) == (404, "shoe%20size")


def test_a_strict_caller_gets_the_field_that_was_meant_in_the_fault(api: Api, plan: str) -> None:
    body = member_body(1, expiration_date="2026-12-31", colour="blue")
    refused = api.post(f"{plan}/eligibility", body, headers=STRICT)
    assert refused.status_code == 422
    told = [
        (fault["field"], fault["code"], fault.get("did_you_mean"))
        for fault in refused.json()["errors"]
    ]
    assert told == [
        ("expiration_date", "unknown_field", "expiry_date"),
        ("colour", "unknown_field", None),
    ]
    assert ("did_you_mean" in refused.json(), "Ignored-Fields" in refused.headers) == (False, False)


def test_names_in_headers_are_encoded_shortened_and_counted(api: Api, plan: str) -> None:
    names = [f"zip code\r\n\u00e9{number:02}" for number in range(30)] + ["x" * 5000]
    answer = api.post(f"{plan}/eligibility", member_body(1) | dict.fromkeys(names, "x"))
    listed = answer.headers["Ignored-Fields"].split(",")
    assert (len(listed), listed[0], listed[-1]) == (21, "zip%20code%0D%0A%C3%A900", "+11")
    assert api.post(f"{plan}/eligibility", {"x" * 5000: 1}).headers["Ignored-Fields"] == "x" * 40
    for answer in (
        api.post(f"{plan}/eligibility", member_body(1)),
        api.get("/v2/plans?external_id=plan-0"),
    ):
        added = {"ignored-fields", "ignored-parameters", "did-you-mean"} & set(answer.headers)
        assert (answer.is_success, added) == (True, set())


def test_a_misspelt_filter_is_named_or_refused(api: Api) -> None:
    answer = api.get("/v2/plans?externalid=plan-0&shoe%20size=1&externalid=plan-1")
    assert (answer.status_code, len(answer.json()["data"])) == (200, 2)
    assert answer.headers["Ignored-Parameters"] == "externalid,shoe%20size"
    assert answer.headers["Did-You-Mean"] == "externalid=external_id"
    refused = api.get("/v2/plans?externalid=plan-0&page[size]=1&page[size]=2", headers=STRICT)
    assert refused.status_code == 422
    repeated = {"field": "page[size]", "code": "repeated", "message": "must be given once"}
    unknown = {
        "field": "externalid",
        "code": "unknown_parameter",
        "message": "there is no such parameter",
    }
    assert refused.json()["errors"] == [repeated, unknown | {"did_you_mean": "external_id"}]


@pytest.mark.parametrize(
    "endpoint", OF_V2, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}"
)
def test_every_endpoint_of_v2_tells_unknown_parameters(
    api: Api, db: Database, endpoint: Endpoint
) -> None:
    api = api.as_(make_customer(db, name="Every", scopes=EVERY_SCOPE).token)
    path = re.sub(r"\{\w+\}", "1", endpoint.path)
    told = api.request(
        endpoint.method, path + "?formatt=csv", json={} if endpoint.takes_json else None
    )
    refused = api.request(endpoint.method, path + "?formatt=csv", headers=STRICT)
    assert [fault["code"] for fault in refused.json()["errors"]] == ["unknown_parameter"]
    if endpoint.strict_query:
        assert told.json()["errors"] == refused.json()["errors"]
    else:
        assert told.headers["Ignored-Parameters"] == "formatt"
