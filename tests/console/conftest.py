"""Users of every role, and browsers that are signed in as them."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import ACCOUNT_ROLES, NewUser, Role
from tests.conftest import Api, SetClock
from tests.console.browsing import ORIGIN, Browser
from tests.factories import Customer, make_customer
from tests.files.loading import Desk

SignIn = Callable[..., Browser]


@pytest.fixture
def browsers(api: Api) -> Callable[[], Browser]:
    """Opens browsers of the service behind `api`, each with cookies of its own."""

    def open_browser() -> Browser:
        http = TestClient(api.http.app, base_url=ORIGIN)
        http.portal = api.http.portal
        return Browser(http)

    return open_browser


@pytest.fixture
def sign_in(
    browsers: Callable[[], Browser], db: Database, customer: Customer, clock: SetClock
) -> SignIn:
    """Signs a demo user with these roles in: of the customer's account, or of the installation."""

    def signed_in(*roles: Role, account_id: int | None = None) -> Browser:
        is_of_account = bool(ACCOUNT_ROLES.intersection(roles))
        email = f"{'-'.join(roles)}@example.com"
        home = account_id or customer.account_id
        new = NewUser(email, home if is_of_account else None, frozenset(roles))
        _, password = create_demo_user(db, new, name="Ana Ruiz", now=clock())
        browser = browsers()
        browser.open("/console/sign-in")
        browser.send("/console/sign-in", email=email, password=password)
        assert browser.status in (200, 404), browser.page
        return browser

    return signed_in


@pytest.fixture
def other_account(db: Database) -> int:
    return make_customer(db, name="Other Health").account_id


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    """Hands in files as the customer's API client."""
    made = Desk(db, customer, clock)
    made.client = customer.client_id
    return made


@pytest.fixture
def other(db: Database, clock: SetClock) -> Desk:
    """The desk of another account."""
    return Desk(db, make_customer(db, name="Other Health"), clock)
