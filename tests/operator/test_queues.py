"""Queue events of a clinical system, and what an operator sees of the queues; docs/queue-events.md
says what is so.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.db import Database
from frontdesk.operator.queues import BODY_LIMIT_BYTES
from frontdesk.queues.encounters import TRANSITIONS
from frontdesk.queues.events import FIELDS
from frontdesk.queues.model import EncounterState, EventType
from frontdesk.text import wire_time
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_operator
from tests.queues.feed import joined

PATH = "/operator/v1/queue-events"
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "queue-events.md").read_text()


@pytest.fixture
def feeder(api: Api, db: Database) -> Api:
    """A clinical system: a client of another account with the scope `operator`."""
    return api.as_(make_operator(db).token)


def queue_of(api: Api) -> dict[str, Any]:
    """That of the customer's first plan."""
    shown: dict[str, Any] = api.get("/v2/plans").json()["data"][0]["queue_info"]
    return shown


def test_the_examples_are_answered_as_the_page_says(api: Api, feeder: Api) -> None:
    examples = re.findall(r"```http\n(\w+) (\S+)\n(.*?)```.*?```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 3
    for method, path, body, answer in examples:
        answered = feeder.request(method, path, json=json.loads(body))
        assert (answered.status_code, answered.json()) == (207, json.loads(answer))
    queue = queue_of(api)
    assert (queue["is_active"], queue["queue_length"]) == (True, 1)


def test_every_type_and_code_has_a_row_and_the_diagram_has_the_states_of_the_code() -> None:
    for type_ in EventType:
        row = re.search(rf"^\| {re.escape(type_)} \| (.*?) \| ?(.*?) ?\|$", PAGE, re.MULTILINE)
        assert row
        assert row[1].split(", ") == list(FIELDS[type_][0])
        assert all(name in row[2] for name in FIELDS[type_][1])
    assert [
        code for code in codes.of(Where.QUEUE_EVENT) if f"| {code} | {code.sentence} |" not in PAGE
    ] == []
    text = (DOCS / "states.md").read_text()
    [diagram] = re.findall(r"\(`queues\.EncounterState`\)\n\n```mermaid\n(.*?)```", text, re.DOTALL)
    assert set(re.findall(r"--> (\w+)", diagram)) == set(EncounterState)
    assert set(re.findall(r": (\w+\.\w+)", diagram)) == set(TRANSITIONS)


def test_a_batch_is_answered_event_by_event(feeder: Api) -> None:
    batch = [joined(1), joined(1), joined(2, plan_id=999), 7]
    answer = feeder.post(PATH, {"events": batch})
    no_plan = {"field": "plan_id", "code": "not_found", "message": "there is no such plan"}
    no_object = {"field": "", "code": "wrong_type", "message": "must be an object"}
    assert answer.status_code == 207
    assert answer.json() == {
        "stored": 1,
        "duplicate": 1,
        "refused": 2,
        "results": [
            {"id": "e-1", "outcome": "stored"},
            {"id": "e-1", "outcome": "duplicate"},
            {"id": "e-2", "outcome": "refused", "errors": [no_plan]},
            {"id": None, "outcome": "refused", "errors": [no_object]},
        ],
    }
    assert feeder.post(PATH, {"events": batch}).json()["duplicate"] == 2
    # One event and a bare array are taken too.
    assert feeder.post(PATH, joined(3)).json()["stored"] == 1
    assert feeder.post(PATH, [joined(4), joined(5)]).json()["stored"] == 2
    assert feeder.post(PATH, []).json() == {
        "stored": 0,
        "duplicate": 0,
        "refused": 0,
        "results": [],
    }


def test_events_move_the_numbers_of_the_plan(feeder: Api, api: Api, clock: SetClock) -> None:
    lengths = [queue_of(api)["queue_length"]]
    later = (
        [joined(1), joined(2)],
        joined(3, type="patient.left", visit="visit-1", at=wire_time(clock())),
        joined(4, type="visit.started", visit="visit-2", doctor="doctor-1", at=wire_time(clock())),
    )
    for events in later:
        feeder.post(PATH, events)
        clock.advance(15)
        lengths.append(queue_of(api)["queue_length"])
    assert lengths == [0, 2, 1, 0]
    assert queue_of(api)["estimated_wait_time"] > 0


def test_unknown_fields_are_named_or_refused_when_asked_for(feeder: Api) -> None:
    batch = [joined(1, patient_name="Robin"), joined(2, zone="x", doctor="dr-1")]
    answer = feeder.post(PATH, batch)
    assert (answer.json()["stored"], answer.headers["Ignored-Fields"]) == (2, "patient_name,zone")
    strict = feeder.post(PATH, joined(3, zone="x"), headers={"Prefer": "handling=strict"})
    assert strict.json()["results"][0]["errors"][0]["code"] == "unknown_field"


@pytest.mark.parametrize("body", ['"x"', "7", "null", '{"events": 7}', '{"events": null}'])
def test_what_is_no_list_of_events_is_invalid(feeder: Api, body: str) -> None:
    answer = feeder.post(PATH, content=body.encode(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "events")


def test_a_batch_has_a_limit_of_events_and_of_bytes(feeder: Api) -> None:
    events = [joined(number) for number in range(1001)]
    assert feeder.post(PATH, events).status_code == 422
    assert feeder.post(PATH, events[:1000]).json()["stored"] == 1000
    fits = json.dumps([" " * (BODY_LIMIT_BYTES - 4)]).encode()
    head = {"Content-Type": "application/json"}
    assert feeder.post(PATH, content=fits, headers=head).status_code == 207
    assert feeder.post(PATH, content=fits + b" ", headers=head).status_code == 413


def test_nothing_that_was_sent_is_repeated(feeder: Api) -> None:
    bad = joined(1, type="CANARY-1", visit="CANARY-2\0", plan_id="CANARY-3", doctor="CANARY-4\0")
    answer = feeder.post(PATH, [bad, {"id": "x", "CANARY-5": "CANARY-6"}])
    assert "CANARY" not in answer.text.replace("CANARY-5", "")
    assert "CANARY" not in feeder.log.getvalue()


def test_an_operator_is_told_what_the_customer_is_told(
    api: Api, feeder: Api, customer: Customer
) -> None:
    told = api.get("/v2/plans?queue_interval=true").json()["data"][0]
    answer = feeder.get(f"/operator/v1/plans/{told['id']}/queue")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    queue = {name: told[name] for name in ("queue_info", "queue_interval")}
    assert answer.json() == {"plan_id": told["id"], "account_id": customer.account_id} | queue
    for plan_id in (999_999, "x", 2**70):
        assert feeder.get(f"/operator/v1/plans/{plan_id}/queue").status_code == 404


def test_the_error_of_an_estimate_that_was_shown_is_in_the_metrics(
    api: Api, feeder: Api, customer: Customer, clock: SetClock
) -> None:
    assert "frontdesk_queue_estimate_matched{" not in feeder.get("/metrics").text
    assert 'frontdesk_queue_lapsed_duties{provider_group_id="1"} 0.0' in feeder.get("/metrics").text
    assert queue_of(api)["estimated_wait_time"] == 0
    plan = customer.plan_ids[0]
    for type_, second in (("patient.joined", 5), ("visit.started", 45)):
        clock.now = clock.now.replace(minute=0, second=second)
        event = {
            "id": type_,
            "type": type_,
            "at": clock().isoformat(),
            "plan_id": plan,
            "visit": "v-1",
        }
        assert feeder.post(PATH, event | {"doctor": "doctor-1"}).json()["stored"] == 1
    text = feeder.get("/metrics").text
    assert f'frontdesk_queue_wait_seconds{{plan="{plan}",value="high"}}' not in text  # expired
    told = {"matched": 1, "mean_error_seconds": 40, "bias_seconds": -40, "p90_error_seconds": 40}
    for name, value in (told | {"wrong_zero_share": 1}).items():
        assert f'frontdesk_queue_estimate_{name}{{plan="{plan}"}} {value}.0' in text
    assert "frontdesk_queue_estimate_coverage_share{" not in text  # 0 to 0 is no interval
    clock.advance(3600)
    assert "frontdesk_queue_estimate_matched{" not in feeder.get("/metrics").text
