"""What the forms of a person's changes show: covered, with the values of the fields only while the
record is open in the session.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.audit import Requester
from frontdesk.clock import account_day
from frontdesk.db import Tx
from frontdesk.disclosures.another_address import MailSender, is_proven_by
from frontdesk.disclosures.checks import find_checks
from frontdesk.disclosures.covered import read_covered
from frontdesk.disclosures.model import CheckedField, Holder
from frontdesk.disclosures.opened import find_opening, read_opened
from frontdesk.eligibility.covered import CoveredPerson
from frontdesk.eligibility.person_change import CORRECTED, read_version, text_of_field
from frontdesk.eligibility.search import get_kept
from frontdesk.invitations import find_of_members
from frontdesk.invitations.model import InvitationState
from frontdesk.plans import find_owners
from frontdesk.reach import Reach


@dataclass(frozen=True, slots=True)
class ChangeForm:
    """A person for the form of a change. `version` is what `AskedChange` takes; `today` the day where
    the account's members live.

    `is_open`: whether the record is open in the session; `values` are then the texts of the fields, if
    they were asked for, else None. `facts`: what matched of
    the caller's words. `is_proven`: whether a mail may go to an address that this user enters.
    `invitation`: its state, None for a person who was never invited.
    """

    covered: CoveredPerson
    version: int
    today: str
    is_open: bool
    values: Mapping[str, str] | None
    facts: frozenset[CheckedField]
    is_proven: bool
    invitation: InvitationState | None


def view_change_form(
    tx: Tx,
    requester: Requester,
    reach: Reach,
    member_id: int,
    sender: MailSender,
    *,
    shows_values: bool,
) -> ChangeForm:
    """Of a merged member the kept one. With `shows_values`, a view of the open record is recorded
    (`member.read`), so the transaction writes. Raises NotFound.
    """
    now = requester.now
    member = get_kept(tx, reach, member_id)
    holder = Holder(requester.actor, sender.session_id)
    values = None
    is_open = find_opening(tx, member["id"], holder, now=now) is not None
    if shows_values and is_open:
        read_opened(tx, requester, reach, member["id"], session_id=sender.session_id)
        values = {name: text_of_field(name, member[name]) for name in CORRECTED}
    [owner] = find_owners(tx, [member["plan_id"]]).rows
    invitations = find_of_members(tx, [member["id"]])
    facts = find_checks(tx, member["id"], holder, now=now).facts
    return ChangeForm(
        covered=read_covered(tx, reach, member["id"], now=now),
        version=read_version(tx, member["id"]),
        today=account_day(now, owner["time_zone"]).earliest,
        is_open=is_open,
        values=values,
        facts=facts,
        is_proven=is_proven_by(facts, sender),
        invitation=invitations[0].state if invitations else None,
    )
