"""The links of an invitation: the same in a second copy, opaque, and useless to who has the
database.
"""

import re

import pytest

from frontdesk.db import Database
from frontdesk.invitations import message
from frontdesk.invitations.message import derive_tokens, find_link_target, issue_tokens
from frontdesk.invitations.tables import invitation_links
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.invitations.mails import mailed

SECRET = "a secret of thirty-two characters"


def test_tokens_are_256_bits_the_same_each_time_and_unlike_all_others() -> None:
    made = [(SECRET, "a"), (SECRET, "b"), (SECRET + "2", "a")]
    pairs = [derive_tokens(secret, f"{name}@mail.example.com") for secret, name in made]
    assert pairs[0] == derive_tokens(SECRET, "a@mail.example.com")
    values = [value for pair in pairs for value in (pair.registration, pair.unsubscribe)]
    assert len(set(values)) == 6
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", value) for value in values)


def test_only_hashes_are_stored_and_a_new_secret_adds_a_pair_that_works_too(
    api: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    [row] = db.ask(lambda tx: tx.execute(invitation_links.select()).mappings().all())
    assert row["registration_hash"] == message.digest(mail.tokens.registration)
    stored = " ".join(map(str, row.values()))
    assert mail.tokens.registration not in stored
    assert mail.tokens.unsubscribe not in stored
    for secret, rows in (("s" * 32, 1), (SECRET, 2), (SECRET, 2)):
        with db.write() as tx:
            tokens = issue_tokens(tx, {mail.id: mail.message_id}, link_secret=secret, now=NOW)[
                mail.id
            ]
            assert len(tx.execute(invitation_links.select()).all()) == rows
            for each in (tokens, mail.tokens):
                found = find_link_target(tx, "unsubscribe", each.unsubscribe)
                assert found is not None
                assert found.address == mail.address


def test_a_token_opens_only_what_it_is_for(api: Api, db: Database, customer: Customer) -> None:
    tokens = mailed(api, db, customer).tokens
    with db.read() as tx:
        target = find_link_target(tx, "registration", tokens.registration)
        assert target is not None
        assert (target.plan_name, target.registration_url) == ("Example Health Plan 0", None)
        assert find_link_target(tx, "registration", tokens.unsubscribe) is None
        strange = ("", "x" * 43, "x" * 10_000, "\0", "ä" * 43, tokens.unsubscribe + "\n")
        for token in (tokens.registration, *strange):
            assert find_link_target(tx, "unsubscribe", token) is None


@pytest.mark.parametrize(
    ("url", "link"),
    [
        (None, "https://api.example.com/register/T"),
        ("https://join.example.com", "https://join.example.com?invitation=T"),
        ("https://join.example.com/a b", "https://join.example.com/a%20b?invitation=T"),
        (
            "https://join.example.com/start?from=mail",
            "https://join.example.com/start?from=mail&invitation=T",
        ),
        ("https://join.example.com/#/start", "https://join.example.com/?invitation=T#/start"),
        (
            'https://join.example.com/"><script>',
            "https://join.example.com/%22%3E%3Cscript%3E?invitation=T",
        ),
        ("https://join.example.com/ü", "https://join.example.com/%C3%BC?invitation=T"),
    ],
)
def test_the_registration_link_is_the_accounts_page_with_the_token(
    url: str | None, link: str
) -> None:
    made = message.registration_link(
        base_url="https://api.example.com", registration_url=url, token="T"
    )
    assert made == link
