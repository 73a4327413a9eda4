"""Now: the board in words, the day of a plan, and refreshes that cost little."""

import re
from datetime import timedelta

import pytest

from frontdesk.db import Database
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.conftest import SignIn
from tests.factories import NOW, Customer

REFRESH = {"X-Frontdesk-Refresh": "timer"}


def now_of(customer: Customer, plan_id: int | None = None) -> str:
    path = f"/console/accounts/{customer.account_id}/now"
    return path if plan_id is None else f"{path}/{plan_id}"


def test_first(sign_in: SignIn, customer: Customer) -> None:
    browser = sign_in(Role.VIEWER).open(now_of(customer))
    print(browser.page[-3000:])
    print(customer)
    browser.open(now_of(customer, customer.plan_id))
    print(browser.page[-6000:])
    assert 0
