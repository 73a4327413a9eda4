"""POST /operator/v1/queue-events."""

import json
from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.operator.queues import BODY_LIMIT_BYTES
from frontdesk.text import wire_time
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_operator
from tests.queues.feed import joined

PATH = "/operator/v1/queue-events"


@pytest.fixture
def feeder(api: Api, db: Database) -> Api:
    """A clinical system: a client of another account with the scope `operator`."""
    return api.as_(make_operator(db).token)


def test_a_batch_is_answered_event_by_event(feeder: Api, customer: Customer) -> None:
    batch = [joined(1), joined(1), joined(2, plan_id=999), 7]
    answer = feeder.post(PATH, {"events": batch})
    assert answer.status_code == 207
    assert answer.json() == {
        "stored": 1,
        "duplicate": 1,
        "refused": 2,
        "results": [
            {"id": "e-1", "outcome": "stored"},
            {"id": "e-1", "outcome": "duplicate"},
            {
                "id": "e-2",
                "outcome": "refused",
                "errors": [{"field": "plan_id", "code": "not_found", "message": "there is no such plan"}],
            },
            {
                "id": None,
                "outcome": "refused",
                "errors": [{"field": "", "code": "wrong_type", "message": "must be an object"}],
            },
        ],
    }
    assert feeder.post(PATH, {"events": batch}).json()["duplicate"] == 2


def test_one_event_and_a_bare_array_are_taken_too(feeder: Api, customer: Customer) -> None:
    assert feeder.post(PATH, joined(1)).json()["stored"] == 1
    assert feeder.post(PATH, [joined(2), joined(3)]).json()["stored"] == 2
    assert feeder.post(PATH, []).json() == {"stored": 0, "duplicate": 0, "refused": 0, "results": []}


def test_events_move_the_numbers_of_the_plan(
    feeder: Api, api: Api, customer: Customer, clock: SetClock
) -> None:
    def queue() -> dict[str, Any]:
        clock.advance(15)
        shown: dict[str, Any] = api.get(f"/v2/plans/{customer.plan_ids[0]}").json()["data"][0]["queue_info"]
        return shown

    assert (queue()["queue_length"], queue()["is_active"]) == (0, True)
    feeder.post(PATH, [joined(1), joined(2)])
    assert queue()["queue_length"] == 2
    feeder.post(PATH, joined(3, type="patient.left", visit="visit-1", at=wire_time(clock())))
    assert queue()["queue_length"] == 1
    feeder.post(
        PATH, joined(4, type="visit.started", visit="visit-2", doctor="doctor-1", at=wire_time(clock()))
    )
    shown = queue()
    assert shown["queue_length"] == 0
    assert shown["estimated_wait_time"] > 0


def test_unknown_fields_are_named_or_refused_when_asked_for(feeder: Api, customer: Customer) -> None:
    batch = [joined(1, patient_name="Robin"), joined(2, zone="x", doctor="dr-1")]
    answer = feeder.post(PATH, batch)
    assert (answer.json()["stored"], answer.headers["Ignored-Fields"]) == (2, "patient_name,zone")
    strict = feeder.post(PATH, joined(3, zone="x"), headers={"Prefer": "handling=strict"})
    assert strict.json()["results"][0]["errors"][0]["code"] == "unknown_field"


@pytest.mark.parametrize("body", ['"x"', "7", "null", '{"events": 7}', '{"events": null}'])
def test_what_is_no_list_of_events_is_invalid(feeder: Api, body: str) -> None:
    answer = feeder.post(PATH, content=body.encode(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "events"


def test_a_thousand_events_are_taken_and_one_more_is_not(feeder: Api, customer: Customer) -> None:
    events = [joined(number) for number in range(1001)]
    assert feeder.post(PATH, events).status_code == 422
    assert feeder.post(PATH, events[:1000]).json()["stored"] == 1000


def test_the_body_has_a_limit_of_its_own(feeder: Api) -> None:
    fits = json.dumps([" " * (BODY_LIMIT_BYTES - 4)]).encode()
    assert feeder.post(PATH, content=fits, headers={"Content-Type": "application/json"}).status_code == 207
    answer = feeder.post(PATH, content=fits + b" ", headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_nothing_that_was_sent_is_repeated(feeder: Api, customer: Customer) -> None:
    bad = joined(1, type="CANARY-1", visit="CANARY-2\0", plan_id="CANARY-3", doctor="CANARY-4\0")
    answer = feeder.post(PATH, [bad, {"id": "x", "CANARY-5": "CANARY-6"}])
    assert "CANARY" not in answer.text.replace("CANARY-5", "")
    assert "CANARY" not in feeder.log.getvalue()
