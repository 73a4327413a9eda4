"""GET of a plan's queue by an operator."""

from frontdesk.db import Database
from tests.conftest import Api
from tests.factories import Customer, make_operator


def test_an_operator_is_told_what_the_customer_is_told(api: Api, customer: Customer, db: Database) -> None:
    plan_id = customer.plan_ids[0]
    [told] = [
        plan for plan in api.get("/v2/plans?queue_interval=true").json()["data"] if plan["id"] == plan_id
    ]
    operator = make_operator(db)
    answer = api.as_(operator.token).get(f"/operator/v1/plans/{plan_id}/queue")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json() == {
        "plan_id": plan_id,
        "account_id": customer.account_id,
        "queue_info": told["queue_info"],
        "queue_interval": told["queue_interval"],
    }


def test_a_customer_may_not_ask_not_even_for_its_own_plan(api: Api, customer: Customer) -> None:
    assert api.get(f"/operator/v1/plans/{customer.plan_ids[0]}/queue").status_code == 403


def test_a_plan_that_does_not_exist_is_not_found(api: Api, db: Database) -> None:
    operator = make_operator(db)
    for plan_id in (999_999, "x", 2**70):
        answer = api.as_(operator.token).get(f"/operator/v1/plans/{plan_id}/queue")
        assert answer.status_code == 404
