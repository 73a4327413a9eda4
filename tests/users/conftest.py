"""Users of the console as browsers meet them: a desk that invites, signs in and moves the clock."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from pyotp import TOTP

from frontdesk.audit import Requester, list_entries
from frontdesk.db import Database, Tx
from frontdesk.reach import EVERY
from frontdesk.users import directory, factors, links, sessions, sign_in
from frontdesk.users.factors import FactorKey
from frontdesk.users.live_sessions import LiveSessions
from frontdesk.users.model import AttemptBegun, NewUser, Role, Session, SignedIn, User, Visitor
from tests.conftest import SetClock
from tests.factories import Customer

KEY = FactorKey("link secret of the tests, thirty-two", "frontdesk (api.example.com)")
PASSWORD = "correct-battery-staple"
ADDRESS = "192.0.2.1"


@dataclass
class Person:
    """A user with a browser: what the person knows, has, and what the browser keeps."""

    user: User
    totp: TOTP
    recovery_codes: tuple[str, ...]
    password: str = PASSWORD
    browser: str | None = None
    sessions: list[str] = field(default_factory=list)


class Desk:
    """Does what the pages do, at the time of a set clock. Each code is of the next step of 30 s, as
    a code counts once.
    """

    def __init__(self, db: Database, clock: SetClock, customer: Customer) -> None:
        self.db = db
        self.clock = clock
        self.customer = customer

    def requester(self, actor: str = "cli:operator") -> Requester:
        return Requester(actor, "request", self.clock())

    def visitor(self, address: str = ADDRESS, browser: str | None = None) -> Visitor:
        return Visitor(address, browser, self.requester("console"))

    def invite(self, email: str, *roles: Role, of_installation: bool = False) -> str:
        """The secret of the invitation's link."""
        account_id = None if of_installation else self.customer.account_id
        new = NewUser(email, account_id, frozenset(roles))
        with self.db.write() as tx:
            return links.invite_user(tx, new, self.requester()).secret

    def accept(self, secret: str, *, password: str = PASSWORD) -> AttemptBegun:
        return links.accept_invitation(
            self.db, self.visitor(), secret=secret, name="Ana Ruiz", password=password
        )

    def seed(self, user_id: int) -> TOTP:
        """The authenticator of the second factor that the user is setting up."""
        offer = self.db.ask(lambda tx: factors.offered_factor(tx, KEY, user_id))
        return TOTP(offer.seed.replace(" ", ""))

    def join(
        self, email: str = "ana@example.org", *roles: Role, of_installation: bool = False
    ) -> Person:
        """A user who has set up everything, and is signed in once."""
        given = roles or (Role.EDITOR,)
        begun = self.accept(self.invite(email, *given, of_installation=of_installation))
        totp = self.seed(begun.attempt.user.id)
        code = self.code(totp)
        done = sign_in.set_up_factor(self.db, self.visitor(), KEY, attempt=begun.secret, code=code)
        assert done is not None
        person = Person(done.session.user, totp, done.recovery_codes, browser=done.browser_secret)
        person.sessions.append(done.secret)
        return person

    def code(self, totp: TOTP) -> str:
        """A code that was not used yet."""
        self.clock.advance(factors.STEP_SECONDS)
        return totp.at(self.clock())

    def password(
        self,
        email: str,
        password: str = PASSWORD,
        *,
        address: str = ADDRESS,
        browser: str | None = None,
    ) -> AttemptBegun | SignedIn | None:
        return sign_in.check_password(
            self.db, self.visitor(address, browser), email=email, password=password
        )

    def attempt(self, person: Person, *, address: str = ADDRESS) -> str:
        """The secret of a sign-in whose password was right."""
        begun = self.password(person.user.email, person.password, address=address)
        assert isinstance(begun, AttemptBegun)
        return begun.secret

    def check(self, attempt: str, code: str, *, address: str = ADDRESS) -> SignedIn | None:
        return sign_in.check_code(self.db, self.visitor(address), KEY, attempt=attempt, code=code)

    def sign_in(self, person: Person) -> SignedIn:
        begun = self.password(person.user.email, person.password, browser=person.browser)
        assert isinstance(begun, AttemptBegun)
        code = self.code(person.totp)
        visitor = self.visitor(browser=person.browser)
        done = sign_in.check_code(self.db, visitor, KEY, attempt=begun.secret, code=code)
        assert done is not None
        person.browser = done.browser_secret
        person.sessions.append(done.secret)
        return done

    def session(self, secret: str, *, is_use: bool = True) -> Session | None:
        if is_use:
            return sessions.session_of(self.db, secret, now=self.clock())
        return asyncio.run(self.live_sessions().find(secret))

    def live_sessions(self) -> LiveSessions:
        """Those of a process that has just begun."""
        return LiveSessions(self._ask, self.clock)

    async def _ask(self, question: Callable[[Tx], Any]) -> Any:
        return self.db.ask(question)

    def live(self, secret: str) -> Session:
        found = self.session(secret, is_use=False)
        assert found is not None
        return found

    def confirm(self, secret: str, code: str) -> SignedIn | None:
        return sessions.confirm(self.db, self.visitor(), KEY, session=secret, code=code)

    def user(self, user_id: int) -> User:
        return self.db.ask(lambda tx: directory.get_user(tx, EVERY, user_id))

    def trail(self) -> list[str]:
        """The actions of the audit trail, the oldest first."""
        entries = self.db.ask(lambda tx: list_entries(tx, EVERY, limit=1000))
        return [str(entry["action"]) for entry in reversed(entries)]


def at(moment: datetime | None) -> datetime:
    assert moment is not None
    return moment


@pytest.fixture
def desk(db: Database, clock: SetClock, customer: Customer) -> Desk:
    return Desk(db, clock, customer)
