"""The rule for new passwords, and what hashing costs."""

from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.low_level import Type

from frontdesk.errors import Invalid
from frontdesk.users import passwords
from frontdesk.users.common_passwords import COMMON_PASSWORDS
from tests.users.conftest import PASSWORD, Desk

NAMES = ("ana.ruiz@example.org", "Ana Ruiz", "Example Health")


def code_of(password: str) -> str | None:
    try:
        passwords.check_new_password(password, names=NAMES)
    except Invalid as refused:
        [fault] = refused.faults
        assert fault.field == "password"
        assert password not in fault.message
        return str(fault.code)
    return None


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("x" * 5 + "y" * 6, "too_short"),
        ("twelve words", None),
        ("all lower case and no digit", None),
        ("прекрасный день", None),
        ("k" * 64 + "m" * 64, None),
        ("k" * 64 + "m" * 65, "too_long"),
        ("password2026!", "common_password"),
        ("PassWord2026!", "common_password"),
        ("123456789012", "common_password"),
        ("aaaaaaaaaaaa", "common_password"),
        ("frontdesk-2026", "name_in_password"),
        ("AnaRuiz Ruiz 1", "name_in_password"),
        ("examplehealth1", "name_in_password"),
        ("ana.ruiz@example.org", "name_in_password"),
        ("frontdesk and a green door", None),
    ],
)
def test_length_is_the_rule_and_what_is_tried_first_is_refused(
    password: str, code: str | None
) -> None:
    assert code_of(password) == code


def test_the_common_passwords_are_those_that_the_length_lets_through() -> None:
    assert len(COMMON_PASSWORDS) >= 3000
    assert min(map(len, COMMON_PASSWORDS)) == passwords.SHORTEST
    assert all(password == password.lower() for password in COMMON_PASSWORDS)


def test_a_password_is_hashed_by_argon2id_with_a_salt_of_its_own() -> None:
    first = passwords.hash_password(PASSWORD)
    found = extract_parameters(first)
    assert (found.type, found.memory_cost, found.time_cost, found.parallelism) == (
        Type.ID,
        19 * 1024,
        2,
        1,
    )
    assert first != passwords.hash_password(PASSWORD)
    assert passwords.matches(PASSWORD, first)
    assert not passwords.matches(PASSWORD + " ", first)
    assert not passwords.matches("x" * 200_000, first)
    assert not passwords.matches("", None)


def test_the_same_letters_typed_in_another_way_are_the_same_password() -> None:
    hashed = passwords.hash_password("école à la mer")
    assert passwords.matches("e\u0301cole a\u0300 la mer", hashed)


def test_an_unknown_user_costs_one_hash_as_a_known_one_does(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.join()
    passwords.matches("warm", None)
    verified = []

    class Counting(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Any:  # noqa: A002
            verified.append(hash)
            return super().verify(hash, password)

    monkeypatch.setattr(passwords, "_hasher", Counting())
    for email in ("ana@example.org", "nobody@example.org", "no address", "nul\0", "x" * 9999):
        before = len(verified)
        assert desk.password(email, "a wrong password") is None
        assert len(verified) == before + 1, email


def test_at_most_two_passwords_are_hashed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock()
    running = []
    most = []

    class Slow(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            with lock:
                running.append(password)
                most.append(len(running))
            try:
                return super().hash(password, salt=salt)
            finally:
                with lock:
                    running.remove(password)

    monkeypatch.setattr(passwords, "_hasher", Slow(time_cost=2, memory_cost=19 * 1024))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(passwords.hash_password, (f"password {n}" for n in range(16))))
    assert max(most) == 2


def test_a_hash_of_other_parameters_is_renewed_by_the_next_sign_in(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1)
    present = passwords._hasher
    monkeypatch.setattr(passwords, "_hasher", weak)
    person = desk.join()
    monkeypatch.setattr(passwords, "_hasher", present)
    hashes = [_hash_of(desk)]
    for _ in range(2):
        assert desk.attempt(person)
        hashes.append(_hash_of(desk))
    assert passwords.is_outdated(hashes[0])
    assert not passwords.is_outdated(hashes[1])
    assert hashes[1] == hashes[2]


def _hash_of(desk: Desk) -> str:
    query = "SELECT password_hash FROM users"
    return str(desk.db.ask(lambda tx: tx.exec_driver_sql(query).scalar_one()))
