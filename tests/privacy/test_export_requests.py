"""An export that needs a long search: a worker finds the places, and the next request shows what is there."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from frontdesk.audit import list_entries
from frontdesk.audit.model import AuditQuery
from frontdesk.operator import personal_data
from frontdesk.privacy.tables import export_requests
from frontdesk.worker.background import PersonSearcher
from tests.conftest import Api
from tests.files.loading import csv_of, row
from tests.privacy.conftest import SOUGHT, Life
from tests.privacy.test_export import operator_of


@pytest.fixture
def operator(life: Life) -> Api:
    return operator_of(life)


@pytest.fixture
def path(life: Life) -> str:
    return f"/operator/v1/members/{life.member_id}/export"


@pytest.fixture
def told(life: Life) -> dict[str, object]:
    """What is answered while a worker searches."""
    asked_at = "2026-11-20T12:00:00Z"
    return {"member_id": life.member_id, "account_id": life.customer.account_id, "asked_at": asked_at}


@pytest.fixture(autouse=True)
def _no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(personal_data, "SEARCH_SECONDS", -1.0)


def search(life: Life, later: timedelta = timedelta(0)) -> None:
    PersonSearcher(life.db, clock=lambda: life.clock() + later).step()


def test_a_worker_finds_what_a_request_then_shows(
    life: Life, operator: Api, path: str, told: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as with_time:
        with_time.setattr(personal_data, "SEARCH_SECONDS", 60.0)
        at_once = operator.get(path)
    life.clock.advance(-60)
    first = operator.get(path)
    life.clock.advance(60)
    again = operator.get(path)
    told["asked_at"] = "2026-11-20T11:59:00Z"
    assert (first.status_code, first.json(), again.status_code, again.json()) == (202, told, 202, told)
    for _ in range(2):
        search(life)
    found = [operator.get(path) for _ in range(2)]
    assert [answer.status_code for answer in found] == [200, 200]
    shown, before = found[0].json()["tables"], at_once.json()["tables"]
    assert [value for value in SOUGHT if value not in found[0].text] == []
    for name in before.keys() - {"export_requests", "audit_entries"}:
        assert shown[name] == before[name], name
    actions = [entry["action"] for entry in shown["audit_entries"]]
    assert actions[-2:] == ["member.exported", "member.export_asked"]
    trail = life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member")))
    assert [entry["action"] for entry in trail] == ["member.exported"] * 2 + actions[:-3:-1]
    assert trail[2]["request_id"] == first.headers["x-request-id"]


def test_what_waits_and_what_was_found_hold_no_value_of_the_person(
    life: Life, operator: Api, path: str
) -> None:
    for step in (operator.get, lambda _path: search(life)):
        step(path)
        with life.db.read() as tx:
            stored = str(tx.execute(select(export_requests)).all())
        assert [value for value in SOUGHT if value in stored] == []


def test_places_count_for_a_day(life: Life, operator: Api, path: str, told: dict[str, object]) -> None:
    operator.get(path)
    search(life)
    search(life, later=timedelta(days=1))
    assert operator.get(path).status_code == 200
    search(life, later=timedelta(days=1, seconds=1))
    life.clock.advance(1)
    answer = operator.get(path)
    assert (answer.status_code, answer.json()) == (202, told | {"asked_at": "2026-11-20T12:00:01Z"})


def test_an_erasure_takes_the_request_and_its_places(life: Life, operator: Api, path: str) -> None:
    operator.get(path)
    life.erase()
    search(life)
    with life.db.read() as tx:
        assert tx.execute(select(export_requests)).all() == []


def test_reports_that_went_and_lines_that_came_meanwhile_harm_nothing(
    life: Life, operator: Api, path: str
) -> None:
    operator.get(path)
    search(life)
    life.desk.load(csv_of([row(90)]))
    life.erase("AB 000005")  # rewrites the reports that name the neighbour
    assert operator.get(path).status_code == 200


def test_a_worker_that_stops_leaves_the_search_to_the_next_one(life: Life, operator: Api, path: str) -> None:
    operator.get(path)
    stopped = PersonSearcher(life.db, clock=life.clock)
    stopped.stop()
    stopped.step()
    assert operator.get(path).status_code == 202
    search(life)
    assert operator.get(path).status_code == 200


def test_a_customer_is_refused_and_a_member_that_is_not_there_is_not_searched_for(
    life: Life, operator: Api, path: str
) -> None:
    assert life.api.get(path).status_code == 403
    assert operator.get("/operator/v1/members/999/export").status_code == 404
    with life.db.read() as tx:
        assert tx.execute(select(export_requests)).all() == []
