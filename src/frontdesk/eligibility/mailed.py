"""What decides about a member's mail, for `invitations.why`."""

from datetime import datetime

from frontdesk.clock import account_day
from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.people import Values
from frontdesk.invitations.model import InvitationStep
from frontdesk.invitations.why import MailedMember
from frontdesk.plans import find_owners


def mailed_member(tx: Tx, member: Values, *, now: datetime) -> MailedMember:
    """Of a record as `find_member` gives it."""
    gone = None
    if member["uniqueness_scope"] < 0:
        gone = InvitationStep.WITHDRAWN if member["external_id"] else InvitationStep.ERASED
    first = store.list_history_page(tx, member["id"], after_id=0, limit=1)
    came = {name: after for entry in first for name, (_, after) in entry.changes.items()}
    if "external_id" not in came:
        came = member  # retention has removed the values of the history
    [owner] = find_owners(tx, [member["plan_id"]]).rows
    day = account_day(member["created_at"], owner["time_zone"]).earliest
    return MailedMember(
        id=member["id"],
        account_id=member["account_id"],
        plan_id=member["plan_id"],
        email_folded=member["email_folded"],
        gone=gone,
        has_expired=member["id"] in store.find_expired(tx, [member["id"]], now),
        came_with_email=bool(came.get("email")),
        came_expired=(came.get("expiry_date") or "9999") < day,
    )
