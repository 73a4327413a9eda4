"""What belongs to another account is answered as if it did not exist, on every route that names something, byte for byte."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS
from frontdesk.db import Database
from frontdesk.web.endpoint import Endpoint
from tests.api.test_openapi_answers import CSV
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, make_operator, member_body
from tests.files.loading import Desk

NAMING = [endpoint for endpoint in ENDPOINTS if "_id}" in endpoint.path]
ABSENT = 999_999

# What each route takes when all is well.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "eligibility"): {"json": member_body(7)},
    ("POST", "batch"): {"json": [member_body(7)]},
    ("POST", "end"): {"json": {"on": "2027-01-31"}},
    ("POST", "rename"): {"json": {"external_id": "R-7"}},
    ("POST", "eligibility-files"): {"content": CSV.encode(), "headers": {"Content-Type": "text/csv"}},
    ("POST", "mapping"): {"json": {}},
    ("PATCH", "{plan_id}"): {"json": {"name": "Taken over"}},
}


class Ids(NamedTuple):
    """A plan, a file and a member, of whomever they are."""

    plan: int
    file: int
    member: int


def send(api: Api, endpoint: Endpoint, ids: Ids) -> Any:
    path = endpoint.path.replace("{plan_id}", str(ids.plan)).replace("{file_id}", str(ids.file))
    path = path.replace("{eligibility_id}", str(ids.member))
    options = BODIES.get((endpoint.method, endpoint.path.rpartition("/")[2]), {})
    headers = options.get("headers", {}) | {"X-Request-Id": "the-same"}
    return api.request(endpoint.method, path, **(options | {"headers": headers}))


def callers(api: Api, db: Database) -> Iterator[tuple[int, Api]]:
    """Every kind of caller with the status that it gets: a caller whose scopes are too narrow learns nothing either."""
    yield 404, api
    yield 0, api.as_(make_operator(db).token)
    fine = frozenset(Scope) - {Scope.CUSTOMER, Scope.OPERATOR}
    for status, scopes in ((404, fine), *((0, frozenset({scope})) for scope in fine)):
        yield status, api.as_(make_customer(db, name=f"{scopes}", plan_count=0, scopes=scopes).token)
    for token in (None, "unknown"):
        yield 401, api.as_(token)


def foreign(endpoint: Endpoint, own: Ids, other: Ids) -> list[Ids]:
    """Every pair that is not the caller's own."""
    pairs = [other, Ids(ABSENT, ABSENT, ABSENT), Ids(*[10**18 - 1] * 3)]
    if "{eligibility_id}" in endpoint.path:
        pairs += [own._replace(member=other.member), other._replace(member=own.member)]
        pairs += [own._replace(plan=own.plan + 1), own._replace(member=ABSENT), own._replace(plan=ABSENT)]
    if "{file_id}" in endpoint.path:
        pairs += [own._replace(file=other.file), other._replace(file=own.file)]
        pairs += [own._replace(plan=own.plan + 1), own._replace(file=ABSENT), own._replace(plan=ABSENT)]
    return pairs


@pytest.mark.parametrize("endpoint", NAMING, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_what_is_anothers_answers_the_bytes_of_what_is_not_there(
    endpoint: Endpoint, api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    own = Ids(customer.plan_ids[0], Desk(db, customer, clock).load(CSV.encode()).id, newest_member(db))
    asking = list(callers(api, db))
    other = Ids(customer.plan_ids[-1] + 1, own.file + 1, own.member + 1)
    before = answers(endpoint, asking, foreign(endpoint, own, other))
    stranger = make_customer(db, name="Stranger")
    file = Desk(db, stranger, clock).load(CSV.replace("E-", "S-").replace("M-", "N-").encode())
    assert Ids(stranger.plan_ids[0], file.id, newest_member(db)) == other
    assert answers(endpoint, asking, foreign(endpoint, own, other)) == before
    found = send(api.as_(stranger.token), endpoint, other)
    assert found.status_code in (200, 201, 202, 207) or found.json()["errors"][0]["code"] == "wrong_state"
    assert send(api, endpoint, own).status_code in (200, 201, 202, 207, 409, 422)


def newest_member(db: Database) -> int:
    with db.read() as tx:
        return int(tx.exec_driver_sql("SELECT max(id) FROM members").scalar_one())


def answers(endpoint: Endpoint, asking: list[tuple[int, Api]], pairs: list[Ids]) -> list[Any]:
    """Status, headers and body of each caller's request for each pair; all that ask alike are answered alike."""
    found = []
    for status, api in asking:
        told = [send(api, endpoint, ids) for ids in pairs]
        assert {answer.status_code for answer in told} <= ({status} if status else {403, 404})
        assert len({answer.json()["detail"] for answer in told}) == 1
        found += [(answer.status_code, sorted(answer.headers.items()), answer.content) for answer in told]
    return found
