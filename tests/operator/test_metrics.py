"""How right the wait estimates were, as Prometheus reads it."""

from typing import Any

from frontdesk.db import Database
from frontdesk.errors import Unavailable
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_operator


def metrics(api: Api, token: str) -> str:
    return str(api.as_(token).get("/metrics").text)


def test_the_error_of_an_estimate_that_was_shown_is_in_the_metrics(
    api: Api, app: Any, db: Database, customer: Customer, clock: SetClock
) -> None:
    operator = make_operator(db).token
    assert "frontdesk_queue_estimate_matched{" not in metrics(api, operator)
    plan = customer.plan_ids[0]
    shown = api.get("/v2/plans").json()["data"][0]["queue_info"]["estimated_wait_time"]
    assert shown == 0
    happened = (("patient.joined", 5), ("visit.started", 45))
    for type_, second in happened:
        clock.now = clock.now.replace(minute=0, second=second)
        event = {"id": type_, "type": type_, "at": clock().isoformat(), "plan_id": plan, "visit": "v-1"}
        answer = api.as_(operator).post("/operator/v1/queue-events", event | {"doctor": "doctor-1"})
        assert answer.json()["stored"] == 1
    text = metrics(api, operator)
    assert f'frontdesk_queue_wait_seconds{{plan="{plan}",value="high"}}' not in text  # expired
    for name, value in (
        ("matched", 1),
        ("mean_error_seconds", 40),
        ("bias_seconds", -40),
        ("p90_error_seconds", 40),
        ("wrong_zero_share", 1),
    ):
        assert f'frontdesk_queue_estimate_{name}{{plan="{plan}"}} {value}.0' in text
    assert "frontdesk_queue_estimate_coverage_share{" not in text  # 0 to 0 is no interval
    clock.advance(3600)
    assert "frontdesk_queue_estimate_matched{" not in metrics(api, operator)


def test_other_metrics_need_no_database(api: Api, app: Any, db: Database, customer: Customer) -> None:
    operator = make_operator(db).token
    metrics(api, operator)

    class Away:
        def ask(self, _question: Any) -> Any:
            raise Unavailable("The database can't be reached.")

        def close(self) -> None:
            real.close()

    real, app.db = app.db, Away()
    assert "frontdesk_requests_total" in metrics(api, operator)
