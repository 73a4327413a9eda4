"""The guides in docs/guides are so: their examples run in order, and the site shows each of them."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from frontdesk.api.site import SECTIONS
from frontdesk.app import App
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.files.claims import RunOptions
from frontdesk.files.run import run_next
from frontdesk.installation import build_asgi
from frontdesk.plans.changes import create_plan, create_provider_group
from frontdesk.plans.model import NewPlan
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer
from tests.promises.examples import GUIDES, REQUEST_AND_ANSWER, part_of, parts


@pytest.fixture
def caller(app: App, db: Database) -> Iterator[tuple[Api, Customer]]:
    """A caller with one plan and no members."""
    customer = make_customer(db, plan_count=0)
    with db.write() as tx:
        group = create_provider_group(tx, name="Primary Care", external_id=None, now=NOW)
        create_plan(tx, NewPlan(customer.account_id, group.id, "gold-2027", "Gold", None), now=NOW)
    log = io.StringIO()
    with TestClient(build_asgi(app, Telemetry(log))) as http:
        yield Api(http, customer.token, log), customer


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_examples_of_a_guide_are_answered_as_it_says(
    guide: Path, caller: tuple[Api, Customer], db: Database, clock: SetClock
) -> None:
    api, customer = caller
    text = guide.read_text()
    examples = re.findall(REQUEST_AND_ANSWER, text, re.DOTALL)
    assert len(examples) * 2 == text.count("```http\n")
    for method, path, request, status, expected in examples:
        head, body = parts(request, is_answer=False)
        for name in ("client_id", "client_secret"):
            body = body.replace(name.upper(), getattr(customer, name))
        head = head or {"Content-Type": "application/json"}
        if method == "GET":  # what is waiting has been done when the reader asks
            while run_next(db, clock, RunOptions(Uniqueness.SERVICE)):
                pass
        answer = api.request(method, path, content=body.encode(), headers=head)
        assert (path, answer.status_code) == (path, int(status)), answer.text
        headers, shown = parts(expected, is_answer=True)
        assert {name: answer.headers.get(name) for name in headers} == headers
        assert part_of(json.loads(shown), answer.json()) if shown else True, answer.text


def test_every_guide_is_on_the_site() -> None:
    assert {guide.stem for guide in GUIDES} == set(SECTIONS["Guides"])
