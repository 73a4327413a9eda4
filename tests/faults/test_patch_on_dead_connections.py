"""A PATCH that meets a connection which PostgreSQL has cut is made on another one; what it says stays what it was."""

import pytest

from frontdesk.app import App
from tests.conftest import Api
from tests.factories import Customer, make_customer
from tests.faults.callers import times
from tests.postgres import Databases

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)

CUTS = times(5, long=100)


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}"


def cut(postgres: Databases, app: App) -> None:
    """Every connection of the service dies, after it has some."""
    assert postgres.kill_backends(str(app.db.engine.url.database)) > 0


def test_a_patch_is_made_whenever_connections_die_before_it(
    api: Api, app: App, postgres: Databases, path: str
) -> None:
    for number in range(CUTS):
        cut(postgres, app)
        answer = api.patch(path, {"name": f"Name {number}"})
        assert (answer.status_code, answer.json()["data"][0]["name"]) == (200, f"Name {number}")
    assert api.get(path).headers["ETag"].startswith(f'"v{CUTS + 1}.')  # each was made once


def test_a_refused_patch_is_refused_as_ever(api: Api, app: App, postgres: Databases, path: str) -> None:
    tag = api.get(path).headers["ETag"]
    cut(postgres, app)
    taken = api.patch(path, {"external_id": "plan-1"})
    assert (taken.status_code, taken.json()["errors"][0]["code"]) == (422, "not_unique")
    cut(postgres, app)
    assert api.patch("/v2/plans/999999", {"name": "x"}).status_code == 404
    cut(postgres, app)
    assert api.patch(path, {"name": "Other"}, headers={"If-Match": tag}).status_code == 200
    cut(postgres, app)
    assert api.patch(path, {"name": "Third"}, headers={"If-Match": tag}).status_code == 412


def test_another_accounts_plan_stays_unknown(
    api: Api, app: App, db: object, postgres: Databases, path: str
) -> None:
    other = make_customer(app.db, name="Other")
    assert api.get(path).status_code == 200
    cut(postgres, app)
    assert api.as_(other.token).patch(path, {"name": "x"}).status_code == 404
