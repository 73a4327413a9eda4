"""Users of the console, their roles and rights, and what a browser holds of them.

The table of roles is that of docs/console.md. A user belongs to one account or to the installation.
Secrets of links, sessions, sign-ins and browsers are 256 random bits; only their SHA-256 is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from frontdesk import codes
from frontdesk.audit import Requester, user_actor
from frontdesk.codes.model import Kind, complete
from frontdesk.errors import FrontdeskError

IDLE = timedelta(minutes=30)  # the longest pause between two uses of a session
SESSION_TIME = timedelta(hours=12)  # the longest life of a session
FRESH = timedelta(minutes=10)  # how long a second factor counts as fresh
ATTEMPT_TIME = timedelta(minutes=15)  # from a right password to its second factor
INVITATION_TIME = timedelta(hours=72)
RESET_TIME = timedelta(hours=1)
MOST_SESSIONS = 5  # of a user: the oldest ends
MOST_WRONG_CODES = 5  # of an attempt, and of a session
NAME_LENGTH = 100


class Role(StrEnum):
    """A role of a user. The first four are of an account; support is of named accounts or of every
    account; the last two are of the installation.
    """

    VIEWER = "viewer"
    EDITOR = "editor"
    APPROVER = "approver"
    ADMIN = "admin"
    SUPPORT = "support"
    OPERATOR = "operator"
    AUDITOR = "auditor"


ACCOUNT_ROLES = frozenset({Role.VIEWER, Role.EDITOR, Role.APPROVER, Role.ADMIN})


class Right(StrEnum):
    """What a role may allow: a row of the table of roles."""

    FILES_READ = "files_read"  # states, counts and faults of files; Now
    FILES_WRITE = "files_write"  # upload, map, dry run, apply, cancel, undo
    FILE_NAMES = "file_names"  # the names in a file's lists, and its report
    APPROVE = "approve"  # a held file, and the mapping of a held file
    PEOPLE_FIND = "people_find"  # by birth date and name, or by an identifier
    PEOPLE_CHECK = "people_check"  # the covered page, the check of a caller, why no mail came
    RECORD_OPEN = "record_open"  # with a reason
    RECORD_CHANGE = "record_change"  # correct, end, rename
    EMAIL_CHANGE = "email_change"
    INVITATION_SEND = "invitation_send"  # resend or cancel an invitation, lift a bounce
    ACCOUNT_MANAGE = "account_manage"  # clients, webhooks, users and sessions of the account
    SYSTEM = "system"  # System; accounts; users of the installation
    TRAIL = "trail"


_R = Right
RIGHTS: Mapping[Role, frozenset[Right]] = complete(
    Role,
    {
        Role.VIEWER: frozenset({_R.FILES_READ}),
        Role.EDITOR: frozenset(
            {
                _R.FILES_READ,
                _R.FILES_WRITE,
                _R.FILE_NAMES,
                _R.PEOPLE_FIND,
                _R.PEOPLE_CHECK,
                _R.RECORD_OPEN,
                _R.RECORD_CHANGE,
                _R.EMAIL_CHANGE,
                _R.INVITATION_SEND,
            }
        ),
        Role.APPROVER: frozenset(
            {
                _R.FILES_READ,
                _R.FILE_NAMES,
                _R.APPROVE,
                _R.PEOPLE_FIND,
                _R.PEOPLE_CHECK,
                _R.RECORD_OPEN,
            }
        ),
        Role.ADMIN: frozenset({_R.FILES_READ, _R.ACCOUNT_MANAGE, _R.TRAIL}),
        Role.SUPPORT: frozenset(
            {
                _R.FILES_READ,
                _R.PEOPLE_FIND,
                _R.PEOPLE_CHECK,
                _R.RECORD_OPEN,
                _R.EMAIL_CHANGE,
                _R.INVITATION_SEND,
            }
        ),
        Role.OPERATOR: frozenset({_R.FILES_READ, _R.SYSTEM}),
        Role.AUDITOR: frozenset({_R.PEOPLE_FIND, _R.TRAIL}),
    },
)


class UserState(StrEnum):
    ACTIVE = "active"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the console.

    `email` is the sign-in name, folded. `account_id` is None for a user of the installation.
    `roles` says of each role since when the user has held it. `named_accounts` are the accounts of
    a support role, None for every account. `time_zone` is a name such as America/New_York, or None.
    `invited_by` is an actor (`user:3`, or `cli:` and a login name).
    """

    id: int
    email: str
    name: str
    account_id: int | None
    named_accounts: frozenset[int] | None
    roles: Mapping[Role, datetime]
    time_zone: str | None
    state: UserState
    has_second_factor: bool
    is_demo: bool
    invited_by: str
    created_at: datetime
    last_signed_in_at: datetime | None
    ended_at: datetime | None

    @property
    def actor(self) -> str:
        """The user in the audit trail, in history and in logs."""
        return user_actor(self.id)

    @property
    def is_of_installation(self) -> bool:
        return self.account_id is None

    def may(self, right: Right, account_id: int | None) -> bool:
        """Whether a role of the user allows this in the account; None asks for the installation,
        which is every account.
        """
        return any(right in RIGHTS[role] and self._covers(role, account_id) for role in self.roles)

    def reaches(self, account_id: int | None) -> bool:
        """Whether a role of the user allows anything in the account; None as in `may`."""
        return any(self._covers(role, account_id) for role in self.roles)

    def held_since(self, right: Right) -> datetime | None:
        """Since when the user has had a role with this right; None without one."""
        return min(
            (since for role, since in self.roles.items() if right in RIGHTS[role]), default=None
        )

    def _covers(self, role: Role, account_id: int | None) -> bool:
        if role in ACCOUNT_ROLES:
            return account_id is not None and account_id == self.account_id
        if role is Role.SUPPORT and self.named_accounts is not None:
            return account_id in self.named_accounts
        return True


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a signed-in user. It ends at `idle_until` unless it is used before, and at
    `ends_at` at the latest. `factor_at`: when the last second factor was given; None for a demo
    user, whose session always counts as fresh.
    """

    id: int
    user: User
    created_at: datetime
    last_used_at: datetime
    ends_at: datetime
    factor_at: datetime | None

    @property
    def idle_until(self) -> datetime:
        return min(self.last_used_at + IDLE, self.ends_at)

    def is_fresh(self, now: datetime) -> bool:
        """Whether a second factor was given in the last 10 minutes."""
        return self.user.is_demo or (self.factor_at is not None and now < self.factor_at + FRESH)


class NotFresh(FrontdeskError, kind=Kind.FORBIDDEN, code=codes.operators.NOT_FRESH):
    """The session's last second factor is older than 10 minutes: `sessions.confirm` first."""

    def __init__(self) -> None:
        super().__init__("Give the second factor again: the last one is older than 10 minutes.")


class NoLongerManager(FrontdeskError, kind=Kind.FORBIDDEN):
    """The user has just lost the role that looks after users, or has been ended."""

    def __init__(self) -> None:
        super().__init__("Another user has just taken your role from you. Nothing was changed.")


class SignInStep(StrEnum):
    """What a browser has to give after the password."""

    SECOND_FACTOR = "second_factor"  # a code of the app, or a recovery code
    SET_UP = "set_up"  # the user has no second factor (yet, or any more) and sets one up


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in whose password was right. `factor_removed_by`: the actor that removed the user's
    lost second factor, which the page says; None if none was removed.
    """

    user: User
    step: SignInStep
    expires_at: datetime
    wrong_codes: int
    factor_removed_at: datetime | None
    factor_removed_by: str | None


class AttemptBegun(NamedTuple):
    """A right password: the secret of the attempt, for the browser only, and the attempt."""

    secret: str
    attempt: SignInAttempt


class SignedIn(NamedTuple):
    """A new session: its secret and that of the browser, both for cookies. `recovery_codes` are
    there when a second factor was set up just now: they can't be shown again.
    """

    secret: str
    session: Session
    browser_secret: str
    recovery_codes: tuple[str, ...] = ()


class Visitor(NamedTuple):
    """A browser before it has a session: the client's IP address, the secret of its cookie of known
    browsers if it sent one, and the request (its actor is replaced by that of the user).
    """

    address: str
    browser_secret: str | None
    requester: Requester


class FactorOffer(NamedTuple):
    """What a user scans or types into an authenticator: the seed in base32, in groups of four; the
    otpauth address; the QR code of that as an SVG element.
    """

    seed: str
    uri: str
    qr_svg: str


@dataclass(frozen=True, slots=True)
class NewUser:
    """Whom an invitation invites. `named_accounts`: those of a support role, None for every one."""

    email: str
    account_id: int | None
    roles: frozenset[Role]
    named_accounts: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class UserInvitation:
    """An invitation that waits to be used: whom it invites, until when, and who invited."""

    id: int
    new: NewUser
    invited_by: str
    created_at: datetime
    expires_at: datetime


class UserLink(NamedTuple):
    """A link to give to the user: its secret, shown once, and when it ends."""

    secret: str
    expires_at: datetime


class EndedUser(NamedTuple):
    """A user who was ended, and the public ids of the clients whose secret the user has seen."""

    user: User
    client_ids: tuple[str, ...]
