"""The users: find, list, change roles, end."""

from collections.abc import Collection
from datetime import datetime

from frontdesk.access.model import Reach
from frontdesk.audit import Requester
from frontdesk.db import Database, Tx
from frontdesk.users.model import EndedUser, Right, Role, User


def get_user(tx: Tx, reach: Reach, user_id: int) -> User:
    """Raises NotFound, also for a user outside the reach. A user of the installation is within
    EVERY only.
    """
    raise NotImplementedError


def list_users(tx: Tx, reach: Reach, *, with_ended: bool = False) -> list[User]:
    """The users of the account within reach, by e-mail; with EVERY all users."""
    raise NotImplementedError


def find_users(tx: Tx, user_ids: Collection[int]) -> dict[int, User]:
    """Users by id, ended ones too: the names behind actors of the trail."""
    raise NotImplementedError


def users_with(tx: Tx, right: Right, account_id: int) -> list[User]:
    """The users of the account with this right, by e-mail: who may approve, for instance."""
    raise NotImplementedError


def change_roles(
    tx: Tx,
    reach: Reach,
    user_id: int,
    roles: Collection[Role],
    requester: Requester,
    *,
    named_accounts: Collection[int] | None = None,
) -> User:
    """Give the user exactly these roles; one that stays keeps its time. The user's sessions end.
    Raises NotFound; Invalid for roles that don't fit; Conflict (`last_admin`, `own_user`).
    """
    raise NotImplementedError


def end_user(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> EndedUser:
    """End a user for good, with sessions, links and browsers. Tells the clients whose secret the
    user has seen. Raises NotFound, Conflict (`own_user`).
    """
    raise NotImplementedError


def remove_factor(tx: Tx, reach: Reach, user_id: int, requester: Requester) -> User:
    """Remove a lost second factor and its recovery codes; the user sets up another at the next
    sign-in, which says who removed it. The user's sessions end. Raises NotFound, Conflict
    (`own_user`). The door asks for a fresh second factor first.
    """
    raise NotImplementedError


def change_own(tx: Tx, user_id: int, *, name: str, time_zone: str | None) -> User:
    """Change one's own name and time zone. Raises Invalid."""
    raise NotImplementedError


def note_secret_seen(tx: Tx, user_id: int, client_id: str, *, now: datetime) -> None:
    """Note that the user was shown a secret of this API client (its public client_id)."""
    raise NotImplementedError


def secret_seen_by(tx: Tx, client_id: str) -> dict[int, datetime]:
    """The ids of the users who were shown a secret of the client, with the last time."""
    raise NotImplementedError


def create_demo_user(
    db: Database,
    *,
    email: str,
    name: str,
    account_id: int | None,
    roles: Collection[Role],
    now: datetime,
) -> tuple[User, str]:
    """A user of a sandbox, without a second factor, and the random password; the same e-mail again
    gets another password. Call it without a transaction. Only the sandbox calls it.
    """
    raise NotImplementedError


def has_demo_users(tx: Tx) -> bool:
    """Whether a demo user exists who has not ended: production refuses to serve then."""
    raise NotImplementedError
