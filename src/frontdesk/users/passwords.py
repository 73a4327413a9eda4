"""Passwords of users: the rule, and argon2id."""

from collections.abc import Iterable

LONGEST = 128
SHORTEST = 12


def check_new_password(password: str, *, names: Iterable[str]) -> None:
    """Raises Invalid (field `password`) unless it has 12 to 128 characters, is none of the common
    passwords, and is none of `names` (e-mail, own name, account) or the product's name.
    """
    raise NotImplementedError


def hash_password(password: str) -> str:
    """The argon2id hash, as PHC text. Takes 20 ms and 19 MiB, at most two at a time in a process:
    call it outside of a transaction.
    """
    raise NotImplementedError


def matches(password: str, password_hash: str | None) -> bool:
    """Whether it is the password of the hash. None, for a user that does not exist, takes as long
    and is False.
    """
    raise NotImplementedError
