"""GET of a plan's queue by an operator."""

from frontdesk.db import Database
from tests.conftest import Api
from tests.factories import Customer, make_operator


def test_an_operator_is_told_what_the_customer_is_told(api: Api, customer: Customer, db: Database) -> None:
    told = api.get("/v2/plans?queue_interval=true").json()["data"][0]
    answer = api.as_(make_operator(db).token).get(f"/operator/v1/plans/{told['id']}/queue")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    queue = {name: told[name] for name in ("queue_info", "queue_interval")}
    assert answer.json() == {"plan_id": told["id"], "account_id": customer.account_id} | queue


def test_a_plan_that_does_not_exist_is_not_found(api: Api, db: Database) -> None:
    operator = make_operator(db)
    for plan_id in (999_999, "x", 2**70):
        answer = api.as_(operator.token).get(f"/operator/v1/plans/{plan_id}/queue")
        assert answer.status_code == 404
