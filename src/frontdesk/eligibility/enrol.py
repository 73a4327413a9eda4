"""The one way a member is written: a chunk of records in, their outcomes out, in the caller's transaction.

One statement reads every stored record that a key of the chunk touches, plain Python decides each record, and one statement
writes members, history, audit entries and invitations. `db.races` settles what transactions do to each other.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.clock import Clock, stored_time
from frontdesk.config import Config, Uniqueness
from frontdesk.db import Database
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.db.races import GroupCommit, Writable, write_together
from frontdesk.db.sets import Found, SetTransaction, insert_set, next_ids, one_round_trip, update_set
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility import store
from frontdesk.eligibility.decide import ChunkContext, ChunkState
from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.eligibility.model import Action, Enrolled, Outcome, StoredMember, Submission
from frontdesk.eligibility.probes import TAKEN_PER_DAY, ChunkProbes, ProbeLimit
from frontdesk.eligibility.similar import PERSON_FIELDS, SimilarSearch, get_digest_key, with_warnings
from frontdesk.eligibility.tables import members
from frontdesk.eligibility.unique_keys import keys_by_scope, scope_of
from frontdesk.errors import FrontdeskError
from frontdesk.invitations.enqueue import (
    enqueue_invitations,
    find_invitation_context,
    move_invitations,
)
from frontdesk.invitations.model import Delivery, NewInvitation
from frontdesk.plans import find_owners

POSTGRESQL_LANES = 2  # SQLite has one writer, so a second lane would only wait
MANY = 100  # so many updated records are worth a statement of their own
_UPDATED = ("plan_id", *STORED_COLUMNS, "row_digest", "family_digest", "person_digest", "updated_at")
_ALWAYS_UPDATED = {"row_digest", "updated_at"}
# The other columns that updates of this process have changed so far.
changed_before: set[str] = set()


def enrol(  # noqa: PLR0913 - each is said by another caller
    tx: SetTransaction,
    submissions: Sequence[Submission],
    *,
    now: datetime,
    uniqueness: Uniqueness,
    probe_limit: ProbeLimit | None = None,
    audited: bool = True,
    reopens_absent: bool = False,
) -> list[Enrolled | FrontdeskError]:
    """Create or update a member per submission, in order (docs/interface.md, Eligible members).

    Returns an outcome for each, or NotFound (the plan is not the account's), or Invalid with every fault, or TooManyTaken. Of a
    refused record nothing is written; that it told of another account's value is counted (`probe_limit`). `audited` False leaves
    the audit trail to the caller: a file is one action, and the history of each row names the file. `reopens_absent` is as in
    ChunkContext. Raises the driver's error, or StateChanged, on a lost race: run it again in a new transaction.
    """
    limit = probe_limit or ProbeLimit(TAKEN_PER_DAY, uniqueness)
    results = decide_chunk(tx, submissions, limit, now=now, reopens_absent=reopens_absent)
    accepted = accepted_of(submissions, results)
    similar = _write(tx, accepted, now=now, audited=audited) if accepted else {}
    return with_warnings(results, similar)


def decide_chunk(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    limit: ProbeLimit,
    *,
    now: datetime,
    reopens_absent: bool,
    overlay: Callable[[list[StoredMember]], list[StoredMember]] | None = None,
) -> list[Enrolled | FrontdeskError]:
    """Decide each record on the stored members, which are locked, and count the probes. Nothing else is written.

    With the `overlay` of a dry run nothing is locked: it gives the stored members as the dry run has left them. Errors as of
    `enrol`.
    """
    members, context, counts = _read_chunk(tx, submissions, limit, now=now, lock=overlay is None)
    if overlay is not None:
        members = overlay(members)
    accounts = {member.values["account_id"] for member in members}
    accounts.update(submission.account_id for submission in submissions)
    probes = ChunkProbes(limit, counts, accounts, now=now)
    state = ChunkState(members, context._replace(reopens_absent=reopens_absent), probes)
    results = [state.decide(submission) for submission in submissions]
    probes.save(tx)
    return results


def _read_chunk(
    tx: SetTransaction, submissions: Sequence[Submission], limit: ProbeLimit, *, now: datetime, lock: bool
) -> tuple[list[StoredMember], ChunkContext, Found]:
    """Every stored record and setting that the chunk needs, and the probes of its clients today, in one round trip."""
    keys = submitted_keys(submissions, limit.uniqueness)
    addresses = {address for of_scope in keys.values() for address in of_scope["email_folded"]}
    accounts = {submission.account_id for submission in submissions}
    digest_key = get_digest_key(tx)
    with one_round_trip(tx):
        found = [store.lock_members(tx, scope, keys[scope], lock=lock) for scope in sorted(keys)]
        owners = find_owners(tx, {submission.plan_id for submission in submissions})
        counts = limit.read(tx, {submission.client for submission in submissions}, now=now)
        invitations = find_invitation_context(tx, account_ids=accounts, addresses=addresses)
    plan_owners = {row["id"]: row["account_id"] for row in owners.rows}
    inactive = {row["id"] for row in owners.rows if not row["accepting_patients"]}
    at, uniqueness = stored_time(now), limit.uniqueness
    context = ChunkContext(plan_owners, inactive, invitations(), uniqueness, at, digest_key)
    by_id = {member.values["id"]: member for member in store.stored_members(found)}
    while merged := {member.values["merged_into"] for member in by_id.values()} - by_id.keys() - {None}:
        kept = store.lock_by_ids(tx, merged, lock=lock)
        by_id |= {member.values["id"]: member for member in kept}
    return [*by_id.values()], context, counts


def submitted_keys(
    submissions: Sequence[Submission], uniqueness: Uniqueness
) -> dict[int, dict[str, set[str]]]:
    """The keys that find the records' members and what holds their unique values, by uniqueness scope and column."""
    keys = keys_by_scope(
        (scope_of(submission.account_id, uniqueness), submission.record.given) for submission in submissions
    )
    for submission in submissions:
        record, context = submission.record, submission.context
        of_scope = keys[scope_of(submission.account_id, uniqueness)]
        if record.external_id is not None and record.external_id != record.given.get("external_id"):
            of_scope["external_id"].add(record.external_id)
        if context is not None and context.former_id:
            of_scope["external_id"].add(context.former_id)
        if context is not None and context.address_of:
            of_scope.setdefault("family_digest", set()).add(context.address_of)
    return keys


def accepted_of(
    submissions: Sequence[Submission], results: Sequence[Enrolled | FrontdeskError]
) -> list[tuple[Submission, Enrolled]]:
    """The records that are to be written."""
    return [
        (submission, result)
        for submission, result in zip(submissions, results, strict=True)
        if isinstance(result, Enrolled) and submission.action is not Action.COMPARE
    ]


def touched_by(
    accepted: Sequence[tuple[Submission, Enrolled]],
) -> tuple[list[StoredMember], list[StoredMember]]:
    """The new members and the changed ones, each once, in an order in which no two chunks wait for each other."""
    touched = {id(result.stored): result.stored for _, result in accepted}.values()
    created = sorted((s for s in touched if s.is_new), key=lambda s: str(s.values["external_id"]))
    updated = sorted((s for s in touched if s.is_changed and not s.is_new), key=lambda s: int(s.values["id"]))
    return created, updated


def _write(
    tx: SetTransaction, accepted: Sequence[tuple[Submission, Enrolled]], *, now: datetime, audited: bool
) -> dict[int, int]:
    """Returns the ids of stored members that look like new ones, by the ids of these."""
    created, updated = touched_by(accepted)
    if created:
        for id_, stored in zip(next_ids(tx, members, len(created)), created, strict=True):
            stored.values["id"] = id_
    with one_round_trip(tx):
        search = SimilarSearch(created, stored_time(now)[:10], tx)
        # Updates first: a new record may take over a key that an updated one gives up.
        update_set(tx, members, [s.values for s in updated], columns=_columns(accepted, len(updated)))
        insert_set(tx, members, [s.values for s in created])
        _write_history(tx, accepted, now=now)
        if audited:
            _write_audit(tx, accepted, now=now)
        _write_invitations(tx, [result for _, result in accepted], now=now)
    moved = [result.stored for _, result in accepted if "plan_id" in result.changes]
    move_invitations(tx, {s.values["id"]: s.values["plan_id"] for s in moved if not s.is_new})
    return search.ids(updated)


def _columns(accepted: Sequence[tuple[Submission, Enrolled]], updated: int) -> tuple[str, ...]:
    """The columns of an update, few: SQLite renews the indexes of every named column, and PostgreSQL reads them all.

    Many records name only what they change. A few name also what others changed before: so there are at most as many
    prepared statements as columns, whatever callers change together (docs/decisions/0071).
    """
    found = {
        name for _, result in accepted if result.outcome is not Outcome.CREATED for name in result.changes
    }
    if "email" in found:
        found.add("email_folded")
    if found & PERSON_FIELDS:
        found.add("person_digest")
    if any(submission.context and submission.context.person for submission, _ in accepted):
        found.add("family_digest")
    if updated < MANY:
        changed_before.update(found)
        found = changed_before
    return tuple(name for name in _UPDATED if name in found or name in _ALWAYS_UPDATED)


def _write_history(
    tx: SetTransaction, accepted: Sequence[tuple[Submission, Enrolled]], *, now: datetime
) -> None:
    entries = (
        (
            result.stored.values["id"],
            result.outcome,
            by.plan_id,
            result.changes,
            by.client,
            by.request_id,
            by.file_id,
        )
        for by, result in accepted
        if result.outcome is not Outcome.UNCHANGED
    )
    store.insert_history(tx, entries, stored_time(now))


def _write_audit(
    tx: SetTransaction, accepted: Sequence[tuple[Submission, Enrolled]], *, now: datetime
) -> None:
    entries = [
        AuditEntry(
            f"eligibility.{result.outcome}",
            by.client,
            by.request_id,
            by.account_id,
            result.stored.values["id"],
        )
        for by, result in accepted
    ]
    audit.record(tx, entries, now=now)


def _write_invitations(tx: SetTransaction, accepted: Sequence[Enrolled], *, now: datetime) -> None:
    invited = [
        NewInvitation(
            account_id=values["account_id"],
            plan_id=values["plan_id"],
            member_id=values["id"],
            delivery=result.invitation,
            address=values["email"],
        )
        for result in accepted
        if isinstance(result.invitation, Delivery) and (values := result.stored.values)
    ]
    enqueue_invitations(tx, invited, now=now)


class Enrolments(GroupCommit[Submission, Enrolled]):
    """Enrols the records of many callers together: concurrent POSTs share one transaction (docs/decisions/0014, 0028).

    `await submit(submission)` returns what became of the record, once it is committed.

    Raises NotFound, Invalid, TooManyTaken, Unavailable.
    """

    def __init__(self, db: Database, config: Config, clock: Clock, deadlines: Deadlines) -> None:
        super().__init__(deadlines=deadlines, lanes=1 if db.is_sqlite else POSTGRESQL_LANES)
        self._db = db
        self._clock = clock
        self._uniqueness = config.uniqueness
        self._pipeline_db = None if db.is_sqlite else PipelineDatabase(config.database_url, db.outage)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="enrol")

    async def commit_group(self, items: Sequence[Submission]) -> Sequence[Enrolled | Exception]:
        if self._pipeline_db is not None:
            return await run_in_event_loop(self._enrol, self._pipeline_db, items)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._enrol, self._db, items)

    def _enrol(
        self, db: Writable[SetTransaction], items: Sequence[Submission]
    ) -> Sequence[Enrolled | Exception]:
        results = write_together(
            db, items, lambda tx, items: enrol(tx, items, now=self._clock(), uniqueness=self._uniqueness)
        )
        if any(isinstance(each, Enrolled) and isinstance(each.invitation, Delivery) for each in results):
            self._db.announce_work()
        return results

    def shorten_waits(self, seconds: float) -> None:
        """The process is to stop: a database that says nothing for so long is given up."""
        if self._pipeline_db is not None:
            self._pipeline_db.shorten_waits(seconds)

    async def close(self) -> None:
        await super().close()
        self._thread.shutdown(wait=False, cancel_futures=True)  # a wait would block the event loop
        if self._pipeline_db is not None:
            self._pipeline_db.close()
