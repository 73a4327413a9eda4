"""docs/operator.md and docs/invitations.md say what is so: their routes, commands and words exist,
and their examples run.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS, PAGES
from frontdesk.cli.app import load
from frontdesk.db import Database
from frontdesk.interface.document import REQUEST_ID
from frontdesk.invitations.message import FILTERS, NAMES
from frontdesk.invitations.model import ReportEffect, ReportEvent, SuppressionReason
from frontdesk.mailbox.catcher import SCRIPTED, SLOW_SECONDS
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from tests.conftest import Api
from tests.factories import make_operator

DOCS = Path(__file__).parents[2] / "docs"
PAGE, INVITATIONS = ((DOCS / name).read_text() for name in ("operator.md", "invitations.md"))
TABLED = re.findall(r"^\| ([A-Z]+ /\S+) \|", PAGE, re.MULTILINE)
EXAMPLE = re.compile(r"```http\n(\w+) (\S+)\n(.*?)```.*?```json\n(.*?)```", re.DOTALL)
EXAMPLES = [*EXAMPLE.findall(PAGE), *EXAMPLE.findall(INVITATIONS)]
SHELL = "\n".join(re.findall(r"```sh\n(.*?)```", INVITATIONS, re.DOTALL))


def test_every_route_is_in_the_openapi_document_or_on_the_page() -> None:
    of_customers = {f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS}
    others = {f"{endpoint.method} {endpoint.path}" for endpoint in (*PAGES, *OPERATORS)}
    assert set(TABLED) - of_customers == others
    assert set(TABLED) & of_customers == {"GET /metrics", "GET /healthz", "GET /readyz"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_every_metric_is_on_the_page(api: Api, db: Database) -> None:
    served = api.as_(make_operator(db).token).get("/metrics").text
    names = set(re.findall(r"^# TYPE (frontdesk_\w+) ", served, re.MULTILINE))
    told = set(re.findall(r"`(frontdesk_\w+)`", PAGE)) | {
        name for name in names if name.startswith("frontdesk_queue_estimate_")
    }
    assert names == told


def test_every_request_with_a_body_is_shown_on_a_page() -> None:
    linked = set(re.findall(r"\]\((\S+\.md)\)", PAGE))
    shown = PAGE + "".join((DOCS / name).read_text() for name in linked)
    taking = [endpoint for endpoint in OPERATORS if endpoint.takes_json]
    assert len(taking) >= 2
    assert [
        each.path for each in taking if f"```http\n{each.method} {each.path}\n" not in shown
    ] == []


def test_the_scopes_on_the_page_are_the_routes_own() -> None:
    for method, path, scope in re.findall(
        r"^\| ([A-Z]+) (/\S+) \| (operator|none) \|", PAGE, re.MULTILINE
    ):
        [endpoint] = [
            each for each in (*ENDPOINTS, *OPERATORS) if (each.method, each.path) == (method, path)
        ]
        # The mailbox looks at tokens itself.
        asked = Scope.OPERATOR if path.startswith("/sandbox/") else endpoint.scope
        assert scope == (asked or "none")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_examples_are_answered_as_the_pages_say(api: Api, db: Database) -> None:
    assert len(EXAMPLES) == 4
    operator = api.as_(make_operator(db).token)
    for method, path, body, answer in EXAMPLES:
        asked = {"json": json.loads(body), "headers": {"X-Request-Id": REQUEST_ID}}
        answered = operator.request(method, path, **asked)
        assert answered.json() == json.loads(answer)
        assert answered.json().get("status", 200) == answered.status_code


@pytest.mark.parametrize("line", re.findall("^frontdesk .*", SHELL, re.MULTILINE))
def test_a_command_of_the_page_can_be_given(line: str) -> None:
    words = shlex.split(line.partition(" < ")[0])[1:]
    command: Any = load(words.pop(0))
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    # raises for an unknown option or a wrong number of arguments
    command.make_context("frontdesk", words)


def test_the_page_names_every_word_that_one_may_meet() -> None:
    words = [
        *(f"| {word} |" for word in (*ReportEffect, *ReportEvent)),
        *(f"`{word}`" for word in (*SuppressionReason, *FILTERS)),
        *(f"`{name}@…`" for name in SCRIPTED),
        *(f"`{{{{ {name} }}}}`" for name in NAMES),
        f"after {SLOW_SECONDS} s",
    ]
    assert [word for word in words if word not in INVITATIONS] == []
