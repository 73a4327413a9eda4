"""What the documents say is so."""

import json
import re
import tomllib
from enum import StrEnum
from pathlib import Path

import pytest

from frontdesk.api.routes import ENDPOINTS
from frontdesk.config import SETTINGS
from frontdesk.eligibility.model import Outcome
from frontdesk.events.model import EndpointState
from frontdesk.files.model import FileState
from frontdesk.invitations.model import TRANSITIONS, Delivery, InvitationState
from tests.conftest import Api

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")]
DECISIONS = ROOT / "docs/decisions"
DECISION_START = r"# {number} \S[^\n]*\n\nStatus: in force \(\d{{4}}-\d\d\)\n\n## Decision\n\n\S"
REQUEST = r"\b(GET|POST|PUT|PATCH|DELETE) (/v2/[\w{}/-]*[\w}])(?![\w{}/-]|…)"
UNEXPLAINED = {"httpx2"}  # what starlette's test client speaks through


def test_every_setting_is_documented_with_its_default_and_a_sentence() -> None:
    text = (ROOT / "docs/configuration.md").read_text()
    rows = re.findall(r"^\| (FRONTDESK_\w+) \| (.*?) \| (?:\S.*\.) \|$", text, re.MULTILINE)
    assert rows == [(setting.variable, setting.default) for setting in SETTINGS]


@pytest.mark.parametrize("states", [Outcome, InvitationState, Delivery, FileState, EndpointState])
def test_every_state_diagram_has_the_states_and_changes_of_the_code(states: type[StrEnum]) -> None:
    text = (ROOT / "docs/states.md").read_text()
    [diagram] = re.findall(rf"\.{states.__name__}`\)\n\n```mermaid\n(.*?)```", text, re.DOTALL)
    assert set(re.findall(r"--> (\w+)", diagram)) == set(states)
    if states is InvitationState:
        drawn = re.findall(r"^ +(\w+) --> (\w+):", diagram, re.MULTILINE)
        assert set(drawn) == {(str(start), str(end)) for start, end in TRANSITIONS}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_readme_is_short_and_its_examples_are_answered_as_it_says(api: Api) -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 120
    examples = re.findall(r"```http\n(\w+) (\S+)\n(.*?)```", readme, re.DOTALL)
    answers = [api.request(method, path, json=json.loads(body)) for method, path, body in examples]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert [answer.headers["Eligibility-Outcome"] for answer in answers] == ["created", "updated"]
    assert answers[1].headers["Eligibility-Changed"] == "last_name"
    assert answers[1].headers["Invitation"] == "none; reason=not_new"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_request_that_a_page_names_has_an_endpoint() -> None:
    answered = {(each.method, re.sub(r"\{\w+\}", "{}", each.path)) for each in ENDPOINTS}
    named = {
        (method, re.sub(r"\{\w+\}|(?<=/)\d+(?=/|$)|(?<=-mappings/)[\w-]+", "{}", path))
        for page in (*PAGES, *ROOT.glob("clients/*/README.md"))
        for method, path in re.findall(REQUEST, page.read_text())
    }
    assert len(named) > 30
    assert named - answered == set()


@pytest.mark.parametrize(
    "record", sorted(DECISIONS.glob("0*.md")), ids=lambda record: record.name[:4]
)
def test_every_decision_has_one_form_and_half_a_page(record: Path) -> None:
    text = record.read_text()
    assert re.match(DECISION_START.format(number=record.name[:4]), text)
    assert re.findall("^#.*", text, re.MULTILINE)[1:] == ["## Decision", "## Why"]
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 130


def test_every_decision_is_in_the_index_and_in_force() -> None:
    linked = re.findall(r"\]\((0[^)]+)\)", (DECISIONS / "README.md").read_text())
    assert sorted(linked) == sorted(path.name for path in DECISIONS.glob("0*.md"))
    code = (path for folder in ("src", "tests", "bench") for path in (ROOT / folder).rglob("*.py"))
    text = "\n".join(path.read_text() for path in [*code, *PAGES])
    referred = set(
        re.findall(r"\b0\d{3}\b", " ".join(re.findall(r"(?:decisions/|\()0\d{3}\b.{0,20}", text)))
    )
    assert len(referred) > 20
    assert referred <= {path.name[:4] for path in DECISIONS.glob("0*.md")}


def test_every_dependency_is_explained() -> None:
    """Each package by its whole name: in a first cell of the table, where plugins stand without
    what they plug into.
    """
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Dependencies\n")[2]
    cells = " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))
    explained = set(re.findall(r"[\w-]+", cells))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    developed = (ROOT / "requirements/dev.in").read_text().splitlines()
    named = {
        match[0] for line in (*project, *developed) if (match := re.match(r"[a-z][a-z0-9-]*", line))
    }
    assert len(named) > 25
    assert {name.removeprefix("pytest-") for name in named} - explained == UNEXPLAINED
