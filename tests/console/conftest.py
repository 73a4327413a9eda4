"""Users of every role, and browsers that are signed in as them."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from frontdesk.audit import Requester
from frontdesk.config import Config
from frontdesk.console.cookies import SESSION, cookie_name
from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import ACCOUNT_ROLES, NewUser, Role, Visitor
from frontdesk.users.sessions import open_session
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
    browsers: Callable[[], Browser],
    db: Database,
    config: Config,
    customer: Customer,
    clock: SetClock,
) -> SignIn:
    """Signs a demo user with these roles in: of the customer's account, or of the installation. The
    session is stored as the sign-in page stores it, without the time that a password's hash takes.
    """

    def signed_in(*roles: Role, account_id: int | None = None) -> Browser:
        is_of_account = bool(ACCOUNT_ROLES.intersection(roles))
        email = f"{'-'.join(roles)}@example.com"
        home = account_id or customer.account_id
        new = NewUser(email, home if is_of_account else None, frozenset(roles))
        user, _ = create_demo_user(db, new, name="Ana Ruiz", now=clock())
        visitor = Visitor("203.0.113.7", None, Requester("test", "request", clock()))
        with db.write() as tx:
            secret = open_session(tx, visitor, user, factor_at=None).secret
        browser = browsers()
        browser.http.cookies.set(cookie_name(config, SESSION), secret)
        browser.open("/console")
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
