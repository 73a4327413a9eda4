"""The ONE way a member is written: a chunk of records in, outcomes out, in the caller's transaction.

Read every stored record that any key of the chunk touches, decide each record in plain Python, then write sets: members,
history, audit entries, invitations. What two transactions do to each other is settled by `db.races`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.clock import stored_time
from frontdesk.config import Uniqueness
from frontdesk.db.set_transaction import SetTransaction
from frontdesk.db.sets import Found, one_round_trip
from frontdesk.eligibility import store
from frontdesk.eligibility.decide import ChunkContext, ChunkState
from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.eligibility.model import Action, Enrolled, Outcome, StoredMember, Submission
from frontdesk.eligibility.unique_keys import keys_by_scope, scope_of
from frontdesk.errors import FrontdeskError
from frontdesk.invitations import (
    InvitationContextQuery,
    enqueue_invitations,
    find_invitation_context,
    move_invitations,
)
from frontdesk.invitations.model import Delivery, NewInvitation
from frontdesk.plans import find_owners

# So many updated records are worth a statement of their own.
MANY = 100
_UPDATED = ("plan_id", *STORED_COLUMNS, "updated_at")


def enrol(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    *,
    now: datetime,
    uniqueness: Uniqueness,
    audited: bool = True,
) -> list[Enrolled | FrontdeskError]:
    """Create or update a member per submission, in order (docs/interface.md, Eligible members).

    Returns for each its outcome, or NotFound (the plan is not the account's) or Invalid with every fault. Nothing is
    written for a refused one. `audited` False leaves the audit trail to the caller: a file is one deed, not a million,
    and each row's history names it. Raises the driver's error on a lost race: run it again in a new transaction.
    """
    reads = read_chunk(tx, submissions, uniqueness)
    state = ChunkState(reads.stored(), reads.context(stored_time(now), uniqueness))
    results = [state.decide(submission) for submission in submissions]
    accepted = [
        (submission, result)
        for submission, result in zip(submissions, results, strict=True)
        if isinstance(result, Enrolled) and submission.action is not Action.COMPARE
    ]
    if accepted:
        _write(tx, accepted, now=now, audited=audited)
    return results


@dataclass(frozen=True, slots=True)
class ChunkReads:
    """What the database holds that a chunk's records touch; its rows are there once the round trip has ended."""

    members: list[Found]
    owners: Found
    invitation_context: InvitationContextQuery

    def context(self, at: str, uniqueness: Uniqueness) -> ChunkContext:
        return ChunkContext(
            plan_owners={row["id"]: row["account_id"] for row in self.owners.rows},
            invitation_context=self.invitation_context.read(),
            uniqueness=uniqueness,
            today=at[:10],
            at=at,
        )

    def stored(self) -> list[StoredMember]:
        return store.stored_members(self.members)


def read_chunk(
    tx: SetTransaction, submissions: Sequence[Submission], uniqueness: Uniqueness, *, lock: bool = True
) -> ChunkReads:
    """Every stored record and setting that the chunk needs, in one round trip."""
    keys = submitted_keys(submissions, uniqueness)
    addresses = {address for of_scope in keys.values() for address in of_scope["email_folded"]}
    with one_round_trip(tx):
        return ChunkReads(
            [store.lock_members(tx, scope, keys[scope], lock=lock) for scope in sorted(keys)],
            find_owners(tx, {submission.plan_id for submission in submissions}),
            find_invitation_context(
                tx, account_ids={submission.account_id for submission in submissions}, addresses=addresses
            ),
        )


def submitted_keys(
    submissions: Sequence[Submission], uniqueness: Uniqueness
) -> dict[int, dict[str, set[str]]]:
    """The unique keys that the records carry, by uniqueness scope and column."""
    return keys_by_scope(
        (scope_of(submission.account_id, uniqueness), submission.record.given) for submission in submissions
    )


def _write(
    tx: SetTransaction, accepted: Sequence[tuple[Submission, Enrolled]], *, now: datetime, audited: bool
) -> None:
    touched = {id(result.stored): result.stored for _, result in accepted}.values()
    created = sorted((s for s in touched if s.is_new), key=lambda s: str(s.values["external_id"]))
    updated = sorted((s for s in touched if s.is_changed and not s.is_new), key=lambda s: int(s.values["id"]))
    if created:
        for id_, stored in zip(store.new_member_ids(tx, len(created)), created, strict=True):
            stored.values["id"] = id_
    with one_round_trip(tx):
        # Updates first: a new record may take over a key that an updated one gives up.
        store.update_members(tx, [s.values for s in updated], columns=_columns(accepted, len(updated)))
        store.insert_members(tx, [s.values for s in created])
        _write_history(tx, accepted, now=now)
        if audited:
            _write_audit(tx, accepted, now=now)
        _write_invitations(tx, [result for _, result in accepted], now=now)
    moved = [result.stored for _, result in accepted if result.outcome is Outcome.MOVED]
    move_invitations(tx, {s.values["id"]: s.values["plan_id"] for s in moved if not s.is_new})


def _columns(accepted: Sequence[tuple[Submission, Enrolled]], updated: int) -> tuple[str, ...]:
    """What an update writes: of many records only the columns in which any of them changes, since SQLite renews the
    indexes of every column that is named, and PostgreSQL reads them all; of a few always the same, for the sake of one
    prepared statement."""
    if updated < MANY:
        return _UPDATED
    found = {
        name for _, result in accepted if result.outcome is not Outcome.CREATED for name in result.changes
    }
    if "email" in found:
        found.add("email_folded")
    return tuple(name for name in _UPDATED if name in found or name == "updated_at")


def _write_history(
    tx: SetTransaction, accepted: Sequence[tuple[Submission, Enrolled]], *, now: datetime
) -> None:
    at = stored_time(now)
    rows = [
        {
            "member_id": result.stored.values["id"],
            "outcome": result.outcome.value,
            "plan_id": submission.plan_id,
            "changes": result.changes,
            "client": submission.client,
            "request_id": submission.request_id,
            "changed_at": at,
        }
        for submission, result in accepted
        if result.outcome is not Outcome.UNCHANGED
    ]
    if rows:
        store.insert_history(tx, rows)


def _write_audit(
    tx: SetTransaction, accepted: Sequence[tuple[Submission, Enrolled]], *, now: datetime
) -> None:
    entries = [
        AuditEntry(
            action=f"eligibility.{result.outcome.value}",
            actor=submission.client,
            request_id=submission.request_id,
            account_id=submission.account_id,
            subject_id=result.stored.values["id"],
        )
        for submission, result in accepted
    ]
    audit.record(tx, entries, now=now)


def _write_invitations(tx: SetTransaction, accepted: Sequence[Enrolled], *, now: datetime) -> None:
    invited = []
    for result in accepted:
        if isinstance(result.invitation, Delivery):
            values = result.stored.values
            invited.append(
                NewInvitation(
                    account_id=values["account_id"],
                    plan_id=values["plan_id"],
                    member_id=values["id"],
                    delivery=result.invitation,
                    address=values["email"],
                )
            )
    enqueue_invitations(tx, invited, now=now)
