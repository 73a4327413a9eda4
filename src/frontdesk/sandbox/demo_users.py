"""A user of each role for the demo: they sign in to the console with a password alone."""

from datetime import datetime
from typing import NamedTuple

from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import ACCOUNT_ROLES, NewUser, Role

_NAMES = {
    Role.VIEWER: "Vera Stone",
    Role.EDITOR: "Ana Ruiz",
    Role.APPROVER: "Tom Okafor",
    Role.ADMIN: "Mia Chen",
    Role.SUPPORT: "Sam Reed",
    Role.OPERATOR: "Olga Novak",
    Role.AUDITOR: "Aki Mori",
}


class DemoUser(NamedTuple):
    """A role with its sign-in."""

    user_id: int
    role: Role
    email: str
    password: str


def set_up_demo_users(db: Database, account_id: int, now: datetime) -> list[DemoUser]:
    """A user for each role, those of an account in the demo's. Each run gives them other passwords
    and ends their sessions. Call it without a transaction: it hashes passwords.
    """
    made = []
    for role, name in _NAMES.items():
        email = f"{role}@demo.example"
        home = account_id if role in ACCOUNT_ROLES else None
        new = NewUser(email, home, frozenset({role}))
        user, password = create_demo_user(db, new, name=name, now=now)
        made.append(DemoUser(user.id, role, email, password))
    return made
