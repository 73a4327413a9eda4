"""Opens the record of a person for a user's session: for a reason, for 15 minutes."""

import re
from datetime import datetime
from typing import Any

from frontdesk import audit, codes
from frontdesk.audit import Requester
from frontdesk.clock import account_day
from frontdesk.db import Tx
from frontdesk.db.sets import lock_name
from frontdesk.disclosures import store
from frontdesk.disclosures.model import (
    HOUR,
    OPEN_TIME,
    PEOPLE_AN_HOUR,
    Disclosure,
    DisclosureKind,
    FreshFactorNeeded,
    Holder,
    OpenedRecord,
    Opening,
    RecordNotOpen,
    counted_times,
)
from frontdesk.eligibility import reading
from frontdesk.eligibility.search import get_kept
from frontdesk.errors import Fault, Invalid
from frontdesk.plans import find_owners
from frontdesk.reach import Reach
from frontdesk.text import stored_time

# The trail keeps it for good, so it must be no name (a digit has to be in it) and no date of birth.
CASE_NUMBER = re.compile("[A-Za-z0-9.#/-]{1,40}")
DATE = re.compile("[0-9]{4}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}")


def open_record(tx: Tx, requester: Requester, reach: Reach, opening: Opening) -> OpenedRecord:
    """Open the record of a person for a session, for 15 minutes from now. The trail records the
    reason and the case number (`member.opened`).

    Raises NotFound; Invalid for a case number that is not 1 to 40 letters, digits and `.-/#` with
    one digit at least; FreshFactorNeeded for the 21st person within an hour by one user.
    """
    check_case(opening.case)
    member = get_kept(tx, reach, opening.member_id)
    actor = requester.actor
    lock_name(tx, f"records opened by {actor}")
    times = counted_times(requester.now, HOUR)
    if not opening.has_fresh_factor:
        recent = store.list_by_actor(tx, actor, times)
        people = {each.member_id for each in recent if each.kind is DisclosureKind.OPENED}
        if len(people - {member["id"]}) >= PEOPLE_AN_HOUR:
            raise FreshFactorNeeded
    opened = Disclosure(
        member["id"], actor, DisclosureKind.OPENED, opening.session_id, requester.now
    )
    store.add(tx, opened, times)
    until = requester.now + OPEN_TIME
    audit.record_action(
        tx,
        requester,
        "member.opened",
        member["account_id"],
        member["id"],
        reason=opening.reason.value,
        case=opening.case,
        session=opening.session_id,
        until=stored_time(until),
    )
    return OpenedRecord(member["id"], until)


def check_case(case: str) -> None:
    """Raises Invalid for a case number that is not 1 to 40 letters, digits and `.-/#` with one
    digit at least.
    """
    has_digit = any(map(str.isdigit, case))
    if not has_digit or not CASE_NUMBER.fullmatch(case) or DATE.fullmatch(case):
        rule = "must have 1 to 40 letters, digits and .-/#, with a digit at least, and be no date"
        raise Invalid([Fault("case", codes.faults.NOT_ALLOWED, rule)])


def find_opening(tx: Tx, member_id: int, holder: Holder, *, now: datetime) -> OpenedRecord | None:
    """The opening of the record that the holder has now; None if it is covered."""
    for each in store.list_of_member(tx, member_id, counted_times(now, OPEN_TIME)):
        is_opening = each.kind is DisclosureKind.OPENED
        if is_opening and (each.actor, each.session_id) == holder:
            return OpenedRecord(member_id, each.at + OPEN_TIME)
    return None


def require_open(tx: Tx, reach: Reach, member_id: int, holder: Holder, *, now: datetime) -> None:
    """Raises NotFound, and RecordNotOpen unless the holder has opened the record and it still is."""
    member = get_kept(tx, reach, member_id)
    if find_opening(tx, member["id"], holder, now=now) is None:
        raise RecordNotOpen


def read_opened(
    tx: Tx, requester: Requester, reach: Reach, member_id: int, *, session_id: int
) -> dict[str, Any]:
    """The record as its account reads it (docs/interface.md, Read members). The trail records each
    view (`member.read`). Raises NotFound, and RecordNotOpen.
    """
    member = get_kept(tx, reach, member_id)
    holder = Holder(requester.actor, session_id)
    if find_opening(tx, member["id"], holder, now=requester.now) is None:
        raise RecordNotOpen
    account_id = member["account_id"]
    audit.record_action(tx, requester, "member.read", account_id, member["id"], session=session_id)
    [owner] = find_owners(tx, [member["plan_id"]]).rows
    day = account_day(requester.now, owner["time_zone"])
    return reading.get_record(
        tx, member["id"], account_id=account_id, plan_id=member["plan_id"], day=day
    )
