"""Passwords of users: the rule for a new one, and argon2id.

The rule is that of NIST SP 800-63B: length, no composition, none that is tried first. One hash
takes 19 MiB and about 20 ms (OWASP's parameters), at most two at a time in a process.
"""

import secrets
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from argon2.low_level import Type

from frontdesk import codes
from frontdesk.errors import Fault, Invalid, Unavailable
from frontdesk.users.common_passwords import COMMON_PASSWORDS

SHORTEST = 12  # characters
LONGEST = 128
FEWEST_BESIDE_NAMES = 8  # characters that are left without our own names
SHORTEST_NAME = 4  # a shorter one may be a part of any word
AT_ONCE = 2  # hashes in a process
WAIT_SECONDS = 5.0  # for a place among these

_PRODUCT = "frontdesk"
_hasher = PasswordHasher(
    time_cost=2, memory_cost=19 * 1024, parallelism=1, hash_len=32, salt_len=16, type=Type.ID
)
_places = BoundedSemaphore(AT_ONCE)


@lru_cache(maxsize=1)
def _no_password() -> str:
    """The hash of a password that no user has: an unknown user costs as much as a known one."""
    return _hasher.hash(secrets.token_urlsafe(16))


def check_new_password(password: str, *, names: Iterable[str]) -> None:
    """Raises Invalid (field `password`) unless it has 12 to 128 characters, is none of the common
    passwords, and has 8 characters beside our own names: `names` (e-mail, own name, account) and
    the product's.
    """
    if len(password) > LONGEST:
        rule = f"must have at most {LONGEST} characters"
        raise Invalid([Fault("password", codes.faults.TOO_LONG, rule)])
    plain = _plain(password)
    if len(plain) < SHORTEST:
        rule = f"must have at least {SHORTEST} characters, such as three words that don't belong together"
        raise Invalid([Fault("password", codes.operators.TOO_SHORT, rule)])
    if plain.lower() in COMMON_PASSWORDS:
        rule = "must not be one of the passwords that are tried first: choose another one"
        raise Invalid([Fault("password", codes.operators.COMMON_PASSWORD, rule)])
    if len(_without_names(plain, names)) < FEWEST_BESIDE_NAMES:
        rule = (
            f"must have {FEWEST_BESIDE_NAMES} characters beside your name, your e-mail, and the "
            "names of the account and of this service"
        )
        raise Invalid([Fault("password", codes.operators.NAME_IN_PASSWORD, rule)])


def _without_names(password: str, names: Iterable[str]) -> str:
    rest = password.casefold()
    parts = {part for name in (_PRODUCT, *names) for part in _name_parts(name)}
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "")
    return rest


def _name_parts(name: str) -> Iterator[str]:
    """The name, the name without spaces, and its words."""
    folded = _plain(name).casefold()
    words = "".join(sign if sign.isalnum() else " " for sign in folded).split()
    for part in (folded, "".join(words), *words):
        if len(part) >= SHORTEST_NAME:
            yield part


def hash_password(password: str) -> str:
    """The argon2id hash, as PHC text. Call it outside of a transaction. Raises Unavailable when too
    many sign-ins are under way.
    """
    with _place():
        return _hasher.hash(_bytes(password))


def matches(password: str, password_hash: str | None) -> bool:
    """Whether it is the password of the hash. None, for a user that does not exist, takes as long
    and is False. Call it outside of a transaction. Raises Unavailable as `hash_password`.
    """
    is_possible = password_hash is not None and len(password) <= LONGEST
    offered = _bytes(password if is_possible else "")
    with _place():
        no_password = _no_password()
        try:
            _hasher.verify(password_hash or no_password, offered)
        except (Argon2Error, InvalidHashError):
            return False
    return is_possible


def is_outdated(password_hash: str) -> bool:
    """Whether the hash was made with other parameters than today's."""
    return _hasher.check_needs_rehash(password_hash)


@contextmanager
def _place() -> Iterator[None]:
    if not _places.acquire(timeout=WAIT_SECONDS):
        raise Unavailable("Too many users sign in at the moment. Try again.")
    try:
        yield
    finally:
        _places.release()


def _plain(text: str) -> str:
    """One form for all ways to type the same letters (NIST SP 800-63B, 3.1.1.2)."""
    return unicodedata.normalize("NFKC", text)


def _bytes(password: str) -> bytes:
    return _plain(password).encode("utf-8", "surrogatepass")
