"""Why a member got no mail, within a reach; and what an account sees of its own invitation: nothing
that tells of another account's mail, though both may mail one address.
"""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.audit import Requester, user_actor
from frontdesk.codes.mail import MailRemedy
from frontdesk.db import Tx
from frontdesk.eligibility import find_addresses, list_history
from frontdesk.eligibility.mailed import mailed_member
from frontdesk.eligibility.people import call_distinct, find_member, lock_pair, merge
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.invitations import find_blocking, suppress
from frontdesk.invitations.delivery import cancel_invitation, get_invitation, settle_invitation
from frontdesk.invitations.model import InvitationState, InvitationStep, SuppressionReason
from frontdesk.invitations.resend import resend_invitation
from frontdesk.invitations.tables import invitation_events, invitations
from frontdesk.invitations.why import WhyNoMail, why_no_mail
from frontdesk.reach import EVERY, Reach
from tests.factories import NOW, make_customer
from tests.worker.conftest import Post, post

__all__ = ["post"]

WHO = "AB 000001"
ADDRESS = "robin.1@example.com"
OTHERS = [None, *SuppressionReason]  # what another account's mail has caused


def why(post: Post, reach: Reach, who: str = WHO) -> WhyNoMail:
    def ask(tx: Tx) -> WhyNoMail:
        member = find_member(tx, EVERY, who)
        of_member = mailed_member(tx, member, now=post.clock())
        return why_no_mail(tx, reach, of_member, has_relay=True, now=post.clock())

    return post.db.ask(ask)


def own(post: Post) -> Reach:
    return Reach.of(post.customer.account_id)


def block(post: Post, reason: SuppressionReason | None, account_id: int | None) -> None:
    if reason is not None:
        with post.db.write() as tx:
            suppress(tx, ADDRESS, reason, now=NOW, account_id=account_id)


def change(post: Post, **values: Any) -> None:
    with post.db.write() as tx:
        tx.execute(update(invitations).values(values))


@pytest.mark.parametrize("reason", OTHERS)
@pytest.mark.parametrize("state", ["none", "pending", "sent", "failed", "cancelled", "ambiguous"])
def test_an_account_is_told_the_same_whatever_another_accounts_mail_did(
    post: Post, state: str, reason: SuppressionReason | None
) -> None:
    other = make_customer(post.db, name="Other")
    post.enrol(1, immediate=state != "none")
    steps = {"sent": "accepted", "failed": "refused", "ambiguous": "answer_lost"}
    if state not in ("none", "pending"):
        change(post, state=state, reason=steps.get(state, "by_operator"), offered_at=None)
    before = why(post, own(post))
    block(post, reason, other.account_id)
    assert why(post, own(post)) == before
    assert before.suppression is None
    if reason is not None:
        concerns_all = reason is not SuppressionReason.UNSUBSCRIBE
        assert (why(post, EVERY).suppression is not None) == concerns_all


@pytest.mark.parametrize("reason", SuppressionReason)
def test_a_mail_that_another_account_prevented_looks_as_if_a_person_had_cancelled_it(
    post: Post, reason: SuppressionReason
) -> None:
    post.enrol(1)
    other = make_customer(post.db, name="Other").account_id
    change(post, state="cancelled", reason=InvitationStep.BY_OPERATOR)
    cancelled = why(post, own(post))
    change(post, state="cancelled", reason=InvitationStep.SUPPRESSED)
    block(post, reason, other)
    assert why(post, own(post)) == cancelled
    assert cancelled.remedies == (MailRemedy.RESEND,)
    assert why(post, EVERY).reason == "suppressed"
    block(post, reason, post.customer.account_id)
    told = post.db.ask(lambda tx: find_blocking(tx, own(post), **of_address(post)))
    # Of one reason the first mail stays on the list, so this account's own bounce is not told too.
    assert (why(post, own(post)).reason == "suppressed") == bool(told)


def of_address(post: Post) -> dict[str, Any]:
    return {"account_id": post.customer.account_id, "address": ADDRESS}


@pytest.mark.parametrize("reason", SuppressionReason)
def test_what_its_own_mail_caused_is_told_with_what_to_do(
    post: Post, reason: SuppressionReason
) -> None:
    post.enrol(1)
    change(post, state="cancelled", reason=InvitationStep.SUPPRESSED)
    account_id = post.customer.account_id
    block(post, reason, account_id)
    told = why(post, own(post))
    assert told.reason == "suppressed"
    assert told.suppression is not None
    assert told.suppression.reason is reason
    lifts = (MailRemedy.LIFT_SUPPRESSION, MailRemedy.RESEND)
    assert told.remedies == (() if reason is SuppressionReason.UNSUBSCRIBE else lifts)


def test_the_mails_of_a_day_to_a_mailbox_are_not_told_to_an_account(post: Post) -> None:
    post.enrol(1)
    later = post.clock() + timedelta(hours=20)
    change(post, reason=InvitationStep.MAILBOX_LIMIT, due_at=later)
    step = {"at": NOW, "from_state": "claimed", "to_state": "pending", "reason": "mailbox_limit"}
    with post.db.write() as tx:
        tx.execute(invitation_events.insert().values(step | {"invitation_id": 1}))
    assert (why(post, EVERY).reason, why(post, EVERY).due_at) == ("mailbox_limit", later)
    assert (why(post, own(post)).reason, why(post, own(post)).due_at) == ("waiting", None)
    shown, steps = post.db.ask(lambda tx: get_invitation(tx, own(post), 1))
    assert (shown.reason, shown.due_at, steps[-1].reason) == ("not_offered", None, "not_offered")
    assert post.db.ask(lambda tx: get_invitation(tx, EVERY, 1))[1][-1].reason == "mailbox_limit"


def test_the_timeline_hides_a_suppression_by_another_account(post: Post) -> None:
    other = make_customer(post.db, name="Other").account_id
    post.enrol(1)
    block(post, SuppressionReason.HARD_BOUNCE, other)
    post.worker(connections=1).turn()
    assert post.states() == ["cancelled"]
    for reach, word in ((EVERY, "suppressed"), (own(post), "by_operator")):
        shown, steps = post.db.ask(partial(get_invitation, reach=reach, invitation_id=1))
        assert (shown.reason, steps[-1].reason) == (word, word)


def test_a_member_out_of_reach_is_one_that_does_not_exist(post: Post) -> None:
    post.enrol(1)
    with pytest.raises(NotFound):
        why(post, Reach.of(post.customer.account_id + 1))


def refusal(post: Post, reach: Reach) -> str | None:
    """The code by which a resend of the first invitation is refused."""
    try:
        with post.db.write() as tx:
            resend_invitation(tx, reach, 1, post.requester(), find_addresses=find_addresses)
    except FrontdeskError as error:
        return str(error.code)
    return None


@pytest.mark.parametrize("cause", ["suppressed", "mailed_recently", "already_pending"])
@pytest.mark.parametrize("is_own", [False, True])
def test_a_refused_resend_does_not_tell_of_another_accounts_mail(
    post: Post, cause: str, *, is_own: bool
) -> None:
    other = post.as_customer(make_customer(post.db, name="Other"))
    post.enrol(1)
    change(post, state="failed", reason=InvitationStep.REFUSED, offered_at=None)
    if cause == "suppressed":
        owner = post if is_own else other
        block(post, SuppressionReason.HARD_BOUNCE, owner.customer.account_id)
    elif is_own and cause == "mailed_recently":
        change(post, state="sent", reason=InvitationStep.ACCEPTED, offered_at=post.clock())
    else:
        (post if is_own else other).enrol(1, email="second@example.com")
        state = "sent" if cause == "mailed_recently" else "pending"
        values = {"state": state, "offered_at": post.clock(), "address_folded": ADDRESS}
        with post.db.write() as tx:
            tx.execute(update(invitations).where(invitations.c.id == 2).values(values))
    assert refusal(post, EVERY) == cause
    is_told = is_own and cause != "already_pending"
    assert refusal(post, own(post)) == (cause if is_told else "not_mailed_now")


def test_the_timeline_names_the_people_who_cancelled_resent_and_settled(post: Post) -> None:
    post.enrol(1)
    by = [
        Requester(actor, "request", post.clock())
        for actor in ("cli:anna", user_actor(12), "f" * 32)
    ]
    with post.db.write() as tx:
        cancel_invitation(tx, EVERY, 1, by[0])
        resend_invitation(tx, own(post), 1, by[1], find_addresses=find_addresses)
    change(post, state="ambiguous")
    with post.db.write() as tx:
        settle_invitation(tx, own(post), 1, InvitationState.SENT, by[2])
    _, steps = post.db.ask(lambda tx: get_invitation(tx, own(post), 1))
    assert [(step.to_state, step.reason, step.actor) for step in steps] == [
        ("cancelled", "by_operator", "cli:anna"),
        ("pending", "by_operator", "user:12"),
        ("sent", "by_operator", "f" * 32),
    ]
    post.enrol(1)
    post.worker(connections=1).turn()
    _, steps = post.db.ask(lambda tx: get_invitation(tx, EVERY, 2))
    assert steps
    assert {step.actor for step in steps} == {None}


def test_a_user_of_the_console_is_named_in_the_history(post: Post) -> None:
    post.enrol(2)
    by = Requester(user_actor(12), "request", post.clock())
    with post.db.write() as tx:
        pair = lock_pair(tx, own(post), WHO, "AB 000002")
        call_distinct(tx, *pair, by)
        merge(tx, *pair, by)
        entries = list_history(tx, pair[0]["id"], pair[1]["id"])
    assert [entry.client for entry in entries[-2:]] == ["user:12", "user:12"]


def test_a_member_without_an_invitation_is_answered_by_what_it_came_with(post: Post) -> None:
    post.enrol(1, email=None, immediate=False)
    assert why(post, own(post)).reason == "no_email"
    assert why(post, own(post)).invitation is None
