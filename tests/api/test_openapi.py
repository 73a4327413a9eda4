"""The OpenAPI document and the reference page."""

import json
import re

import pytest
import schemathesis

from frontdesk.access.scopes import Scope
from frontdesk.api.openapi import openapi_document
from frontdesk.api.routes import ENDPOINTS
from frontdesk.eligibility.parse import FAULT_CODES, WARNINGS
from frontdesk.invitations import Reason
from frontdesk.web.problems import PROBLEMS
from tests.conftest import Api

DOCUMENT = openapi_document("https://api.example.com")


def test_the_document_is_valid_openapi() -> None:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.validate()
    assert len(list(schema.get_all_operations())) == len(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_every_route_is_documented_with_its_scope(endpoint) -> None:  # type: ignore[no-untyped-def]
    operation = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]
    scopes = [scope for way in operation["security"] for scope in way.get("client", [])]
    assert scopes == ([endpoint.scope.value] if endpoint.scope else [])


def test_every_problem_status_is_documented_somewhere() -> None:
    documented = {
        int(status) for path in DOCUMENT["paths"].values() for operation in path.values() if isinstance(operation, dict)
        for status in operation["responses"]
    }  # fmt: skip
    assert {problem.status for problem in PROBLEMS.values()} <= documented


def test_every_scope_warning_and_reason_is_in_the_document() -> None:
    text = json.dumps(DOCUMENT)
    assert not [word for word in (*Scope, *WARNINGS, *Reason) if word not in text]


def test_the_problems_page_names_every_code_with_an_anchor_for_every_type(api: Api) -> None:
    page = api.get("/problems").text
    for name in (*PROBLEMS, *FAULT_CODES, *WARNINGS, *Reason):
        assert f'id="{name}"' in page


def test_the_reference_page_needs_nothing_from_outside(api: Api) -> None:
    page = api.get("/docs")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert not re.findall(r"https?://", page.text)
    for name in re.findall(r'(?:src|href)="(/docs/[^"]+)"', page.text):
        assert api.get(name).status_code == 200


def test_only_the_files_of_the_page_are_served(api: Api) -> None:
    for name in ("page.html", "..%2fproblems.py", "LICENSE", "%2e%2e"):
        assert api.get(f"/docs/{name}").status_code == 404


def test_the_document_is_served_as_json(api: Api) -> None:
    assert api.as_(None).get("/openapi.json").json() == DOCUMENT
