"""Invented accounts, plans, clients and members, made through the product's own functions."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from frontdesk import access
from frontdesk.access.accounts import create_client, set_immediate_limit
from frontdesk.access.callers import issue_token
from frontdesk.access.model import NewClient, Scope
from frontdesk.db import Database, Tx
from frontdesk.plans import get_plan
from frontdesk.plans.changes import change_plan, create_plan, create_provider_group
from frontdesk.plans.model import NewPlan
from frontdesk.queues.ingest import set_duty
from frontdesk.reach import EVERY

# Of an account.
EVERY_SCOPE = frozenset(
    {
        Scope.CUSTOMER,
        Scope.ELIGIBILITY_READ,
        Scope.EVENTS_READ,
        Scope.WEBHOOKS_MANAGE,
        Scope.SANDBOX_RESET,
    }
)
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Customer:
    """An account with plans, and a client whose `token` carries the scope `customer` unless told."""

    account_id: int
    plan_ids: list[int]
    client_id: str
    client_secret: str
    token: str


@dataclass(frozen=True, slots=True)
class Operator:
    """A client of the installation, without an account, and its token."""

    client_id: str
    client_secret: str
    token: str


def _client(tx: Tx, new: NewClient, now: datetime) -> Operator:
    client, secret = create_client(tx, new, now=now)
    return Operator(
        client.client_id, secret, issue_token(tx, client, frozenset(new.scopes), now=now)
    )


def make_customer(
    db: Database,
    *,
    name: str = "Example Health",
    plan_count: int = 2,
    scopes: frozenset[Scope] = frozenset({Scope.CUSTOMER}),
    requests_per_minute: int | None = None,
    now: datetime = NOW,
) -> Customer:
    """A new account with its own provider group (one doctor on duty) and `plan_count` plans."""
    with db.write() as tx:
        account = access.create_account(tx, name=name, now=now)
        group = create_provider_group(tx, name=f"{name} Doctors", external_id=None, now=now)
        names = [
            (f"plan-{n}", f"{name} Plan {n}", None if n else "The first plan")
            for n in range(plan_count)
        ]
        made = [create_plan(tx, NewPlan(account.id, group.id, *each), now=now) for each in names]
        set_duty(tx, group.id, "doctor-1", on_duty=True, now=now)
        client = _client(
            tx, NewClient(account.id, "Benefits feed", scopes, requests_per_minute), now
        )
    ids = [plan.id for plan in made]
    return Customer(account.id, ids, client.client_id, client.client_secret, client.token)


def make_operator(
    db: Database, *, requests_per_minute: int | None = None, now: datetime = NOW
) -> Operator:
    with db.write() as tx:
        return _client(
            tx, NewClient(None, "Monitoring", frozenset({Scope.OPERATOR}), requests_per_minute), now
        )


def lift_immediate_limit(db: Database, customer: Customer) -> None:
    """All immediate invitations of the customer may be mailed at once, however many a fast machine
    makes within the hour.
    """
    with db.write() as tx:
        set_immediate_limit(tx, customer.account_id, 1_000_000)


def close_plan(db: Database, plan_id: int) -> None:
    """The plan is not active from now on."""
    with db.write() as tx:
        change_plan(tx, get_plan(tx, EVERY, plan_id, lock=True), {"accepting_patients": False})


def second_token(db: Database, account_id: int, *scopes: Scope, now: datetime = NOW) -> str:
    """The token of another client of the account, with the scope `customer` unless told."""
    with db.write() as tx:
        return _client(tx, NewClient(account_id, "Second", scopes or {Scope.CUSTOMER}), now).token


def member_body(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A complete, valid record, unique by `number`; `changes` replace fields, and `...` takes one
    out.
    """
    body: dict[str, Any] = {
        "external_id": f"AB {number:06d}",
        "member_id": f"M-{number:06d}",
        "first_name": "Robin",
        "last_name": "Sample" if number == 1 else f"Sample {number}",  # else they are similar
        "dob": "1977-01-11T00:00:00Z",
        "gender": "female",
        "email": f"robin.{number}@example.com",
        "phone": "9999999999",
        "zipcode": "02134",
        "city": "Boston",
        "state": "MA",
        "effective_date": "2026-01-01",
        "metadata": {"department": "North"},
    } | changes
    return {name: value for name, value in body.items() if value is not ...}
