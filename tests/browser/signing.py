"""Signs demo users of the console in, as a person does."""

from playwright.sync_api import Page

from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import ACCOUNT_ROLES, NewUser, Role
from tests.browser.window import Windows
from tests.conftest import SetClock
from tests.factories import Customer


def sign_in(page: Page, email: str, password: str) -> None:
    """Fill in the form of the sign-in page, and press its button."""
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


class Staff:
    """Users of the customer's account and of the installation, made when they are asked for."""

    def __init__(self, windows: Windows, db: Database, clock: SetClock, customer: Customer) -> None:
        self.windows = windows
        self.account = customer.account_id
        self._db = db
        self._clock = clock
        self._passwords: dict[Role, str] = {}

    def open(self, role: Role, path: str = "", *, with_script: bool = True) -> Page:
        """A window of a user with this role, signed in, at a path below the account."""
        page = self.windows.open("/console", with_script=with_script)
        self.sign_in(page, role)
        if path:
            page.goto(f"/console/accounts/{self.account}/{path}")
        return page

    def sign_in(self, page: Page, role: Role) -> None:
        """Fill in the form of the sign-in page."""
        sign_in(page, self._email(role), self._password(role))

    def _email(self, role: Role) -> str:
        return f"{role}@example.com"

    def _password(self, role: Role) -> str:
        if role not in self._passwords:
            home = self.account if role in ACCOUNT_ROLES else None
            new = NewUser(self._email(role), home, frozenset({role}))
            _, password = create_demo_user(self._db, new, name=f"The {role}", now=self._clock())
            self._passwords[role] = password
        return self._passwords[role]
