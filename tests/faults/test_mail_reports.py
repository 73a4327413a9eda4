"""Many at once about one mail: relays that repeat themselves, a reader who clicks again, a mailbox
that is read meanwhile.
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone, write_together
from frontdesk.invitations import suppress
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
from frontdesk.invitations.store.queries import find_invitation
from frontdesk.reach import EVERY
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.faults.callers import times
from tests.invitations.mails import MailedInvitation, mailed, state_of, suppressed

CALLERS = 6
ROUNDS = times(25, long=500)
STATES = [
    (InvitationState.AMBIGUOUS, 1),
    (InvitationState.AMBIGUOUS, 1),
    (InvitationState.OFFERED, 0),
]


def write(db: Database, item: Any, work: Callable[[Tx, Any], Any]) -> Any:
    [done] = write_together(db, [item], lambda tx, items: [work(tx, each) for each in items])
    assert not isinstance(done, Exception)
    return done


def told(db: Database, mail: MailedInvitation, event: ReportEvent) -> Any:
    report = DeliveryReport(mail.message_id, event)
    return write(db, report, lambda tx, each: receive_report(tx, each, now=NOW))


def unsubscribed(db: Database, mail: MailedInvitation) -> Any:
    reason = SuppressionReason.UNSUBSCRIBE
    return write(db, mail.address, lambda tx, each: suppress(tx, each, reason, now=NOW))


def answered(db: Database, mail: MailedInvitation) -> None:
    """What a worker writes down when the relay has taken the mail."""

    def work(tx: Tx) -> None:
        change = StateChange(
            InvitationState.OFFERED, InvitationState.SENT, InvitationStep.ACCEPTED, code=250
        )
        apply_changes(
            tx, [(change, find_invitation(tx, EVERY, mail.id))], now=NOW, keeps_claim=True
        )
        apply_early_reports(tx, {mail.message_id}, now=NOW)

    write_alone(db, work)


def test_simultaneous_reports_and_clicks_count_once(
    api: Api, db: Database, customer: Customer
) -> None:
    with ThreadPoolExecutor(CALLERS) as pool:
        for number in range(ROUNDS):
            same, other, offered = (
                mailed(api, db, customer, number=3 * number + n, state=state, losses=losses)
                for n, (state, losses) in enumerate(STATES)
            )
            # The same report from all.
            effects = list(
                pool.map(lambda _, it=same: told(db, it, ReportEvent.BOUNCED), range(CALLERS))
            )
            assert Counter(effects) == {ReportEffect.APPLIED: 1, ReportEffect.KNOWN: CALLERS - 1}
            assert (state_of(db, same), suppressed(db)[same.address]) == ("failed", "hard_bounce")
            # Different reports and clicks.
            events = [ReportEvent.BOUNCED, ReportEvent.COMPLAINED, ReportEvent.DELIVERED]
            reports = [pool.submit(told, db, other, event) for event in events]
            clicks = [pool.submit(unsubscribed, db, other) for _ in range(3)]
            assert [future.result() for future in reports] == [ReportEffect.APPLIED] * 3
            assert sum(future.result() for future in clicks) <= 1
            assert state_of(db, other) in (InvitationState.SENT, InvitationState.FAILED)
            assert suppressed(db)[other.address] in ("hard_bounce", "complaint", "unsubscribe")
            # A bounce while the relay's answer is written down.
            answer = pool.submit(answered, db, offered)
            report = pool.submit(told, db, offered, ReportEvent.BOUNCED)
            assert (answer.result(), report.result()) == (None, ReportEffect.APPLIED)
            assert state_of(db, offered) is InvitationState.FAILED
