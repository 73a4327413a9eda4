"""Sessions of users: open, read, confirm by a second factor, list, end.

A session is the 256 random bits of a cookie, stored as a hash. It gets others with each second
factor, so a secret that somebody planted or saw before is worth nothing after it.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from frontdesk.access.callers import digest, new_secret
from frontdesk.audit import Requester
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import NotFound, Unavailable
from frontdesk.reach import Reach
from frontdesk.users import factors, limits, passwords, store
from frontdesk.users.directory import get_user
from frontdesk.users.factors import FactorKey
from frontdesk.users.model import (
    MOST_SESSIONS,
    MOST_WRONG_CODES,
    SESSION_TIME,
    NotFresh,
    Session,
    SignedIn,
    User,
    Visitor,
)
from frontdesk.users.names import names_of
from frontdesk.users.store import StoredSession
from frontdesk.users.trail import record, record_own

USE_WRITTEN = timedelta(minutes=1)  # a use is written when the last written one is older
WRITE_SECONDS = 1.0  # the longest wait of a use for the database: a page is worth more
MOST_BROWSERS = 10  # of a user that are known


def open_session(tx: Tx, visitor: Visitor, user: User, *, factor_at: datetime | None) -> SignedIn:
    """A new session of the user, whose row is locked. The user's oldest ends if there are five. The
    browser is known for this user from now on, by a new secret.
    """
    now = visitor.requester.now
    secret = new_secret()
    row = {
        "secret_hash": digest(secret),
        "user_id": user.id,
        "wrong_codes": 0,
        "created_at": now,
        "last_used_at": now,
        "ends_at": now + SESSION_TIME,
        "factor_at": factor_at,
    }
    store.insert_session(tx, row, most=MOST_SESSIONS)
    store.change_user(tx, user.id, last_signed_in_at=now)
    record_own(tx, visitor.requester, "user.signed_in", user)
    return _signed_in(tx, visitor, secret)


def session_of(db: Database, secret: str, *, now: datetime) -> Session | None:
    """The session behind a cookie; None once it has ended, its user has ended, or the account is
    suspended. This is a use of it, which moves its idle end; it is written once a minute at most.
    """
    hashed = digest(secret)
    session = live_session(db.ask(lambda tx: store.find_session(tx, hashed)), now=now)
    if session is None or now - session.last_used_at < USE_WRITTEN:
        return session
    with suppress(Unavailable):
        write_alone(
            db, lambda tx: store.note_session_use(tx, session.id, now), wait_seconds=WRITE_SECONDS
        )
        return replace(session, last_used_at=now)
    return session


def live_session(found: StoredSession | None, *, now: datetime) -> Session | None:
    """None for a session that has ended, or whose user may not sign in any more."""
    return found.session if found is not None and _is_live(found, now) else None


def confirm(
    db: Database, visitor: Visitor, key: FactorKey, *, session: str, code: str
) -> SignedIn | None:
    """Give the second factor anew: the session counts as fresh for 10 minutes and gets another
    secret. None for a wrong code; the fifth ends the session. Raises RateLimited, and NotFound for
    a session that has ended.
    """

    def check(tx: Tx) -> SignedIn | None:
        found, failures = _locked_session(tx, visitor, session)
        if not factors.accept_code(tx, key, found.credentials, code, visitor.requester.now):
            _count_wrong_code(tx, visitor, found)
            return None
        limits.forgive(tx, failures)
        user = found.session.user
        if factors.is_recovery_code(code):
            left = factors.count_recovery_codes(tx, user.id)
            record_own(tx, visitor.requester, "user.recovery_code_used", user, left=left)
        return _renew(tx, visitor, found, factor_at=visitor.requester.now)

    return write_alone(db, check)


def change_factor(
    db: Database, visitor: Visitor, key: FactorKey, *, session: str, code: str
) -> SignedIn | None:
    """Confirm the second factor that `factors.offer_factor` began to set up. The user's other
    sessions and the old recovery codes end; the answer has ten new ones. Raises as `confirm`, and
    NotFresh.
    """

    def change(tx: Tx) -> SignedIn | None:
        found, failures = _locked_session(tx, visitor, session)
        now = visitor.requester.now
        refuse_unless_fresh(found.session, now=now)
        recovery_codes = factors.accept_offer(tx, key, found.credentials, code, now)
        if recovery_codes is None:
            _count_wrong_code(tx, visitor, found)
            return None
        limits.forgive(tx, failures)
        user = found.session.user
        record_own(tx, visitor.requester, "user.factor_changed", user)
        store.delete_sessions(tx, user.id, but=found.session.id)
        signed_in = _renew(tx, visitor, found, factor_at=now)
        return signed_in._replace(recovery_codes=recovery_codes)

    return write_alone(db, change)


def renew_recovery_codes(tx: Tx, session: Session, requester: Requester) -> tuple[str, ...]:
    """Ten new recovery codes; the old ones end. Raises NotFresh."""
    refuse_unless_fresh(session, now=requester.now)
    store.lock_user(tx, session.user.id)
    record(tx, requester, "user.recovery_codes_renewed", session.user)
    return factors.new_recovery_codes(tx, session.user.id)


def change_password(
    db: Database, visitor: Visitor, *, session: str, present: str, new: str
) -> SignedIn | None:
    """Change one's own password; None if `present` is wrong. The user's other sessions end, and
    this one gets another secret. Raises Invalid for the new one, NotFresh, RateLimited, and
    NotFound for a session that has ended.
    """
    now = visitor.requester.now

    def begin(tx: Tx) -> tuple[StoredSession, list[int]]:
        found, failures = _locked_session(tx, visitor, session)
        refuse_unless_fresh(found.session, now=now)
        passwords.check_new_password(new, names=names_of(tx, found.session.user))
        return found, failures

    found, failures = write_alone(db, begin)
    if not passwords.matches(present, found.credentials.password_hash):
        write_alone(
            db,
            lambda tx: record_own(
                tx,
                visitor.requester,
                "user.confirmation_refused",
                found.session.user,
                step="password",
            ),
        )
        return None
    new_hash = passwords.hash_password(new)

    def change(tx: Tx) -> SignedIn:
        locked = _lock(tx, session, now)
        limits.forgive(tx, failures)
        user = locked.session.user
        store.change_user(tx, user.id, password_hash=new_hash)
        store.delete_sessions(tx, user.id, but=locked.session.id)
        record_own(tx, visitor.requester, "user.password_changed", user)
        return _renew(tx, visitor, locked, factor_at=locked.session.factor_at)

    return write_alone(db, change)


def list_sessions(tx: Tx, user_id: int, *, now: datetime) -> list[Session]:
    """The live sessions of a user that the door has found within its reach, the newest first."""
    return [each for each in store.list_sessions(tx, user_id) if now < each.idle_until]


def end_session(tx: Tx, user_id: int, session_id: int, requester: Requester) -> None:
    """End a session of the user: sign out, or end one of one's own. Raises NotFound."""
    found = store.find_credentials(tx, user_id)
    if found is None or not store.delete_session(tx, user_id, session_id):
        raise NotFound("session")
    record(tx, requester, "user.session_ended", found.user, session_id=session_id)


def end_sessions(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> int:
    """End every session of the user; returns how many there were. Raises NotFound."""
    user = get_user(tx, reach, user_id)
    count = store.delete_sessions(tx, user_id)
    record(tx, requester, "user.sessions_ended", user, sessions=count)
    return count


def end_sessions_of_account(tx: Tx, account_id: int) -> None:
    """The account was suspended or closed: the sessions of its users don't come back with it."""
    for user in store.list_users(tx, Reach.of(account_id), with_ended=False):
        store.delete_sessions(tx, user.id)


def refuse_unless_fresh(session: Session, *, now: datetime) -> None:
    """Raises NotFresh if the last second factor is older than 10 minutes."""
    if not session.is_fresh(now):
        raise NotFresh


def _is_live(found: StoredSession, now: datetime) -> bool:
    return found.credentials.is_admitted and now < found.session.idle_until


def _lock(tx: Tx, secret: str, now: datetime) -> StoredSession:
    """The live session, whose user is locked. Raises NotFound."""
    hashed = digest(secret)
    found = store.find_session(tx, hashed)
    if found is not None:
        store.lock_user(tx, found.session.user.id)
        found = store.find_session(tx, hashed)  # as it is now that others wait
    if found is None or not _is_live(found, now):
        raise NotFound("session", "The session has ended. Sign in again.")
    return found


def _locked_session(tx: Tx, visitor: Visitor, secret: str) -> tuple[StoredSession, list[int]]:
    """The live session, with the failure that is counted. Raises NotFound, RateLimited."""
    now = visitor.requester.now
    begun = store.find_session(tx, digest(secret))
    if begun is None:
        raise NotFound("session", "The session has ended. Sign in again.")
    user = begun.session.user
    failures = limits.count_attempt(tx, visitor, user.email, user)
    return _lock(tx, secret, now), failures


def _count_wrong_code(tx: Tx, visitor: Visitor, found: StoredSession) -> None:
    user = found.session.user
    wrong_codes = found.wrong_codes + 1
    record_own(tx, visitor.requester, "user.confirmation_refused", user, step="code")
    if wrong_codes < MOST_WRONG_CODES:
        store.change_session(tx, found.session.id, wrong_codes=wrong_codes)
        return
    store.delete_session(tx, user.id, found.session.id)
    record_own(tx, visitor.requester, "user.session_ended", user, session_id=found.session.id)


def _renew(
    tx: Tx, visitor: Visitor, found: StoredSession, *, factor_at: datetime | None
) -> SignedIn:
    """Another secret for the session."""
    secret = new_secret()
    changes = {"secret_hash": digest(secret), "factor_at": factor_at, "wrong_codes": 0}
    store.change_session(tx, found.session.id, last_used_at=visitor.requester.now, **changes)
    return _signed_in(tx, visitor, secret)


def _signed_in(tx: Tx, visitor: Visitor, secret: str) -> SignedIn:
    """The answer to a browser: the session as it is stored, and the browser's new secret."""
    found = store.find_session(tx, digest(secret))
    if found is None:
        raise NotFound("session")
    known = visitor.browser_secret
    browser_secret = new_secret()
    store.renew_browser(
        tx,
        found.session.user.id,
        old_hash=None if known is None else digest(known),
        new_hash=digest(browser_secret),
        now=visitor.requester.now,
        most=MOST_BROWSERS,
    )
    return SignedIn(secret, found.session, browser_secret)
