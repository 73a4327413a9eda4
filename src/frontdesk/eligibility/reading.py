"""Members as their account reads them: one, a page of a plan, a member's history. Nothing here is
written; the caller records the reading (docs/interface.md, Read members).
"""

from collections.abc import Sequence
from typing import Any

from frontdesk.clock import AccountDay
from frontdesk.db import Tx
from frontdesk.db.sets import one_round_trip
from frontdesk.eligibility import store
from frontdesk.eligibility.access_days import has_access
from frontdesk.eligibility.field_kinds import EMAIL_LENGTH
from frontdesk.eligibility.fields import FIELDS, STORED_FIELDS, UNIQUE
from frontdesk.eligibility.model import HistoryEntry, MemberFilter
from frontdesk.errors import NotFound
from frontdesk.invitations import find_states
from frontdesk.invitations.enqueue import decide_invitation, find_invitation_context
from frontdesk.invitations.model import (
    HIDDEN_STEPS,
    InvitationChange,
    InvitationContext,
    InvitationStep,
    NotInvitedReason,
)
from frontdesk.text import Rejected, fold_email, parse_text, wire_time

# Stored rows that a page looks at. A filter may want few of a plan's million members, and no index
# follows the time of a change (docs/decisions/0067).
MOST_ROWS = 10_000
BORN_ON_A_DAY = 1000  # stored rows with one date of birth that a page of the search looks at
FOUND_TOGETHER = 100  # members of such a page
MERGED_FROM = "merged_from"  # of the history of a kept member; the account is not told of the merge

Shown = dict[str, Any]  # a member as answers show it (docs/interface.md, Read members)
# with the id after which the next page starts; None after the last
Page = tuple[list[Shown], int | None]


def get_record(tx: Tx, member_id: int, *, account_id: int, plan_id: int, day: AccountDay) -> Shown:
    """The plan's member. Raises NotFound as `get_member` does."""
    found = get_member(tx, member_id, account_id=account_id, plan_id=plan_id)
    [record] = _records(tx, [found], account_id, day)
    return record


def get_member(tx: Tx, member_id: int, *, account_id: int, plan_id: int) -> store.Values:
    """The plan's member by column. Raises NotFound, also for one that is merged, withdrawn, erased
    or another account's.
    """
    found = store.find_record(tx, account_id, "id", member_id)
    if found is None or found["plan_id"] != plan_id or found["merged_into"] is not None:
        raise NotFound("eligible member")
    return found


def find_records(
    tx: Tx, field: str, value: str, *, account_id: int, plan_id: int | None, day: AccountDay
) -> list[Shown]:
    """The account's member, or that of the plan, with this value of a unique field: one or none.
    The `external_id` of a merged member leads to the kept one.
    """
    limit = EMAIL_LENGTH if field == "email" else FIELDS[field].kind.length
    try:
        text = parse_text(value, limit=limit)
    except Rejected:  # nothing like it is stored
        return []
    found = store.find_record(
        tx, account_id, UNIQUE[field], fold_email(text) if field == "email" else text
    )
    while found is not None and found["merged_into"] is not None:
        found = store.find_record(tx, account_id, "id", found["merged_into"])
    if found is None or plan_id not in (None, found["plan_id"]):
        return []
    return _records(tx, [found], account_id, day)


def find_people(
    tx: Tx, last_name: str, dob: str, *, account_id: int, after_id: int, day: AccountDay
) -> Page:
    """A page of the account's members with this date of birth and this last name in any letter
    case, in id order. It looks at 1,000 stored rows with the date of birth, so it may hold few
    members, or none, before the last page.
    """
    try:
        wanted = parse_text(last_name, limit=FIELDS["last_name"].kind.length).casefold()
    except Rejected:  # nothing like it is stored
        return [], None
    born = store.list_born_on(tx, account_id, dob, after_id=after_id, limit=BORN_ON_A_DAY)
    ids = [row.id for row in born if row.last_name.casefold() == wanted]
    next_after = born[-1].id if len(born) == BORN_ON_A_DAY else None
    if len(ids) > FOUND_TOGETHER:
        ids = ids[:FOUND_TOGETHER]
        next_after = ids[-1]
    found = store.list_records_of(tx, account_id, ids) if ids else []
    return _records(tx, found, account_id, day), next_after


def list_records(tx: Tx, filter_: MemberFilter, *, size: int, day: AccountDay) -> Page:
    """A page of the plan's members in id order, at most `size`. It looks at 10,000 stored rows, so
    it may hold fewer, or none, before the last page.
    """
    end = store.find_place_after(tx, filter_.plan_id, after_id=filter_.after_id, rows=MOST_ROWS)
    found = store.list_records(tx, filter_, until_id=end, limit=size + 1)
    next_after = found[size - 1]["id"] if len(found) > size else end
    on = filter_.eligible_on
    page = [values for values in found[:size] if on is None or has_access(values, on, on)]
    return _records(tx, page, filter_.account_id, day), next_after


def read_history(
    tx: Tx, member_id: int, *, account_id: int, plan_id: int, after_id: int, size: int
) -> tuple[list[HistoryEntry], int | None]:
    """A page of the history of the plan's member, oldest entries first, and the id after which the
    next page starts. Raises NotFound as `get_record` does.
    """
    get_member(tx, member_id, account_id=account_id, plan_id=plan_id)
    found = store.list_history_page(tx, member_id, after_id=after_id, limit=size + 1)
    next_after = found[size - 1].id if len(found) > size else None
    return [each for each in found[:size] if MERGED_FROM not in each.changes], next_after


def _records(
    tx: Tx, found: Sequence[store.Values], account_id: int, day: AccountDay
) -> list[Shown]:
    """The members with how far their invitations are."""
    states = find_states(tx, [values["id"] for values in found])
    addresses = {values["email_folded"] for values in found if values["id"] not in states}
    addresses |= {
        each.address_folded for each in states.values() if each.reason is InvitationStep.SUPPRESSED
    }
    with one_round_trip(tx):
        context = find_invitation_context(
            tx, account_ids=[account_id], addresses=addresses - {None}
        )
    decided = context()
    return [
        _record(each, _invitation(each, states.get(each["id"]), decided, day), day)
        for each in found
    ]


def _invitation(
    values: store.Values,
    change: InvitationChange | None,
    context: InvitationContext,
    day: AccountDay,
) -> Shown:
    account_id = values["account_id"]
    if change is None:
        decision = decide_invitation(
            is_new=True,
            has_email=values["email"] is not None,
            suppressed=(account_id, values["email_folded"]) in context.suppressed,
            expired=values["expiry_date"] is not None and values["expiry_date"] < day.earliest,
            asked=False,
            batches_enabled=context.batches_enabled.get(account_id),
        )
        # A member that would be invited today came before that, and an update never invites.
        reason = decision if isinstance(decision, NotInvitedReason) else NotInvitedReason.NOT_NEW
        return {"state": None, "reason": reason, "at": None}
    step = change.reason
    if (
        step is InvitationStep.SUPPRESSED
        and (account_id, change.address_folded) not in context.suppressed
    ):
        step = InvitationStep.BY_OPERATOR  # that another account's mail has bounced is not told
    if step in HIDDEN_STEPS:
        step = None
    return {"state": change.state, "reason": step, "at": wire_time(change.updated_at)}


def _record(values: store.Values, invitation: Shown, day: AccountDay) -> Shown:
    return {
        "id": values["id"],
        "type": "eligibility_members",
        "plan_id": values["plan_id"],
        **{name: values[name] for name in STORED_FIELDS},
        "eligible": has_access(values, day.earliest, day.latest),
        "created_at": wire_time(values["created_at"]),
        "updated_at": wire_time(values["updated_at"]),
        "invitation": invitation,
    }
