"""Queries and decisions of people about members: a record, its eligibility on a day; merge,
distinct, rename.

Similar members are one person (merge), or two (distinct), or a member has a new identifier
(rename). A merged member keeps its row and its external_id, which leads to the member that was
kept; its member_id and e-mail address are free again. Each function writes its audit entries and
history in the caller's transaction.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from frontdesk import audit, codes, events
from frontdesk.audit import Requester
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.sets import insert_missing, update_set
from frontdesk.eligibility import store
from frontdesk.eligibility.access_days import has_access
from frontdesk.eligibility.model import (
    Enrolled,
    HistoryEntry,
    MemberRecord,
    Outcome,
    SimilarPair,
    Submission,
)
from frontdesk.eligibility.tables import distinct_members, members
from frontdesk.eligibility.undo import UndoRequest, restore
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.invitations.model import InvitationStep
from frontdesk.invitations.protocol import cancel_of_members
from frontdesk.reach import Reach
from frontdesk.text import fold_email, stored_time

SEARCHED_TOGETHER = 1000  # members
RENAMED = "renamed"
UNCHANGED = "unchanged"
NO_SUCH_MEMBER = "no_such_member"
SEVERAL_ACCOUNTS = codes.operators.SEVERAL_ACCOUNTS

Values = dict[str, Any]
Track = Callable[[Iterable[int]], Iterable[int]]
Decide = Callable[[Tx, Sequence[Submission]], Iterable[Enrolled | FrontdeskError]]


class EligibilityReason(StrEnum):
    """The reason why a member is or is not eligible on a day."""

    ELIGIBLE = "eligible"
    NOT_YET = "not_yet"
    EXPIRED = "expired"
    NOT_ENROLLED = "not_enrolled"


class EligibilityAnswer(NamedTuple):
    """Whether a member was eligible on a day, by the history up to a time; `known_since` is the
    last change until then.
    """

    eligible: bool
    reason: EligibilityReason
    plan_id: int | None = None
    effective_date: str | None = None
    expiry_date: str | None = None
    known_since: datetime | None = None


def find_member(tx: Tx, reach: Reach, who: str) -> Values:
    """The record of the member with this external_id, member_id, e-mail address or id, tried in
    this order, withdrawn ones last; of a merged one that of the member it leads to. Raises
    NotFound, also for one out of reach, and FrontdeskError `several_accounts`.
    """
    given: dict[str, Any] = {"external_id": who, "member_id": who, "email_folded": fold_email(who)}
    # 00042 is a sender's number.
    if who.isascii() and who.isdigit() and len(who) < 19 and who[0] != "0":
        given["id"] = int(who)
    found = (
        store.find_members(tx, reach, value, withdrawn=withdrawn, column=column)
        for withdrawn in (False, True)
        for column, value in given.items()
    )
    [*_, kept] = _led(tx, _of_one_account(next(filter(None, found), []))[-1])
    return kept


def get_members_named(
    tx: Tx, reach: Reach, external_id: str, *, withdrawn: bool = False
) -> list[Values]:
    """The members with this identifier of their own, at most one that is not withdrawn; errors as
    of `find_member`.
    """
    return _of_one_account(store.find_members(tx, reach, external_id, withdrawn=withdrawn))


def _of_one_account(found: list[Values]) -> list[Values]:
    if not found:
        detail = (
            "There is no such eligible member. Letter case counts. "
            "An erased member has no external_id: name it by its id."
        )
        raise NotFound("eligible member", detail)
    if len(accounts := {member["account_id"] for member in found}) > 1:
        named = ", ".join(map(str, sorted(accounts)))
        detail = f"Several accounts have such a member: {named}."
        raise FrontdeskError(detail, code=SEVERAL_ACCOUNTS)
    return found


def find_eligibility(
    tx: Tx, reach: Reach, external_id: str, *, on: str, known_at: datetime | None = None
) -> EligibilityAnswer:
    """The answer for the day `on` (`YYYY-MM-DD`), as of `known_at` or now. Both days of an access
    are inclusive. Raises NotFound for an identifier that is unknown or out of reach, and
    FrontdeskError `several_accounts`.
    """
    named = reversed(get_members_named(tx, reach, external_id, withdrawn=True))
    led = (member for each in named for member in _led(tx, each))
    answers = (_answer(store.list_history(tx, member["id"]), on, known_at) for member in led)
    return next(
        filter(None, answers),
        EligibilityAnswer(eligible=False, reason=EligibilityReason.NOT_ENROLLED),
    )


def _led(tx: Tx, member: Values) -> Iterator[Values]:
    """The member, and those that it leads to: the last one is not merged."""
    yield member
    while member["merged_into"] is not None:
        reach = Reach.of(member["account_id"])  # both are of one account (`lock_pair`)
        [member] = store.find_members(tx, reach, member["merged_into"], withdrawn=True, column="id")
        yield member


def _answer(
    history: Sequence[HistoryEntry], on: str, known_at: datetime | None
) -> EligibilityAnswer | None:
    """The answer as of `known_at`; None before the record was created and while it was withdrawn or
    merged.
    """
    entries = [entry for entry in history if known_at is None or entry.changed_at <= known_at]
    known = {name: after for entry in entries for name, (_, after) in entry.changes.items()}
    if (
        not entries
        or entries[-1].outcome is Outcome.WITHDRAWN
        or known.get("merged_into") is not None
    ):
        return None
    effective = known.get("effective_date")
    expiry = known.get("expiry_date")
    reason = EligibilityReason.ELIGIBLE
    last = entries[-1]
    is_covered = effective is not None and _is_covered({**known, "plan_id": last.plan_id}, on)
    if effective is None or (on < effective and not is_covered):
        reason = EligibilityReason.NOT_YET
    elif expiry is not None and on > expiry and not is_covered:
        reason = EligibilityReason.EXPIRED
    is_eligible = reason is EligibilityReason.ELIGIBLE
    return EligibilityAnswer(is_eligible, reason, last.plan_id, effective, expiry, last.changed_at)


def _is_covered(known: Values, on: str) -> bool:
    """Whether one of the coverages that the member kept holds the day."""
    is_kept = known.get("coverages") is not None
    return is_kept and has_access({"expiry_date": None, **known}, on, on)


def find_duplicates(
    db: Database, reach: Reach, *, after: tuple[int, int], limit: int, today: str, track: Track
) -> list[SimilarPair]:
    """The next pairs of open members within reach that may be one person, by ascending ids, without
    pairs marked as distinct.

    `after` is the last pair of the previous call. `track` shows the progress.
    """
    found = list[SimilarPair]()
    search = partial(store.list_similar_pairs, reach=reach, today=today)
    for last in track(_ends_of_pages(db, after_id=after[0] - 1)):
        found += db.ask(partial(search, after=after, until=last, limit=limit - len(found)))
        after = max(after, (last + 1, 0))
        if len(found) == limit:
            break
    return found


def _ends_of_pages(db: Database, *, after_id: int) -> Iterator[int]:
    """The last id of each page of members, in the order of the ids: these have gaps of any size."""
    while True:
        page = partial(store.find_end_of_page, after_id=after_id, rows=SEARCHED_TOGETHER)
        last = db.ask(page)
        if last is None:
            return
        yield last
        after_id = last


def lock_pair(tx: Tx, reach: Reach, first: str, second: str) -> tuple[Values, Values]:
    """Two members of one account, locked. Raises NotFound, and FrontdeskError `several_accounts`,
    `same_member`.
    """
    [one] = get_members_named(tx, reach, first)
    [other] = get_members_named(tx, Reach.of(one["account_id"]), second)
    if one["id"] == other["id"]:
        raise FrontdeskError(
            "Both identifiers are of the same member.", code=codes.operators.SAME_MEMBER
        )
    by_id = store.lock_by_ids(tx, [one["id"], other["id"]])
    return by_id[one["id"]].values, by_id[other["id"]].values


def merge(tx: Tx, kept: Values, dropped: Values, requester: Requester) -> None:
    """Close a member for good: its external_id leads to the kept member, whose values stay. Pending
    invitations of the closed member are cancelled. Raises FrontdeskError `already_merged`,
    `erased`.
    """
    if not (kept["external_id"] and dropped["external_id"]):
        raise FrontdeskError("One of the members is erased.", code=codes.operators.ERASED)
    if kept["merged_into"] is not None or dropped["merged_into"] is not None:
        detail = "One of the members was merged before."
        raise FrontdeskError(detail, code=codes.operators.ALREADY_MERGED)
    # No sender can send this member_id, because values are trimmed.
    closed = {
        "id": dropped["id"],
        "merged_into": kept["id"],
        "member_id": f" merged {dropped['id']}",
    }
    closed |= dict.fromkeys(("email", "email_folded", "row_digest"))
    update_set(tx, members, [closed | {"updated_at": stored_time(requester.now)}])
    lost = {name: [dropped[name], None] for name in ("member_id", "email")}
    lost["merged_into"] = [None, kept["id"]]
    _note(
        tx,
        requester,
        "member.merged",
        (kept, {"merged_from": [None, dropped["id"]]}),
        (dropped, lost),
    )
    cancel_of_members(tx, [dropped["id"]], now=requester.now, reason=InvitationStep.MERGED)
    gone = {"eligibility_id": dropped["id"], "plan_id": dropped["plan_id"], "kept_id": kept["id"]}
    merged = NewEvent(
        dropped["account_id"], AccountEventType.MEMBER_MERGED, gone, requester.request_id
    )
    events.publish(tx, [merged], now=requester.now)


def unmerge(
    tx: Tx, kept: Values, dropped: Values, requester: Requester, *, uniqueness: Uniqueness
) -> None:
    """Undo a merge: the closed member gets its member_id and e-mail address back. Raises
    FrontdeskError `not_merged`, `too_old` (retention has removed the values of its history), and
    `taken` if another member now has one of its keys.
    """
    drop_id = dropped["id"]
    if dropped["merged_into"] != kept["id"]:
        raise FrontdeskError(
            "The second member is not merged into the first one.", code=codes.operators.NOT_MERGED
        )
    if "merged_into" not in store.find_histories(tx, [drop_id])[drop_id][0].changes:
        raise FrontdeskError(
            "The history no longer has the values of the merged member.",
            code=codes.operators.TOO_OLD,
        )
    undo = UndoRequest(
        undone_file_id=None,
        file_id=None,
        client=requester.actor,
        request_id=requester.request_id,
        now=requester.now,
        uniqueness=uniqueness,
    )
    [restored] = restore(tx, [drop_id], undo)
    if isinstance(restored, FrontdeskError):
        raise FrontdeskError(
            f"The member's {restored.faults[0].field} is taken by now.", code=codes.operators.TAKEN
        )
    _note(tx, requester, "member.unmerged", (kept, {"merged_from": [drop_id, None]}), (dropped, {}))


def call_distinct(tx: Tx, first: Values, second: Values, requester: Requester) -> None:
    """Two similar members are two people: `find_duplicates` leaves them out."""
    lower, higher = sorted((first["id"], second["id"]))
    pair = {"lower_id": lower, "higher_id": higher, "account_id": first["account_id"]}
    insert_missing(tx, distinct_members, [pair])
    _note(tx, requester, "member.called_distinct", (first, {}), (second, {}))


def rename(
    tx: Tx, pairs: Sequence[tuple[str, str]], reach: Reach, requester: Requester, decide: Decide
) -> list[str]:
    """Give members new identifiers, in order: pairs (old, new). A member_id that equals the old
    identifier changes too, since both are equal by default in an 834. `decide` is `enrol`, or that
    of a dry run.

    The result of a pair is RENAMED, UNCHANGED, NO_SUCH_MEMBER, SEVERAL_ACCOUNTS, `not_unique` or
    `too_many_taken`.
    """
    found = {old: list[Values]() for old, _ in pairs}
    for row in store.lock_renamed(tx, found.keys()):
        if reach.covers(row["account_id"]):
            found[row["external_id"]].append(row)
    submissions = []
    for old, new in pairs:
        if len(found[old]) == 1:
            [row] = found[old]
            given = {name: new for name in ("external_id", "member_id") if row[name] == old}
            submission = Submission(
                row["account_id"],
                row["plan_id"],
                MemberRecord(old, given),
                requester.actor,
                requester.request_id,
            )
            submissions.append(submission)
    results = iter(decide(tx, submissions))
    return [_renamed(len(found[old]), results) for old, _ in pairs]


def _renamed(count: int, results: Iterator[Enrolled | FrontdeskError]) -> str:
    if count != 1:
        return SEVERAL_ACCOUNTS if count else NO_SUCH_MEMBER
    if isinstance(result := next(results), Enrolled):
        return UNCHANGED if result.outcome is Outcome.UNCHANGED else RENAMED
    refused = [fault.code for fault in result.faults]
    # An earlier pair renamed the member, so the record made a new member.
    return NO_SUCH_MEMBER if codes.faults.REQUIRED in refused else refused[0]


def _note(
    tx: Tx, requester: Requester, action: str, *changed: tuple[Values, dict[str, list[Any]]]
) -> None:
    """Add the changes of two members to their histories, and the action to the audit trail."""
    by = (requester.actor, requester.request_id, None)
    entries = [
        (values["id"], Outcome.UPDATED, values["plan_id"], changes, *by)
        for values, changes in reversed(changed)
        if changes
    ]
    store.insert_history(tx, entries, stored_time(requester.now))
    (first, _), (second, _) = changed
    audit.record_action(
        tx, requester, action, first["account_id"], first["id"], other_id=second["id"]
    )
