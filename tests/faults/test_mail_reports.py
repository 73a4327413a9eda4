"""Many at once about one mail: relays that repeat themselves, a reader who clicks again, a mailbox that is read meanwhile."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone, write_together
from frontdesk.invitations import suppress
from frontdesk.invitations.message import find_link_target
from frontdesk.invitations.model import (
    DeliveryReport,
    InvitationState,
    InvitationStep,
    ReportEffect,
    ReportEvent,
    StateChange,
    SuppressionReason,
)
from frontdesk.invitations.protocol import apply_changes, apply_early_reports
from frontdesk.invitations.reports import receive_report
from frontdesk.invitations.store import find_invitation
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.faults.callers import times
from tests.invitations.mails import MailedInvitation, mailed, state_of, suppressed

CALLERS = 6
ROUNDS = times(25, long=500)


def told(db: Database, mail: MailedInvitation, event: ReportEvent) -> ReportEffect:
    [effect] = write_together(
        db,
        [DeliveryReport(mail.message_id, event)],
        lambda tx, reports: [receive_report(tx, each, now=NOW) for each in reports],
    )
    assert not isinstance(effect, Exception)
    return effect


def unsubscribed(db: Database, mail: MailedInvitation) -> bool:
    with db.read() as tx:
        found = find_link_target(tx, "unsubscribe", mail.tokens.unsubscribe)
    assert found is not None
    [done] = write_together(
        db,
        [found.address],
        lambda tx, some: [suppress(tx, each, SuppressionReason.UNSUBSCRIBE, now=NOW) for each in some],
    )
    assert not isinstance(done, Exception)
    return done


def test_the_same_report_from_many_at_once_counts_once(api: Api, db: Database, customer: Customer) -> None:
    with ThreadPoolExecutor(CALLERS) as pool:
        for number in range(ROUNDS):
            mail = mailed(api, db, customer, number=number, state=InvitationState.AMBIGUOUS, losses=1)
            effects = list(pool.map(lambda _, it=mail: told(db, it, ReportEvent.BOUNCED), range(CALLERS)))
            assert Counter(effects) == {ReportEffect.APPLIED: 1, ReportEffect.KNOWN: CALLERS - 1}
            assert (state_of(db, mail), suppressed(db)[mail.address]) == (
                InvitationState.FAILED,
                "hard_bounce",
            )


def test_different_reports_and_clicks_at_once_leave_one_state_and_one_suppression(
    api: Api, db: Database, customer: Customer
) -> None:
    with ThreadPoolExecutor(CALLERS) as pool:
        for number in range(ROUNDS):
            mail = mailed(api, db, customer, number=number, state=InvitationState.AMBIGUOUS, losses=1)
            events = [ReportEvent.BOUNCED, ReportEvent.COMPLAINED, ReportEvent.DELIVERED]
            reports = [pool.submit(told, db, mail, event) for event in events]
            clicks = [pool.submit(unsubscribed, db, mail) for _ in range(3)]
            assert [future.result() for future in reports] == [ReportEffect.APPLIED] * 3
            assert sum(future.result() for future in clicks) <= 1
            assert state_of(db, mail) in (InvitationState.SENT, InvitationState.FAILED)
            assert suppressed(db)[mail.address] in ("hard_bounce", "complaint", "unsubscribe")


def answered(db: Database, mail: MailedInvitation) -> None:
    """What a worker writes down when the relay has taken the mail."""

    def work(tx: Tx) -> None:
        change = StateChange(InvitationState.OFFERED, InvitationState.SENT, InvitationStep.ACCEPTED, code=250)
        apply_changes(tx, [(change, find_invitation(tx, mail.id))], now=NOW)
        apply_early_reports(tx, {mail.message_id}, now=NOW)

    write_alone(db, work)


def test_a_bounce_that_comes_while_the_answer_is_written_down_is_never_missed(
    api: Api, db: Database, customer: Customer
) -> None:
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            mail = mailed(api, db, customer, number=number, state=InvitationState.OFFERED)
            answer, report = pool.submit(answered, db, mail), pool.submit(told, db, mail, ReportEvent.BOUNCED)
            assert (answer.result(), report.result()) == (None, ReportEffect.APPLIED)
            assert state_of(db, mail) is InvitationState.FAILED
