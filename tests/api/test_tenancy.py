"""What belongs to another account is answered as if it did not exist, on every route that names
something, byte for byte.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from frontdesk.access.model import Scope
from frontdesk.api.routes import ENDPOINTS
from frontdesk.db import Database
from frontdesk.eligibility import list_ids_under
from frontdesk.eligibility.store import last_member_id
from frontdesk.web.endpoint import Endpoint
from tests.conftest import Api, SetClock
from tests.factories import (
    EVERY_SCOPE,
    Customer,
    make_customer,
    make_operator,
    member_body,
    second_token,
)
from tests.files.loading import Desk, csv_of, row

NAMING = [endpoint for endpoint in ENDPOINTS if "_id}" in endpoint.path]
ABSENT = 999_999


def file_of(number: int) -> bytes:
    """A file of two rows, of which the second has a date that does not exist."""
    return csv_of([row(number), row(number + 1, dob="1977-02-30")])


# What each route takes when all is well.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "eligibility"): {"json": member_body(7)},
    ("POST", "batch"): {"json": [member_body(7)]},
    ("POST", "end"): {"json": {"on": "2027-01-31"}},
    ("POST", "rename"): {"json": {"external_id": "R-7"}},
    ("POST", "eligibility-files"): {"content": file_of(1), "headers": {"Content-Type": "text/csv"}},
    ("POST", "mapping"): {"json": {}},
    ("POST", "replay"): {"json": {"since": "2026-11-20T12:00:00Z"}},
    ("PATCH", "{endpoint_id}"): {"json": {"state": "paused"}},
    ("PATCH", "{plan_id}"): {"json": {"name": "Taken over"}},
}


class Ids(NamedTuple):
    """A plan, a file, a member and a webhook endpoint, of whomever they are."""

    plan: int
    file: int
    member: int
    endpoint: int


def send(api: Api, endpoint: Endpoint, ids: Ids) -> Any:
    path = endpoint.path.replace("{plan_id}", str(ids.plan)).replace("{file_id}", str(ids.file))
    path = path.replace("{eligibility_id}", str(ids.member)).replace(
        "{endpoint_id}", str(ids.endpoint)
    )
    options = BODIES.get((endpoint.method, endpoint.path.rpartition("/")[2]), {})
    headers = options.get("headers", {}) | {"X-Request-Id": "the-same"}
    return api.request(endpoint.method, path, **(options | {"headers": headers}))


def callers(api: Api, db: Database, account_id: int) -> Iterator[tuple[int, Api]]:
    """Every kind of caller with the status that it gets: a caller whose scopes are too narrow
    learns nothing either.
    """
    yield 404, api.as_(second_token(db, account_id, *EVERY_SCOPE))
    yield 0, api.as_(make_operator(db).token)
    fine = frozenset(Scope) - {Scope.CUSTOMER, Scope.OPERATOR}
    for status, scopes in ((404, fine), *((0, frozenset({scope})) for scope in fine)):
        name = " ".join(sorted(scopes))
        yield status, api.as_(make_customer(db, name=name, plan_count=0, scopes=scopes).token)
    for token in (None, "unknown"):
        yield 401, api.as_(token)


def foreign(endpoint: Endpoint, own: Ids, other: Ids) -> list[Ids]:
    """Every pair that is not the caller's own."""
    pairs = [other, Ids(*[ABSENT] * 4), Ids(*[10**18 - 1] * 4)]
    if "{file_id}" in endpoint.path or "{eligibility_id}" in endpoint.path:
        pairs += [
            other._replace(plan=own.plan),
            own._replace(plan=other.plan),
            own._replace(plan=own.plan + 1),
        ]
        pairs += [Ids(own.plan, ABSENT, ABSENT, ABSENT), own._replace(plan=ABSENT)]
    return pairs


@pytest.mark.parametrize(
    "endpoint", NAMING, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}"
)
def test_what_is_anothers_answers_the_bytes_of_what_is_not_there(
    endpoint: Endpoint, api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    file = Desk(db, customer, clock).load(file_of(1))
    asking = list(callers(api, db, customer.account_id))
    own = Ids(customer.plan_ids[0], file.id, db.ask(last_member_id), make_endpoint(asking[0][1]))
    other = Ids(customer.plan_ids[-1] + 1, own.file + 1, own.member + 1, own.endpoint + 1)
    before = answers(endpoint, asking, foreign(endpoint, own, other))
    stranger = make_customer(db, name="Stranger")
    file = Desk(db, stranger, clock).load(file_of(11))
    found = db.ask(lambda tx: list_ids_under(tx, stranger.plan_ids[0], after_id=0, limit=1))
    strangers = api.as_(second_token(db, stranger.account_id, *EVERY_SCOPE))
    assert Ids(stranger.plan_ids[0], file.id, found[0], make_endpoint(strangers)) == other
    assert answers(endpoint, asking, foreign(endpoint, own, other)) == before
    told = send(strangers, endpoint, other)
    assert (
        told.status_code in (200, 201, 202, 204, 207)
        or told.json()["errors"][0]["code"] == "wrong_state"
    )
    assert send(asking[0][1], endpoint, own).status_code in (200, 201, 202, 204, 207, 409, 422)


def make_endpoint(api: Api) -> int:
    made = api.post("/v2/webhook-endpoints", {"url": "https://hooks.example.com"})
    return int(made.json()["data"]["id"])


def answers(endpoint: Endpoint, asking: list[tuple[int, Api]], pairs: list[Ids]) -> list[Any]:
    """Status, headers and body of each caller's request for each pair; all that ask alike are
    answered alike.
    """
    found = []
    for status, api in asking:
        told = [send(api, endpoint, ids) for ids in pairs]
        assert {answer.status_code for answer in told} <= ({status} if status else {403, 404})
        assert len({answer.json()["detail"] for answer in told}) == 1
        for answer in told:
            answer.headers.pop("RateLimit", None)  # it counts down
        found += [
            (answer.status_code, sorted(answer.headers.items()), answer.content) for answer in told
        ]
    return found
