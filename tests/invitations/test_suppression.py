"""The suppression list, and what it prevents; one mailbox is one address, in whatever spelling."""

from collections.abc import Collection
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from frontdesk.db import Database
from frontdesk.eligibility.field_kinds import parse_email
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.invitations import find_blocking, hash_suppressions, list_suppressions, suppress
from frontdesk.invitations.message import mailable
from frontdesk.invitations.model import (
    LIFTED_BY_OPERATORS,
    LIFTED_BY_SUPPORT,
    LiftedSuppression,
    Suppression,
    SuppressionReason,
)
from frontdesk.invitations.model import SuppressionReason as R
from frontdesk.invitations.store.suppressions import find_blocked
from frontdesk.invitations.suppression import unsuppress
from frontdesk.invitations.tables import invitations
from frontdesk.reach import EVERY, Reach
from frontdesk.text import Rejected, fold_email
from tests.conftest import Api
from tests.factories import NOW, Customer, make_customer, member_body
from tests.worker.conftest import Post, post

__all__ = ["post"]

ADDRESS = "robin@example.com"
LATER = NOW + timedelta(days=1)

SPELLINGS = [
    ("Alice@Example.COM", "alice@example.com"),
    ("alice@ⓔxample.com", "alice@example.com"),
    ("alice@\uff25\uff38\uff21\uff2d\uff30\uff2c\uff25.com", "alice@example.com"),
    ("alice@exampl\u212f.com", "alice@example.com"),
    ("alice@BÜCHER.de", "alice@xn--bcher-kva.de"),
    ("alice@bu\u0308cher.de", "alice@xn--bcher-kva.de"),
    ("alice@XN--BCHER-KVA.de", "alice@xn--bcher-kva.de"),
    ("alice@faß.de", "alice@xn--fa-hia.de"),  # another domain than fass.de, as UTS 46 has it
    ("Zoe\u0308@Example.com", "zo\u00eb@example.com"),
    ("alice@☃.example", "alice@☃.example"),  # no domain name
]


@pytest.mark.parametrize(("spelling", "folded"), SPELLINGS)
def test_a_spelling_is_folded_to_the_domain_that_is_asked_for_it(
    spelling: str, folded: str
) -> None:
    assert fold_email(spelling) == folded


@given(st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_what_is_mailed_is_folded_as_what_was_stored(label: str) -> None:
    try:
        address = parse_email(f"a@{label}.com")
    except Rejected:
        return
    assert fold_email(address) == fold_email(mailable(address))
    assert fold_email(fold_email(address)) == fold_email(address)


def test_no_two_members_have_one_address(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert api.post(path, member_body(1, email="alice@example.com")).status_code == 201
    for number, (spelling, _) in enumerate(SPELLINGS[1:4], 2):
        answer = api.post(path, member_body(number, email=spelling))
        [fault] = answer.json()["errors"]
        assert (fault["field"], fault["code"]) == ("email", "not_unique")
    answer = api.post(
        path, {"external_id": member_body(1)["external_id"], "email": "alice@ⓔxample.com"}
    )
    assert answer.headers["Eligibility-Changed"] == "email"  # it is its own address


def test_an_address_is_suppressed_however_it_is_written_and_once_for_a_reason(db: Database) -> None:
    with db.write() as tx:
        assert suppress(tx, "Robin@Example.com", R.HARD_BOUNCE, now=NOW)
        assert not suppress(tx, "robin@example.com", R.HARD_BOUNCE, now=LATER)
        [found] = list_suppressions(tx, EVERY, limit=10)
        assert found == Suppression("robin@example.com", 0, R.HARD_BOUNCE, NOW)
        lifted = unsuppress(tx, EVERY, "rObin@example.com", may_lift=LIFTED_BY_SUPPORT)
        assert lifted == LiftedSuppression(frozenset({R.HARD_BOUNCE}), [])
        assert list_suppressions(tx, EVERY, limit=10) == []
        with pytest.raises(NotFound):
            unsuppress(tx, EVERY, "robin@example.com", may_lift=LIFTED_BY_OPERATORS)


@pytest.mark.parametrize(
    ("reason", "support", "operator"),
    [
        (R.HARD_BOUNCE, None, None),
        (R.COMPLAINT, "needs_operator", None),
        (R.BY_HAND, "needs_operator", None),
        (R.UNSUBSCRIBE, "unsubscribed", "unsubscribed"),
    ],
)
def test_who_may_lift_a_suppression_depends_on_its_reason(
    db: Database, customer: Customer, reason: R, support: str | None, operator: str | None
) -> None:
    by_hand = reason is R.BY_HAND
    owner = None if by_hand else customer.account_id
    for may_lift, code in ((LIFTED_BY_SUPPORT, support), (LIFTED_BY_OPERATORS, operator)):
        for reach in (EVERY, Reach.of(customer.account_id)):
            expected = "no_such_address" if by_hand and reach is not EVERY else code
            with db.write() as tx:
                suppress(tx, ADDRESS, reason, now=NOW, account_id=owner)
            assert refusal(db, reach, may_lift) == expected
            is_left = bool(db.ask(lambda tx: list_suppressions(tx, EVERY, limit=9)))
            assert is_left == (expected is not None)


def test_lifting_a_bounce_leaves_the_other_reasons(db: Database, customer: Customer) -> None:
    account_id = customer.account_id
    with db.write() as tx:
        for reason in R:
            assert suppress(tx, ADDRESS, reason, now=NOW, account_id=account_id)
        lifted, left = unsuppress(tx, EVERY, ADDRESS, may_lift=LIFTED_BY_SUPPORT)
        assert lifted == {R.HARD_BOUNCE}
        assert {each.reason for each in left} == {R.COMPLAINT, R.BY_HAND, R.UNSUBSCRIBE}
        assert list_suppressions(tx, EVERY, limit=9) == left
        assert find_blocked(tx, {(account_id, ADDRESS)})
        _, left = unsuppress(tx, EVERY, ADDRESS, may_lift=LIFTED_BY_OPERATORS)
        assert [each.reason for each in left] == [R.UNSUBSCRIBE]
        assert find_blocked(tx, {(account_id, ADDRESS)})


def test_an_account_lifts_and_sees_only_what_its_own_mail_has_caused(
    db: Database, customer: Customer
) -> None:
    """The answers about another account's mail are those of an address that was never mailed."""
    other = make_customer(db, name="Other")
    mine = Reach.of(customer.account_id)
    unknown = refusal(db, mine, LIFTED_BY_OPERATORS, "unknown@example.com")
    for reason in R:
        with db.write() as tx:
            suppress(tx, ADDRESS, reason, now=NOW, account_id=other.account_id)
    assert refusal(db, mine, LIFTED_BY_OPERATORS) == unknown == "no_such_address"
    blocking = partial(find_blocking, account_id=customer.account_id, address=ADDRESS)
    with db.read() as tx:
        assert len(list_suppressions(tx, EVERY, limit=9)) == len(R)
        assert list_suppressions(tx, mine, limit=9) == []
        assert len(blocking(tx, EVERY)) == len(R) - 1
        assert blocking(tx, mine) == []
    assert refusal(db, Reach.of(other.account_id), LIFTED_BY_SUPPORT) is None


def refusal(
    db: Database, reach: Reach, may_lift: Collection[R], address: str = ADDRESS
) -> str | None:
    """The code by which the address stays on the list."""
    try:
        with db.write() as tx:
            unsuppress(tx, reach, address, may_lift=may_lift)
    except FrontdeskError as error:
        return str(error.code)
    return None


def test_the_list_is_read_in_order_up_to_the_limit(db: Database) -> None:
    addresses = [f"a{n:04d}@example.com" for n in range(1005)]
    with db.write() as tx:
        for address in reversed(addresses):
            suppress(tx, address, SuppressionReason.BY_HAND, now=NOW)
        for limit in (10_000, 1003, 3):
            found = list_suppressions(tx, EVERY, limit=limit)
            assert [each.address for each in found] == addresses[:limit]


def test_only_the_account_whose_mail_caused_it_learns_of_a_suppression(
    api: Api, db: Database, customer: Customer
) -> None:
    other = make_customer(db, name="Other")
    with db.write() as tx:
        for number, account_id in ((1, customer.account_id), (2, customer.account_id), (3, None)):
            address = f"robin.{number}@example.com"
            suppress(tx, address, SuppressionReason.COMPLAINT, now=NOW, account_id=account_id)

    def invitation(caller: Api, of: Customer, number: int, email: str, **changes: Any) -> str:
        body = member_body(number, email=email, invite_immediately=True, **changes)
        answer = caller.post(f"/v2/plans/{of.plan_ids[0]}/eligibility", body)
        assert answer.status_code in (200, 201)
        return str(answer.headers["Invitation"])

    spelled = "Robin.{}@\u24d4xample.COM"
    theirs = api.as_(other.token)
    assert invitation(api, customer, 1, spelled.format(1)) == "none; reason=suppressed"
    assert invitation(api, customer, 3, spelled.format(3)) == "immediate"
    # The first of these will be cancelled when its turn comes.
    assert [invitation(theirs, other, n, spelled.format(n)) for n in (2, 4)] == [
        "immediate",
        "immediate",
    ]
    with db.write() as tx:
        unsuppress(tx, EVERY, "robin.1@example.com", may_lift=LIFTED_BY_OPERATORS)
    known = {"external_id": "AB 000001", "member_id": "M-000001"}
    assert invitation(api, customer, 5, "robin.1@example.com", **known) == "none; reason=not_new"


def test_an_unsubscribing_and_a_bounce_are_each_on_the_list(
    db: Database, customer: Customer
) -> None:
    """Each is on the list by itself: a bounce for everybody, an unsubscribing for one account."""
    account_id = customer.account_id
    with db.write() as tx:
        suppress_for = partial(suppress, tx, now=NOW, account_id=account_id)
        assert suppress_for("robin@example.com", SuppressionReason.UNSUBSCRIBE)
        assert not suppress_for("Robin@example.com", SuppressionReason.UNSUBSCRIBE)
        assert suppress_for("robin@example.com", SuppressionReason.HARD_BOUNCE)
        listed = list_suppressions(tx, EVERY, limit=9)
        found = [(each.reason, each.only_account_id) for each in listed]
        assert found == [("hard_bounce", 0), ("unsubscribe", account_id)]
        assert hash_suppressions(tx, {"robin@example.com"}) == 1
        assert not suppress_for("robin@example.com", SuppressionReason.UNSUBSCRIBE)
        assert find_blocked(tx, {(account_id, "robin@example.com")})
        unsuppress(tx, EVERY, "robin@example.com", may_lift=LIFTED_BY_OPERATORS)
        assert find_blocked(tx, {(account_id, "robin@example.com")})
        assert not find_blocked(tx, {(account_id + 1, "robin@example.com")})


def test_who_unsubscribes_from_one_account_gets_the_mails_of_others(post: Post) -> None:
    """Both mail the same person, and so does a third that the reader complains about."""
    others = [make_customer(post.db, name=name) for name in ("Second", "Third")]
    posts = [post, *map(post.as_customer, others)]
    for number, each in enumerate(posts):
        each.enrol(
            email=f"robin+{number}@example.com", external_id=f"E-{number}", member_id=f"M-{number}"
        )
    with post.db.write() as tx:
        tx.execute(
            update(invitations).values(
                address="robin@example.com", address_folded="robin@example.com"
            )
        )
        suppress(
            tx,
            "robin@example.com",
            SuppressionReason.UNSUBSCRIBE,
            now=NOW,
            account_id=others[0].account_id,
        )
    post.worker(connections=1).turn()
    assert post.states() == ["sent", "cancelled", "sent"]
    with post.db.write() as tx:
        tx.execute(update(invitations).values(state="pending", due_at=NOW))
        suppress(
            tx,
            "robin@example.com",
            SuppressionReason.COMPLAINT,
            now=NOW,
            account_id=others[1].account_id,
        )
    post.worker(connections=1).turn()
    assert post.states() == ["cancelled"] * 3
