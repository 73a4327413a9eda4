"""An address that support enters without facts gets no mail, by whichever way one would go."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import update

from frontdesk import codes
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.disclosures.another_address import (
    FactsChanged,
    MailSender,
    NewAddress,
    ShownPerson,
    change_address,
    resend,
    unblock_and_resend,
)
from frontdesk.eligibility import find_addresses
from frontdesk.eligibility.mailed import mailed_member
from frontdesk.eligibility.person_change import MemberOvertaken, read_version
from frontdesk.eligibility.person_mail import NewAddressMail
from frontdesk.eligibility.search import get_kept
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.invitations import find_of_members, suppress
from frontdesk.invitations.model import (
    FailedPlace,
    FailedSince,
    Invitation,
    InvitationState,
    InvitationStep,
    SuppressionReason,
)
from frontdesk.invitations.resend import resend_failed, resend_invitation
from frontdesk.invitations.store.unproven import list_unproven
from frontdesk.invitations.tables import invitations
from frontdesk.invitations.unproven import MOST_UNPROVEN, TooManyUnproven
from frontdesk.invitations.why import why_no_mail
from frontdesk.privacy.erasure import erase_person
from frontdesk.privacy.model import Person
from frontdesk.reach import EVERY, Reach
from tests.eligibility.finding import WHO, Finder
from tests.factories import NOW, make_customer

SUPPORT = MailSender(1, vouches=False)
EDITOR = MailSender(2, vouches=True)
NEW = "new@example.com"


def change(
    finder: Finder, member_id: int, sender: MailSender = SUPPORT, email: str = NEW
) -> NewAddressMail | None:
    version = finder.db.ask(lambda tx: read_version(tx, member_id))
    asked = NewAddress(member_id, version, email, is_mailed=sender.vouches)
    answer = write_alone(
        finder.db,
        lambda tx: change_address(
            tx, WHO, finder.reach, asked, sender, uniqueness=Uniqueness.SERVICE
        ),
    )
    assert not isinstance(answer, FrontdeskError)
    return answer


def failed(finder: Finder, member_id: int) -> None:
    """The relay has refused the mail of the member long ago."""
    with finder.db.write() as tx:
        tx.execute(
            update(invitations)
            .where(invitations.c.member_id == member_id)
            .values(
                state=InvitationState.FAILED,
                reason=InvitationStep.REFUSED,
                due_at=None,
                settled_at=NOW - timedelta(days=2),
            )
        )


def invitation_of(db: Database, member_id: int) -> Invitation:
    [found] = db.ask(lambda tx: find_of_members(tx, [member_id]))
    return found


def shown(tx: Tx, member_id: int) -> ShownPerson:
    return ShownPerson(member_id, read_version(tx, member_id))


def unproven_of(db: Database, member_id: int) -> set[str]:
    return {address for _, address in db.ask(lambda tx: list_unproven(tx, [member_id]))}


def run_bulk_resend(finder: Finder) -> dict[str, int]:
    asked = FailedSince(EVERY, NOW - timedelta(days=9), NOW)
    with finder.db.write() as tx:
        page = resend_failed(tx, asked, FailedPlace(0, 0), WHO, find_addresses=find_addresses)
    return page.refused


def test_no_way_to_a_mail_leads_to_an_unproven_address(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    assert change(finder, id_) is NewAddressMail.UNPROVEN
    assert run_bulk_resend(finder) == {codes.operators.ADDRESS_UNPROVEN: 1}
    invitation = invitation_of(finder.db, id_)
    for reach in (EVERY, finder.reach):
        with pytest.raises(FrontdeskError) as refused, finder.db.write() as tx:
            resend_invitation(tx, reach, invitation.id, WHO, find_addresses=find_addresses)
        assert refused.value.code == codes.operators.ADDRESS_UNPROVEN
    with pytest.raises(FrontdeskError), finder.db.write() as tx:
        resend(tx, finder.reach, shown(tx, id_), WHO, sender=SUPPORT)
    bounce = SuppressionReason.HARD_BOUNCE
    with finder.db.write() as tx:
        suppress(tx, NEW, bounce, now=NOW, account_id=finder.customer.account_id)
    with pytest.raises(FrontdeskError), finder.db.write() as tx:
        unblock_and_resend(tx, finder.reach, shown(tx, id_), WHO, lift_within=EVERY, sender=SUPPORT)
    assert invitation_of(finder.db, id_).state is InvitationState.FAILED


def test_later_readers_are_told_why(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    change(finder, id_)
    member = finder.db.ask(lambda tx: get_kept(tx, EVERY, id_))
    with finder.db.read() as tx:
        mailed = mailed_member(tx, member, now=NOW)
        why = why_no_mail(tx, finder.reach, mailed, has_relay=True, now=NOW)
    assert why.reason == codes.mail.UNPROVEN


def test_an_editor_vouches_and_the_mark_goes(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    change(finder, id_)
    with finder.db.write() as tx:
        resend(tx, finder.reach, shown(tx, id_), WHO, sender=EDITOR)
    invitation = invitation_of(finder.db, id_)
    assert (invitation.state, invitation.address) == (InvitationState.PENDING, NEW)
    assert unproven_of(finder.db, id_) == set()


def test_an_address_of_the_customers_own_needs_no_proof(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    change(finder, id_)
    finder.enrol(1, email="hr@example.com")
    assert run_bulk_resend(finder) == {}
    assert invitation_of(finder.db, id_).address == "hr@example.com"


def test_an_address_that_comes_back_is_still_unproven(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    change(finder, id_)
    change(finder, id_, email="second@example.com")
    finder.enrol(1, email="hr@example.com")
    with finder.db.write() as tx:
        resend(tx, finder.reach, shown(tx, id_), WHO, sender=EDITOR)
    failed(finder, id_)
    for back in (NEW, "second@example.com"):
        finder.enrol(1, email=back)  # as the undo of a file gives it back
        assert run_bulk_resend(finder) == {codes.operators.ADDRESS_UNPROVEN: 1}
        with pytest.raises(FrontdeskError) as refused, finder.db.write() as tx:
            resend(tx, finder.reach, shown(tx, id_), WHO, sender=SUPPORT)
        assert refused.value.code == codes.operators.ADDRESS_UNPROVEN
    assert invitation_of(finder.db, id_).address == "hr@example.com"


def test_nobody_vouches_for_an_address_that_the_page_has_not_shown(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    before = finder.db.ask(lambda tx: shown(tx, id_))
    change(finder, id_)
    for mend in (resend, partial(unblock_and_resend, lift_within=EVERY)):
        with pytest.raises(MemberOvertaken), finder.db.write() as tx:
            mend(tx, finder.reach, before, WHO, sender=EDITOR)
    assert unproven_of(finder.db, id_) == {NEW}
    assert invitation_of(finder.db, id_).state is InvitationState.FAILED


def test_who_vouches_for_one_address_vouches_for_no_other(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    change(finder, id_)
    assert change(finder, id_, EDITOR, "second@example.com") is NewAddressMail.SENT
    assert unproven_of(finder.db, id_) == {NEW}


def test_who_was_never_invited_has_unproven_addresses_too(finder: Finder) -> None:
    id_ = finder.enrol(1)
    assert change(finder, id_) is NewAddressMail.NEVER_INVITED
    assert unproven_of(finder.db, id_) == {NEW}
    assert change(finder, id_, EDITOR, "second@example.com") is NewAddressMail.NEVER_INVITED
    assert unproven_of(finder.db, id_) == {NEW}


def test_a_further_unproven_address_is_refused_and_none_is_dropped(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    tried = [f"n{number}@example.com" for number in range(MOST_UNPROVEN)]
    for email in tried:
        change(finder, id_, email=email)
    change(finder, id_, email=tried[0])  # it is marked already
    with pytest.raises(TooManyUnproven):
        change(finder, id_)
    assert unproven_of(finder.db, id_) == set(tried)
    assert finder.db.ask(lambda tx: get_kept(tx, EVERY, id_))["email"] == tried[0]
    assert change(finder, id_, EDITOR) is NewAddressMail.SENT


def test_the_same_address_in_other_letters_is_unproven_too(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    failed(finder, id_)
    change(finder, id_)
    finder.enrol(1, email=NEW.upper())
    assert run_bulk_resend(finder) == {codes.operators.ADDRESS_UNPROVEN: 1}


def test_a_mail_that_waits_for_the_earlier_address_is_cancelled(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    assert change(finder, id_) is NewAddressMail.UNPROVEN
    assert invitation_of(finder.db, id_).state is InvitationState.CANCELLED
    other = finder.enrol(2, invite_immediately=True)
    assert change(finder, other, EDITOR, "two@example.com") is NewAddressMail.SENT
    assert invitation_of(finder.db, other).address == "two@example.com"


def test_a_mail_that_a_relay_is_taking_stays_and_its_resend_is_refused(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    offered = update(invitations).values(state=InvitationState.OFFERED)
    with finder.db.write() as tx:
        tx.execute(offered)
    assert change(finder, id_) is NewAddressMail.LEAVING
    failed(finder, id_)
    assert run_bulk_resend(finder) == {codes.operators.ADDRESS_UNPROVEN: 1}


def test_who_was_never_invited_gets_no_mail(finder: Finder) -> None:
    id_ = finder.enrol(1)
    assert change(finder, id_, EDITOR) is NewAddressMail.NEVER_INVITED


def test_a_page_that_promised_a_mail_is_held_to_it(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    version = finder.db.ask(lambda tx: read_version(tx, id_))
    asked = NewAddress(id_, version, NEW, is_mailed=True)
    with pytest.raises(FactsChanged), finder.db.write() as tx:
        change_address(tx, WHO, finder.reach, asked, SUPPORT, uniqueness=Uniqueness.SERVICE)
    assert finder.db.ask(lambda tx: read_version(tx, id_)) == version


def test_of_two_changes_at_one_time_one_is_made(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    version = finder.db.ask(lambda tx: read_version(tx, id_))

    def attempt(email: str) -> str:
        asked = NewAddress(id_, version, email, is_mailed=False)
        try:
            write_alone(
                finder.db,
                lambda tx: change_address(
                    tx, WHO, finder.reach, asked, SUPPORT, uniqueness=Uniqueness.SERVICE
                ),
            )
        except MemberOvertaken:
            return "overtaken"
        return "made"

    with ThreadPoolExecutor(2) as pool:
        results = sorted(pool.map(attempt, ("one@example.com", "two@example.com")))
    assert results == ["made", "overtaken"]
    member = finder.db.ask(lambda tx: get_kept(tx, EVERY, id_))
    assert unproven_of(finder.db, id_) == {member["email_folded"]}


def test_another_accounts_person_is_unknown(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    stranger = Reach.of(make_customer(db, name="Other Health").account_id)
    asked = NewAddress(id_, 1, NEW, is_mailed=False)
    with pytest.raises(NotFound), db.write() as tx:
        change_address(tx, WHO, stranger, asked, SUPPORT, uniqueness=Uniqueness.SERVICE)


def test_an_erasure_takes_the_mark(finder: Finder) -> None:
    id_ = finder.enrol(1, invite_immediately=True)
    change(finder, id_)
    erase_person(finder.db, [Person(id_, finder.customer.account_id)], WHO)
    assert unproven_of(finder.db, id_) == set()
    with pytest.raises(NotFound):
        change(finder, id_)
