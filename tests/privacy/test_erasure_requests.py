"""An erasure that needs a longer search than a request has time for is left to a worker."""

from typing import Any

import pytest

from frontdesk.audit import list_entries
from frontdesk.audit.model import AuditQuery, Requester
from frontdesk.operator import personal_data
from frontdesk.privacy.erasure import get_person
from frontdesk.privacy.holds import place_hold
from frontdesk.worker.background import PersonSearcher
from tests.cli.conftest import CommandLine
from tests.conftest import Api
from tests.files.loading import csv_of, row
from tests.privacy.conftest import Life
from tests.privacy.test_export import operator_of


@pytest.fixture
def operator(life: Life, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr(personal_data, "SEARCH_SECONDS", -1.0)
    return operator_of(life)


def path_of(life: Life) -> str:
    return f"/operator/v1/members/{life.member_id}"


def entries(life: Life) -> list[dict[str, Any]]:
    return list(reversed(life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member")))))


def test_a_worker_erases_what_was_asked_for_however_often(life: Life, operator: Api) -> None:
    first = operator.request("DELETE", path_of(life))
    life.clock.advance(60)
    again = operator.request("DELETE", path_of(life))
    told = {
        "member_id": life.member_id,
        "account_id": life.customer.account_id,
        "asked_at": "2026-11-20T12:00:00Z",
    }
    assert (first.status_code, first.json(), again.status_code, again.json()) == (202, told, 202, told)
    assert life.mentions()
    for worker in [PersonSearcher(life.db, clock=life.clock) for _ in range(2)]:
        worker.step()
    assert life.mentions() == set()
    done = operator.request("DELETE", path_of(life))
    assert (done.status_code, done.json()["erased_at"]) == (200, "2026-11-20T12:01:00Z")
    asked, erased = entries(life)
    assert (asked["action"], erased["action"]) == ("member.erasure_asked", "member.erased")
    by_first = (first.headers["X-Request-Id"], asked["actor"], asked["detail"]["network"])
    assert (erased["request_id"], erased["actor"], erased["detail"]["network"]) == by_first


def test_it_waits_while_files_of_the_account_have_not_ended(life: Life, operator: Api) -> None:
    assert operator.request("DELETE", path_of(life)).status_code == 202
    file = life.desk.hand_in(csv_of([row(90)]))
    searcher = PersonSearcher(life.db, clock=life.clock)
    searcher.step()
    assert life.mentions()
    life.desk.work(file)
    searcher.step()
    assert life.mentions() == set()


def test_a_legal_hold_ends_the_request_for_good(life: Life, operator: Api) -> None:
    assert operator.request("DELETE", path_of(life)).status_code == 202
    by = Requester("cli:counsel", "request-3", life.clock())
    with life.db.write() as tx:
        place_hold(tx, get_person(tx, life.member_id), "Case 1", by)
    for _ in range(2):
        PersonSearcher(life.db, clock=life.clock).step()
    assert life.mentions()
    assert operator.request("DELETE", path_of(life)).status_code == 409
    assert [entry["action"] for entry in entries(life)] == [
        "member.erasure_asked",
        "member.held",
        "member.erasure_refused",
    ]


def test_a_worker_that_stops_leaves_the_search_to_the_next_one(life: Life, operator: Api) -> None:
    assert operator.request("DELETE", path_of(life)).status_code == 202
    stopped = PersonSearcher(life.db, clock=life.clock)
    stopped.stop()
    stopped.step()
    assert life.mentions()
    PersonSearcher(life.db, clock=life.clock).step()
    assert life.mentions() == set()


def test_the_command_line_lists_what_waits_and_does_it_at_once(
    life: Life, operator: Api, database_url: str
) -> None:
    cli = CommandLine(database_url)
    assert "No erasure waits." in cli.text("member", "erasures")
    assert operator.request("DELETE", path_of(life)).status_code == 202
    [listed] = cli.json("member", "erasures", "--account", str(life.customer.account_id))
    assert listed["member_id"] == life.member_id
    cli.text("member", "erase", "--id", str(life.member_id), "--yes")
    assert cli.json("member", "erasures") == []
    assert life.mentions() == set()
