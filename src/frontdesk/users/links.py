"""Links that make a user or reset a password: shown once, used once."""

from datetime import datetime

from frontdesk.access.model import Reach
from frontdesk.audit import Requester
from frontdesk.db import Database, Tx
from frontdesk.users.model import AttemptBegun, NewUser, User, UserInvitation, UserLink, Visitor


def invite_user(tx: Tx, new: NewUser, requester: Requester) -> UserLink:
    """Invite a user, for 72 hours. The door takes `new.account_id` from the session or the command,
    never from a form. Nothing is said of an e-mail that is taken. Raises Invalid for an e-mail or
    roles that break a rule; NotFound, Suspended for the account.
    """
    raise NotImplementedError


def list_invitations(tx: Tx, reach: Reach, *, now: datetime) -> list[UserInvitation]:
    """The invitations that wait to be used, the newest first: of the account within reach; with
    EVERY all of them.
    """
    raise NotImplementedError


def withdraw_invitation(tx: Tx, reach: Reach, invitation_id: int, requester: Requester) -> None:
    """End an invitation. Raises NotFound."""
    raise NotImplementedError


def invitation_of(tx: Tx, secret: str, *, now: datetime) -> UserInvitation:
    """The invitation behind a link; reads only. Raises NotFound for one that was used or has
    ended.
    """
    raise NotImplementedError


def accept_invitation(
    db: Database, visitor: Visitor, *, secret: str, name: str, password: str
) -> AttemptBegun:
    """Make the invited user. The attempt goes on with the set-up of the second factor.

    Raises NotFound for a link that was used or has ended; Invalid for the name or the password;
    Conflict (`email_taken`) if another user signs in by this e-mail: only the holder of the link
    learns it. Call it without a transaction.
    """
    raise NotImplementedError


def make_reset_link(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> UserLink:
    """A link by which the user chooses another password within an hour; the second factor stays.
    A newer link ends the older. Raises NotFound; Conflict (`own_user`) for oneself.
    """
    raise NotImplementedError


def user_of_reset(tx: Tx, secret: str, *, now: datetime) -> User:
    """The user of a reset link; reads only. Raises NotFound for one that was used or has ended."""
    raise NotImplementedError


def reset_password(db: Database, visitor: Visitor, *, secret: str, password: str) -> User:
    """Change the password by a reset link; every session of the user ends. The user signs in after
    that. Raises NotFound, Invalid. Call it without a transaction.
    """
    raise NotImplementedError
