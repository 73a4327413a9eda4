"""Links that make a user or reset a password: shown once, used once.

A link is 256 random bits in a path; only their hash is stored.
"""

from dataclasses import replace
from datetime import datetime

from frontdesk import audit, codes
from frontdesk.access.accounts import refuse_unless_active
from frontdesk.access.callers import digest, new_secret
from frontdesk.audit import Requester
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Conflict, Fault, Invalid, NotFound
from frontdesk.reach import Reach
from frontdesk.users import passwords, store
from frontdesk.users.directory import get_user, refuse_own
from frontdesk.users.emails import parse_email
from frontdesk.users.model import (
    INVITATION_TIME,
    RESET_TIME,
    AttemptBegun,
    NewUser,
    User,
    UserInvitation,
    UserLink,
    UserState,
    Visitor,
)
from frontdesk.users.names import account_names, names_of, read_name
from frontdesk.users.roles import check_roles
from frontdesk.users.sign_in import begin_attempt
from frontdesk.users.store import Credentials
from frontdesk.users.trail import record, record_own

MOST_USERS = 1000  # of an account, or of the installation, with invitations that wait
INVITATION_PATH = "/console/invitation/"  # with the secret behind it
RESET_PATH = "/console/reset/"


def invite_user(tx: Tx, new: NewUser, requester: Requester) -> UserLink:
    """Invite a user, for 72 hours. The door takes `new.account_id` from the session or the command,
    never from a form. Nothing is said of an e-mail that is taken. It replaces an invitation of the
    e-mail into the account. Raises Invalid for an e-mail or roles that break a rule, or for one
    user too many; NotFound, Suspended for the account.
    """
    invited = replace(new, email=parse_email(new.email))
    check_roles(tx, new.account_id, new.roles, new.named_accounts)
    if new.account_id is not None:
        refuse_unless_active(tx, new.account_id)
    if store.count_users(tx, new.account_id) >= MOST_USERS:
        rule = f"must be one of {MOST_USERS} users: end some, or withdraw invitations"
        raise Invalid([Fault("email", codes.operators.TOO_MANY, rule)])
    secret = new_secret()
    times = requester.now, requester.now + INVITATION_TIME
    invitation_id = store.insert_invitation(
        tx, invited, secret_hash=digest(secret), invited_by=requester.actor, times=times
    )
    roles = sorted(new.roles)
    audit.record_action(
        tx,
        requester,
        "user.invited",
        new.account_id,
        None,
        invitation_id=invitation_id,
        roles=roles,
    )
    return UserLink(secret, times[1])


def list_invitations(tx: Tx, reach: Reach, *, now: datetime) -> list[UserInvitation]:
    """The invitations that wait to be used, the newest first: of the account within reach; with
    EVERY all of them.
    """
    return store.list_invitations(tx, reach, now=now)


def list_invitations_of_home(
    tx: Tx, account_id: int | None, *, now: datetime, before_id: int, limit: int
) -> list[UserInvitation]:
    """A page of the invitations into one home that wait to be used, before an id, the newest first:
    into the account, or with None into the installation.
    """
    return store.list_invitations_of_home(tx, account_id, now=now, before_id=before_id, limit=limit)


def get_of_home(tx: Tx, account_id: int | None, invitation_id: int) -> UserInvitation:
    """The invitation into this home: the account, or with None the installation. Raises NotFound."""
    found = store.get_invitation(tx, invitation_id)
    if found is None or found.new.account_id != account_id:
        raise NotFound("user invitation")
    return found


def withdraw_invitation(tx: Tx, reach: Reach, invitation_id: int, requester: Requester) -> None:
    """End an invitation. Raises NotFound."""
    found = store.get_invitation(tx, invitation_id)
    if found is None or not reach.covers(found.new.account_id):
        raise NotFound("user invitation")
    if not store.delete_invitation(tx, invitation_id):
        raise NotFound("user invitation")
    account_id = found.new.account_id
    audit.record_action(
        tx, requester, "user.invitation_withdrawn", account_id, None, invitation_id=invitation_id
    )


def invitation_of(tx: Tx, secret: str, *, now: datetime) -> UserInvitation:
    """The invitation behind a link; reads only. Raises NotFound for one that was used or has
    ended, Suspended while the account waits.
    """
    found = store.find_invitation(tx, digest(secret))
    if found is None or found.expires_at <= now:
        detail = "The link was used, or has ended. Ask for another one."
        raise NotFound("user link", detail)
    if found.new.account_id is not None:
        refuse_unless_active(tx, found.new.account_id)
    return found


def accept_invitation(
    db: Database, visitor: Visitor, *, secret: str, name: str, password: str
) -> AttemptBegun:
    """Make the invited user. The attempt goes on with the set-up of the second factor.

    Raises NotFound for a link that was used or has ended; Invalid for the name or the password;
    Conflict (`email_taken`) if another user signs in by this e-mail: only the holder of the link
    learns it. Call it without a transaction.
    """
    now = visitor.requester.now
    shown_name = read_name(name)

    def check(tx: Tx) -> None:
        found = invitation_of(tx, secret, now=now)
        names = [found.new.email, shown_name, *account_names(tx, found.new.account_id)]
        passwords.check_new_password(password, names=names)

    db.ask(check)
    password_hash = passwords.hash_password(password)

    def accept(tx: Tx) -> AttemptBegun:
        found = invitation_of(tx, secret, now=now)
        if not store.delete_invitation(tx, found.id):
            raise NotFound("user link", "The link was used already.")
        if store.find_by_email(tx, found.new.email) is not None:
            detail = "Another user signs in by this e-mail. Ask for an invitation of another one."
            raise Conflict(detail, code=codes.operators.EMAIL_TAKEN)
        user_id = store.insert_user(
            tx,
            found.new,
            name=shown_name,
            password_hash=password_hash,
            invited_by=(found.invited_by, now),
        )
        credentials = _found(tx, user_id)
        roles = sorted(found.new.roles)
        record_own(
            tx,
            visitor.requester,
            "user.joined",
            credentials.user,
            invitation_id=found.id,
            roles=roles,
        )
        return begin_attempt(tx, credentials, now=now)

    return write_alone(db, accept)


def make_reset_link(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> UserLink:
    """A link by which the user chooses another password within an hour; the second factor stays.
    A newer link ends the older. Raises NotFound; Conflict (`own_user`) for oneself.
    """
    user = get_user(tx, reach, user_id)
    refuse_own(user, requester, "Change your own password on the page of your own settings.")
    if user.state is UserState.ENDED:
        raise NotFound("user")
    secret = new_secret()
    until = requester.now + RESET_TIME
    store.lock_user(tx, user_id)
    times = requester.now, until
    store.replace_reset(
        tx, user_id, secret_hash=digest(secret), made_by=requester.actor, times=times
    )
    record(tx, requester, "user.reset_link_made", user)
    return UserLink(secret, until)


def user_of_reset(tx: Tx, secret: str, *, now: datetime) -> User:
    """The user of a reset link; reads only. Raises NotFound for one that was used or has ended."""
    user_id = store.find_reset(tx, digest(secret), now)
    found = None if user_id is None else store.find_credentials(tx, user_id)
    if found is None or not found.is_admitted:
        detail = "The link was used, or has ended. Ask for another one."
        raise NotFound("user link", detail)
    return found.user


def reset_password(db: Database, visitor: Visitor, *, secret: str, password: str) -> User:
    """Change the password by a reset link; every session of the user ends. The user signs in after
    that. Raises NotFound, Invalid. Call it without a transaction.
    """
    now = visitor.requester.now

    def check(tx: Tx) -> None:
        user = user_of_reset(tx, secret, now=now)
        passwords.check_new_password(password, names=names_of(tx, user))

    db.ask(check)
    password_hash = passwords.hash_password(password)

    def reset(tx: Tx) -> User:
        user = user_of_reset(tx, secret, now=now)
        store.lock_user(tx, user.id)
        if not store.delete_reset(tx, digest(secret)):
            raise NotFound("user link", "The link was used already.")
        store.change_user(tx, user.id, password_hash=password_hash)
        store.delete_sessions(tx, user.id)
        record_own(tx, visitor.requester, "user.password_reset", user)
        return user

    return write_alone(db, reset)


def _found(tx: Tx, user_id: int) -> Credentials:
    found = store.find_credentials(tx, user_id)
    if found is None:
        raise NotFound("user")
    return found
