"""What the page of a person shows: covered, or with the record while it is open in the session."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.disclosures.another_address import MailSender, is_proven_by
from frontdesk.disclosures.checks import find_checks
from frontdesk.disclosures.covered import read_covered
from frontdesk.disclosures.model import CallersChecks, Holder
from frontdesk.disclosures.opened import find_opening, read_opened
from frontdesk.eligibility.covered import CoveredPerson, MemberChange
from frontdesk.eligibility.mailed import mailed_member
from frontdesk.eligibility.person_change import read_version
from frontdesk.eligibility.search import FoundPeople, find_similar_to, get_kept, list_changes
from frontdesk.invitations.why import WhyNoMail, why_no_mail
from frontdesk.plans import get_plan
from frontdesk.reach import Reach

MOST_CHANGES = 20


class Viewer(NamedTuple):
    """Who looks at the page, and of whose mails to the address it tells. `has_relay`: whether the
    installation can send mail at all.
    """

    sender: MailSender
    mail_reach: Reach
    has_relay: bool


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person for the page. `record` is what its account reads of it, with the time until which it
    is open in this session; None while it is covered. `is_proven`: whether a mail of this user may go
    to an address that support has entered. `version` is that of the history, for the forms.
    """

    covered: CoveredPerson
    plan_name: str
    why: WhyNoMail
    changes: list[MemberChange]
    similar: FoundPeople
    record: dict[str, Any] | None
    open_until: datetime | None
    is_proven: bool
    version: int
    checks: CallersChecks


def view_person(
    tx: Tx, requester: Requester, reach: Reach, member_id: int, viewer: Viewer
) -> PersonView:
    """Of a merged member the kept one. A view of the open record is recorded (`member.read`), so the
    transaction writes. Raises NotFound.
    """
    now = requester.now
    member = get_kept(tx, reach, member_id)
    session_id = viewer.sender.session_id
    holder = Holder(requester.actor, session_id)
    opening = find_opening(tx, member["id"], holder, now=now)
    record = None
    if opening is not None:
        record = read_opened(tx, requester, reach, member["id"], session_id=session_id)
    mailed = mailed_member(tx, member, now=now)
    checks = find_checks(tx, member["id"], holder, now=now)
    return PersonView(
        covered=read_covered(tx, reach, member["id"], now=now),
        plan_name=get_plan(tx, Reach.of(member["account_id"]), member["plan_id"]).name,
        why=why_no_mail(tx, viewer.mail_reach, mailed, has_relay=viewer.has_relay, now=now),
        changes=list_changes(tx, member["id"], limit=MOST_CHANGES),
        similar=find_similar_to(tx, reach, member["id"], now=now),
        record=record,
        open_until=opening and opening.until,
        is_proven=is_proven_by(checks.facts, viewer.sender),
        version=read_version(tx, member["id"]),
        checks=checks,
    )
