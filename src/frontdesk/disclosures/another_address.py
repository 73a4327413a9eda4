"""Another e-mail address of a person, and the mails to it.

The link in an invitation is the person's registration. So an address that support has entered gets a
mail only if three facts of the caller have matched: whoever talks a support desk into an address of
theirs gets no link. Later mails ask the same, whoever sends them, until somebody vouches for the
address: an editor, whose customer it is, or support with three facts (docs/decisions/0179).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.audit import Requester
from frontdesk.codes import Kind
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.disclosures.checks import find_checks
from frontdesk.disclosures.model import FACTS_NEEDED, CheckedField, Holder
from frontdesk.eligibility import person_mail
from frontdesk.eligibility.model import Outcome
from frontdesk.eligibility.person_change import (
    AskedChange,
    ChangeAnswer,
    Correction,
    change_person,
    refuse_overtaken,
)
from frontdesk.eligibility.person_mail import NewAddressMail
from frontdesk.eligibility.search import get_kept, lock_member
from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.reach import Reach


@dataclass(frozen=True, slots=True)
class MailSender:
    """Who sends a mail to a person, in which session. `vouches`: an editor, who may also enter any
    address by a file.
    """

    session_id: int
    vouches: bool


@dataclass(frozen=True, slots=True)
class NewAddress:
    """Another address for a person. `version` is that of the page; `is_mailed` is what the page has
    said: whether the invitation goes there.
    """

    member_id: int
    version: int
    email: str
    is_mailed: bool


class ShownPerson(NamedTuple):
    """A person as a page has shown it: `version` is the newest entry of its history there."""

    member_id: int
    version: int


class FactsChanged(FrontdeskError, kind=Kind.CONFLICT):
    """Another number of facts has matched than when the page was made."""

    def __init__(self) -> None:
        super().__init__(
            "What matched of the caller's words is no longer what this page has shown. Facts count for "
            "an hour."
        )


def is_proven(tx: Tx, requester: Requester, member_id: int, sender: MailSender) -> bool:
    """Whether the sender's mails may go to an address that support entered: the sender vouches, or
    three facts have matched in the session within the last hour.
    """
    if sender.vouches:
        return True
    holder = Holder(requester.actor, sender.session_id)
    checks = find_checks(tx, member_id, holder, now=requester.now)
    return is_proven_by(checks.facts, sender)


def is_proven_by(facts: Collection[CheckedField], sender: MailSender) -> bool:
    """As `is_proven`, of the facts that the sender's session has."""
    return sender.vouches or len(facts) >= FACTS_NEEDED


def change_address(
    tx: Tx,
    requester: Requester,
    reach: Reach,
    asked: NewAddress,
    sender: MailSender,
    *,
    uniqueness: Uniqueness,
) -> NewAddressMail | FrontdeskError | None:
    """Change the person's address, and send the invitation there if it is proven. Returns None if
    the person has the address already, or the refusal of the record, as `change_person` does.

    Raises NotFound, Overtaken, FactsChanged, and Invalid without an address.
    """
    if not asked.email:
        raise Invalid([Fault("email", codes.faults.REQUIRED, "must not be blank")])
    member = get_kept(tx, reach, asked.member_id)
    proven = is_proven(tx, requester, member["id"], sender)
    if proven is not asked.is_mailed:
        raise FactsChanged
    correction = Correction({"email": asked.email})
    change = AskedChange(member["id"], asked.version, correction, is_confirmed=True)
    answer = change_person(tx, requester, reach, change, uniqueness=uniqueness)
    if not isinstance(answer, ChangeAnswer):
        return answer
    if answer.made.outcome is Outcome.UNCHANGED:
        return None
    return person_mail.mail_to_new_address(tx, reach, member["id"], requester, is_proven=proven)


def resend(
    tx: Tx, reach: Reach, shown: ShownPerson, requester: Requester, *, sender: MailSender
) -> None:
    """As `person_mail.resend`, of the person as it was shown: the sender vouches for no address that
    has come since. Raises MemberOvertaken.
    """
    member = _as_shown(tx, reach, shown)
    proven = is_proven(tx, requester, member["id"], sender)
    person_mail.resend(tx, reach, member["id"], requester, is_proven=proven)


def unblock_and_resend(
    tx: Tx,
    reach: Reach,
    shown: ShownPerson,
    requester: Requester,
    *,
    lift_within: Reach,
    sender: MailSender,
) -> None:
    """As `person_mail.unblock_and_resend`, of the person as it was shown. Raises MemberOvertaken."""
    member = _as_shown(tx, reach, shown)
    proven = is_proven(tx, requester, member["id"], sender)
    person_mail.unblock_and_resend(
        tx, reach, member["id"], requester, lift_within=lift_within, is_proven=proven
    )


def _as_shown(tx: Tx, reach: Reach, shown: ShownPerson) -> Mapping[str, Any]:
    """The member, locked, so that its address stays as it is until the mail is in line. Raises
    NotFound, MemberOvertaken.
    """
    member = get_kept(tx, reach, shown.member_id)
    lock_member(tx, member["id"])
    refuse_overtaken(tx, member["id"], shown.version)
    return member
