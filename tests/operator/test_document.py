"""docs/queue-events.md says what is so: its examples run, and it names every type, field, code and state."""

import json
import re
from pathlib import Path

from frontdesk.db import Database
from frontdesk.queues.encounters import TRANSITIONS
from frontdesk.queues.events import FAULT_CODES, FIELDS
from frontdesk.queues.model import EncounterState, EventType
from tests.conftest import Api
from tests.factories import Customer, make_operator

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "queue-events.md").read_text()


def test_the_examples_are_answered_as_the_page_says(api: Api, db: Database, customer: Customer) -> None:
    feeder = api.as_(make_operator(db).token)
    examples = re.findall(r"```http\n(\w+) (\S+)\n(.*?)```.*?```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 2
    for method, path, body, answer in examples:
        answered = feeder.request(method, path, json=json.loads(body))
        assert answered.status_code == 207
        assert answered.json() == json.loads(answer)
    queue = api.get(f"/v2/plans/{customer.plan_ids[0]}").json()["data"][0]["queue_info"]
    assert (queue["is_active"], queue["queue_length"], queue["estimated_wait_time"]) == (True, 0, 0)


def test_every_type_has_a_row_with_its_fields() -> None:
    for type_ in EventType:
        [needs, may_have] = re.findall(
            rf"^\| {re.escape(type_)} \| (.*?) \| ?(.*?) ?\|$", PAGE, re.MULTILINE
        )[0]
        assert needs.split(", ") == list(FIELDS[type_][0])
        assert all(name in may_have for name in FIELDS[type_][1])


def test_every_code_has_a_row_with_its_meaning() -> None:
    assert [code for code, meaning in FAULT_CODES.items() if f"| {code} | {meaning} |" not in PAGE] == []


def test_the_diagram_of_an_encounter_has_the_states_of_the_code() -> None:
    text = (DOCS / "states.md").read_text()
    [diagram] = re.findall(r"\(`queues\.EncounterState`\)\n\n```mermaid\n(.*?)```", text, re.DOTALL)
    assert set(re.findall(r"--> (\w+)", diagram)) == set(EncounterState)
    assert set(re.findall(r": (\w+\.\w+)", diagram)) == set(TRANSITIONS)
