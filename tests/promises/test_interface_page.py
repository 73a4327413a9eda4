"""docs/interface.md states the contract as it is: its examples run in order, and it names every
path, field, header and code.
"""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS
from frontdesk.app import App
from frontdesk.codes import Where
from frontdesk.db import Database
from frontdesk.eligibility.fields import FIELDS
from frontdesk.installation import build_asgi
from frontdesk.interface.bodies import schemas
from frontdesk.interface.parameters import HEADERS
from frontdesk.invitations.model import NotInvitedReason
from frontdesk.plans.changes import create_plan, create_provider_group
from frontdesk.plans.model import NewPlan
from frontdesk.queues.ingest import set_duty
from frontdesk.web.problems import PROBLEMS, status_of
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api
from tests.factories import NOW, Customer, make_customer
from tests.interface.made import MARKED
from tests.promises.examples import ANY_TEXT, REQUEST_AND_ANSWER, parts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/interface.md").read_text()
CELLS = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
# in the first cells of tables
TABLED = {name for cell in CELLS for name in re.findall(r"`([^`]+)`", cell)}
EXAMPLES = re.findall(REQUEST_AND_ANSWER, PAGE, re.DOTALL)


@pytest.fixture
def caller(app: App, db: Database) -> Iterator[tuple[Api, Customer]]:
    """The caller of the page's examples, whose account has one plan."""
    customer = make_customer(
        db, plan_count=0, scopes=frozenset({Scope.CUSTOMER, Scope.ELIGIBILITY_READ})
    )
    with db.write() as tx:
        group = create_provider_group(tx, name="Primary Care", external_id=None, now=NOW)
        create_plan(tx, NewPlan(customer.account_id, group.id, "gold-2027", "Gold", None), now=NOW)
        set_duty(tx, group.id, "doctor-1", on_duty=True, now=NOW)
    log = io.StringIO()
    with TestClient(build_asgi(app, Telemetry(log))) as http:
        yield Api(http, customer.token, log), customer


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_examples_are_answered_as_the_page_says(caller: tuple[Api, Customer]) -> None:
    api, customer = caller
    assert len(EXAMPLES) == 16
    for method, path, request, status, expected in EXAMPLES:
        head, body = parts(request, is_answer=False)
        body = body.replace("CLIENT_ID", customer.client_id).replace(
            "CLIENT_SECRET", customer.client_secret
        )
        head = head or {"Content-Type": "application/json"}
        answer = api.request(method, path, content=body.encode(), headers=head)
        assert (path, answer.status_code) == (path, int(status)), answer.text
        headers, body = parts(expected, is_answer=True)
        assert {name: answer.headers.get(name) for name in headers} == headers
        content = answer.json() if answer.content else None
        assert content == (filled_in(json.loads(body), content) if body else None)


def filled_in(expected: Any, answer: Any) -> Any:
    """What the page says, with the answer's own values where the page has `…`."""
    if isinstance(expected, dict) and isinstance(answer, dict):
        return {name: filled_in(value, answer.get(name)) for name, value in expected.items()}
    return answer if expected == ANY_TEXT and isinstance(answer, str) else expected


def test_the_page_has_every_path() -> None:
    paths = {f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS}
    shown = {f"{method} {path}" for method, path, *_ in EXAMPLES}
    shown |= {path.replace("/plans/1", "/plans/{plan_id}") for path in shown}
    written = MARKED.sub("", PAGE)  # the table of all requests is made from the paths themselves
    assert {path for path in paths - shown if f"`{path}`" not in written} == set()


@pytest.mark.parametrize("name", FIELDS)
def test_the_page_has_every_field_of_a_member(name: str) -> None:
    assert f"\n| `{name}` | {'required' if FIELDS[name].required else 'optional'} | " in PAGE


@pytest.mark.parametrize("body", ["Plan", "PlanQueue", "File", "Caller", "EligibilityChange"])
def test_the_page_has_every_field_of_an_answer(body: str) -> None:
    assert set(schemas()[body]["properties"]) - TABLED == set()


def test_the_page_has_every_header_of_an_answer() -> None:
    plain = {"Content-Disposition", "Connection", "Content-Security-Policy"}
    assert {name for name in HEADERS if not re.search(rf"\b{name}\b", PAGE)} - plain == set()


def test_the_page_has_every_code() -> None:
    words = codes.of(Where.FAULT, Where.WARNING, Where.OAUTH)
    assert {*(word for word in words if not word.is_kind), *Scope} - TABLED == set()
    assert {
        reason for reason in NotInvitedReason if f"`none; reason={reason}`" not in PAGE
    } == set()
    rows = [f"\n| {problem.status} | `{kind}` | " for kind, problem in PROBLEMS.items()]
    rows += [f"\n| `{code}` | {status_of(code)} | " for code in codes.of(Where.OAUTH)]
    assert [row for row in rows if row not in PAGE] == []


def test_sources_cite_sections_that_the_page_has() -> None:
    sources = "".join(path.read_text() for path in ROOT.glob("src/**/*.py"))
    cited = re.findall(r"docs/interface\.md, ([A-Z][\w ]+)", " ".join(sources.split()))
    assert len(cited) >= 4
    assert set(cited) - set(re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)) == set()
