"""Signing in, step by step: e-mail and password, then the second factor, then a session.

Functions that take `db` open their transactions themselves, and hash passwords between them.
"""

from datetime import datetime

from frontdesk.access.callers import digest, new_secret
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import NotFound
from frontdesk.users import factors, limits, passwords, sessions, store
from frontdesk.users.emails import sign_in_name
from frontdesk.users.factors import FactorKey
from frontdesk.users.model import (
    ATTEMPT_TIME,
    MOST_WRONG_CODES,
    AttemptBegun,
    SignedIn,
    SignInAttempt,
    SignInStep,
    User,
    Visitor,
)
from frontdesk.users.store import Credentials
from frontdesk.users.trail import record, record_own

UNKNOWN = "unknown"  # the actor of an attempt for an e-mail that no user has


def check_password(
    db: Database, visitor: Visitor, *, email: str, password: str
) -> AttemptBegun | SignedIn | None:
    """The first step. None for a wrong pair, an ended user and a suspended account: nothing says
    which. A demo user of a sandbox is signed in at once.

    Raises RateLimited (`retry_after_seconds`) when too many attempts have failed from this network
    or for this user; the password is not looked at then.
    """
    name = sign_in_name(email)

    def begin(tx: Tx) -> tuple[Credentials | None, list[int]]:
        found = store.find_by_email(tx, name)
        user = found.user if found else None
        return found, limits.count_attempt(tx, visitor, name, user)

    found, failures = write_alone(db, begin)
    is_right = passwords.matches(password, found.password_hash if found else None)
    if found is None or not is_right or not found.is_admitted:
        write_alone(db, lambda tx: _note_refusal(tx, visitor, name, found, "password"))
        return None
    renewed = None
    if found.password_hash is not None and passwords.is_outdated(found.password_hash):
        renewed = passwords.hash_password(password)

    def finish(tx: Tx) -> AttemptBegun | SignedIn | None:
        store.lock_user(tx, found.user.id)
        present = store.find_credentials(tx, found.user.id)
        if (
            present is None
            or not present.is_admitted
            or present.password_hash != found.password_hash
        ):
            return None  # it was changed or ended meanwhile
        limits.forgive(tx, failures)
        if renewed is not None:
            store.change_user(tx, found.user.id, password_hash=renewed)
        if present.user.is_demo:
            return sessions.open_session(tx, visitor, present.user, factor_at=None)
        return begin_attempt(tx, present, now=visitor.requester.now)

    return write_alone(db, finish)


def begin_attempt(tx: Tx, credentials: Credentials, *, now: datetime) -> AttemptBegun:
    """A sign-in whose password was right. A user without a second factor is offered a new one."""
    user = credentials.user
    if not user.has_second_factor:
        factors.new_offer(tx, user.id)
    secret = new_secret()
    until = now + ATTEMPT_TIME
    store.insert_attempt(tx, user.id, secret_hash=digest(secret), created_at=now, expires_at=until)
    return AttemptBegun(secret, _attempt(credentials, wrong_codes=0, expires_at=until))


def _attempt(credentials: Credentials, *, wrong_codes: int, expires_at: datetime) -> SignInAttempt:
    user = credentials.user
    step = SignInStep.SECOND_FACTOR if user.has_second_factor else SignInStep.SET_UP
    removed = credentials.factor_removed_at, credentials.factor_removed_by
    return SignInAttempt(user, step, expires_at, wrong_codes, *removed)


def attempt_of(tx: Tx, secret: str, *, now: datetime) -> SignInAttempt | None:
    """The sign-in under way; None once it has ended. Reads only."""
    found = store.find_attempt(tx, digest(secret), now)
    if found is None:
        return None
    user_id, wrong_codes, expires_at = found
    credentials = store.find_credentials(tx, user_id)
    if credentials is None or not credentials.is_admitted:
        return None
    return _attempt(credentials, wrong_codes=wrong_codes, expires_at=expires_at)


def check_code(
    db: Database, visitor: Visitor, key: FactorKey, *, attempt: str, code: str
) -> SignedIn | None:
    """The second step: a code of the app, or a recovery code. None for a wrong one; the fifth
    ends the attempt (`attempt_of` is None then). Raises NotFound (`sign-in`) for an attempt that
    has ended, RateLimited.
    """

    def check(tx: Tx) -> SignedIn | None:
        found, failures = _locked_attempt(tx, visitor, attempt, SignInStep.SECOND_FACTOR)
        user = _credentials(tx, found.user.id)
        if not factors.accept_code(tx, key, user, code, visitor.requester.now):
            _count_wrong_code(tx, visitor, attempt, found)
            return None
        if factors.is_recovery_code(code):
            left = factors.count_recovery_codes(tx, found.user.id)
            record_own(tx, visitor.requester, "user.recovery_code_used", found.user, left=left)
        limits.forgive(tx, failures)
        return _open(tx, visitor, attempt, found.user)

    return write_alone(db, check)


def set_up_factor(
    db: Database, visitor: Visitor, key: FactorKey, *, attempt: str, code: str
) -> SignedIn | None:
    """The second step of a user without a second factor: the first code of the one that
    `factors.offered_factor` shows. None for a wrong one. The answer has the ten recovery codes.
    Raises as `check_code`.
    """

    def set_up(tx: Tx) -> SignedIn | None:
        found, failures = _locked_attempt(tx, visitor, attempt, SignInStep.SET_UP)
        user = _credentials(tx, found.user.id)
        recovery_codes = factors.accept_offer(tx, key, user, code, visitor.requester.now)
        if recovery_codes is None:
            _count_wrong_code(tx, visitor, attempt, found)
            return None
        limits.forgive(tx, failures)
        record_own(tx, visitor.requester, "user.factor_set_up", found.user)
        signed_in = _open(tx, visitor, attempt, found.user)
        return signed_in._replace(recovery_codes=recovery_codes)

    return write_alone(db, set_up)


def _locked_attempt(
    tx: Tx, visitor: Visitor, secret: str, step: SignInStep
) -> tuple[SignInAttempt, list[int]]:
    """The attempt at this step, with the failure that is counted. Raises NotFound, RateLimited."""
    now = visitor.requester.now
    begun = attempt_of(tx, secret, now=now)
    if begun is None:
        raise _ended()
    failures = limits.count_attempt(tx, visitor, begun.user.email, begun.user)
    store.lock_user(tx, begun.user.id)
    found = attempt_of(tx, secret, now=now)  # as it is now that others wait
    if found is None or found.step is not step:
        raise _ended()
    return found, failures


def _ended() -> NotFound:
    return NotFound("sign-in", "This sign-in has ended. Sign in again.")


def _credentials(tx: Tx, user_id: int) -> Credentials:
    found = store.find_credentials(tx, user_id)
    if found is None:
        raise _ended()
    return found


def _count_wrong_code(tx: Tx, visitor: Visitor, secret: str, found: SignInAttempt) -> None:
    wrong_codes = found.wrong_codes + 1
    if wrong_codes >= MOST_WRONG_CODES:
        store.delete_attempt(tx, digest(secret))
    else:
        store.change_attempt(tx, digest(secret), wrong_codes)
    credentials = _credentials(tx, found.user.id)
    _note_refusal(tx, visitor, found.user.email, credentials, "code")


def _open(tx: Tx, visitor: Visitor, secret: str, user: User) -> SignedIn:
    store.delete_attempt(tx, digest(secret))
    return sessions.open_session(tx, visitor, user, factor_at=visitor.requester.now)


def _note_refusal(
    tx: Tx, visitor: Visitor, email: str, found: Credentials | None, step: str
) -> None:
    """The trail has the refusal, and the last one before the limit: those that are refused unheard
    are not recorded. It never has an e-mail.
    """
    user = found.user if found else None
    requester = visitor.requester._replace(actor=user.actor if user else UNKNOWN)
    record(tx, requester, "user.sign_in_refused", user, step=step)
    if limits.is_used_up(tx, visitor, email, user):
        record(tx, requester, "user.sign_in_limited", user)
