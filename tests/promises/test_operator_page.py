"""docs/operator.md says what is so: it has every route that the OpenAPI document has not, and its examples run."""

import json
import re
from pathlib import Path

import pytest

from frontdesk.access.model import Scope
from frontdesk.api.openapi import REQUEST_ID
from frontdesk.api.routes import ENDPOINTS, PAGES
from frontdesk.db import Database
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from tests.conftest import Api
from tests.factories import make_operator

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operator.md").read_text()
TABLED = re.findall(r"^\| ([A-Z]+ /\S+) \|", PAGE, re.MULTILINE)
EXAMPLES = re.findall(r"```http\n(\w+) (\S+)\n(.*?)```.*?```json\n(.*?)```", PAGE, re.DOTALL)


def test_every_route_is_in_the_openapi_document_or_on_the_page() -> None:
    of_customers = {f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS}
    others = {f"{endpoint.method} {endpoint.path}" for endpoint in (*PAGES, *OPERATORS)}
    assert set(TABLED) - of_customers == others
    assert set(TABLED) & of_customers == {"GET /metrics", "GET /healthz", "GET /readyz"}


def test_every_request_that_takes_a_body_is_shown_on_the_page_or_on_one_that_it_links() -> None:
    linked = set(re.findall(r"\]\((\S+\.md)\)", PAGE))
    shown = PAGE + "".join((DOCS / name).read_text() for name in linked)
    taking = [endpoint for endpoint in OPERATORS if endpoint.takes_json]
    assert len(taking) >= 2
    assert [each.path for each in taking if f"```http\n{each.method} {each.path}\n" not in shown] == []


def test_the_scopes_on_the_page_are_the_routes_own() -> None:
    for method, path, scope in re.findall(r"^\| ([A-Z]+) (/\S+) \| (operator|none) \|", PAGE, re.MULTILINE):
        [endpoint] = [each for each in (*ENDPOINTS, *OPERATORS) if (each.method, each.path) == (method, path)]
        # The mailbox looks at tokens itself.
        asked = Scope.OPERATOR if path.startswith("/sandbox/") else endpoint.scope
        assert scope == (asked or "none")


@pytest.mark.parametrize(("method", "path", "body", "answer"), EXAMPLES)
def test_the_examples_are_answered_as_the_page_says(
    method: str, path: str, body: str, answer: str, api: Api, db: Database
) -> None:
    operator = make_operator(db)
    asked = {"json": json.loads(body), "headers": {"X-Request-Id": REQUEST_ID}}
    answered = api.as_(operator.token).request(method, path, **asked)
    assert answered.json() == json.loads(answer)
    assert answered.json().get("status", 200) == answered.status_code


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 3
