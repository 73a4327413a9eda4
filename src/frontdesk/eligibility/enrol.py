"""Writes members: `enrol` takes a chunk of records and gives their outcomes, in the caller's transaction; `restore` undoes it.

One statement reads every stored record that a key of the chunk touches, plain Python decides each record, and one statement
writes members, history, audit entries and invitations. `db.races` settles what transactions do to each other.

A dry run makes the same decisions and writes them to a scratch database only, so that later chunks see them. A restored member
has the values of its history; one that the request created is withdrawn: its row stays, alone in the uniqueness scope -id.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.clock import Clock, stored_time
from frontdesk.config import Config, Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import scratch_database
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.db.races import GroupCommit, Writable, write_together
from frontdesk.db.sets import SetTransaction, delete_set, insert_set, next_ids, one_round_trip, update_set
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility import decide, persons, store
from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.eligibility.model import (
    FIRST_DRY_RUN_ID,
    Action,
    Enrolled,
    HistoryEntry,
    Outcome,
    RestoredMember,
    StoredMember,
    Submission,
    UndoRequest,
)
from frontdesk.eligibility.tables import members
from frontdesk.errors import Fault, FrontdeskError
from frontdesk.invitations.delivery import cancel_of_members
from frontdesk.invitations.enqueue import enqueue_invitations, find_invitation_context, move_invitations
from frontdesk.invitations.model import Delivery, NewInvitation
from frontdesk.plans import find_owners
from frontdesk.text import fold_email

POSTGRESQL_LANES = 2  # SQLite has one writer, so a second lane would only wait
MANY = 100  # so many updated records are worth a statement of their own
_UPDATED = ("plan_id", *STORED_COLUMNS, "row_digest", "family_digest", "person_digest", "updated_at")
_ALWAYS_UPDATED = {"row_digest", "updated_at"}
CHANGED_SINCE = Fault("external_id", "changed_since", "was changed again since; it was left as it is")
# The other columns that updates of this process have changed so far.
changed_before: set[str] = set()

Accepted = Sequence[tuple[Submission, Enrolled]]


def enrol(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    *,
    now: datetime,
    uniqueness: Uniqueness,
    audited: bool = True,
    reopens_absent: bool = False,
) -> list[Enrolled | FrontdeskError]:
    """Create or update a member per submission, in order (docs/interface.md, Eligible members).

    Returns an outcome for each, or NotFound (the plan is not the account's), or Invalid with every fault, or TooManyTaken. Of a
    refused record nothing is written; that it told of another account's value is counted. `audited` False leaves
    the audit trail to the caller: a file is one action, and the history of each row names the file. `reopens_absent` is as in
    ChunkContext. Raises the driver's error, or StateChanged, on a lost race: run it again in a new transaction.
    """
    results = _decide_chunk(tx, submissions, uniqueness, now=now, reopens_absent=reopens_absent)
    accepted = _accepted(submissions, results)
    if not accepted:
        return results
    search, updated = _write(tx, accepted, now=now, audited=audited)
    return search.warn(results, updated)


def _decide_chunk(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    uniqueness: Uniqueness,
    *,
    now: datetime,
    reopens_absent: bool,
    scratch: Tx | None = None,
) -> list[Enrolled | FrontdeskError]:
    """Read every stored record and setting that the chunk needs in one round trip, decide each record, and count the probes.

    The stored records are locked. With the `scratch` database of a dry run nothing is locked, and its records come first. Errors
    as of `enrol`.
    """
    keys = _submitted_keys(submissions, uniqueness)
    addresses = {address for of_scope in keys.values() for address in of_scope["email_folded"]}
    accounts = {submission.account_id for submission in submissions}
    digest_key, lock = persons.get_digest_key(tx), scratch is None
    with one_round_trip(tx):
        found = [store.lock_members(tx, scope, keys[scope], lock=lock) for scope in sorted(keys)]
        owners = find_owners(tx, {submission.plan_id for submission in submissions})
        clients = {submission.client for submission in submissions}
        counts = decide.read_probe_counts(tx, clients, uniqueness, now)
        invitations = find_invitation_context(tx, account_ids=accounts, addresses=addresses)
    by_id = store.stored_members(found)
    while merged := {member.values["merged_into"] for member in by_id.values()} - by_id.keys() - {None}:
        by_id |= store.lock_by_ids(tx, merged, lock=lock)
    if scratch is not None:
        found = [store.lock_members(scratch, scope, of_scope) for scope, of_scope in keys.items()]
        found.append(store.find_by_ids(scratch, by_id))
        by_id |= store.stored_members(found)
    chunk_keys = decide.ChunkKeys(by_id, counts, accounts, now=now)
    chunk_keys.lead(by_id)
    state = decide.ChunkState(
        chunk_keys,
        {row["id"]: row["account_id"] for row in owners.rows},
        {row["id"] for row in owners.rows if not row["accepting_patients"]},
        invitations(),
        uniqueness,
        stored_time(now),
        digest_key,
        reopens_absent,
    )
    for member in by_id.values():
        state.note_family(member)
    results = [state.decide(submission) for submission in submissions]
    chunk_keys.save(tx)
    return results


def _submitted_keys(
    submissions: Sequence[Submission], uniqueness: Uniqueness
) -> dict[int, dict[str, set[str]]]:
    """The keys that find the records' members and what holds their unique values, by uniqueness scope and column."""
    keys = decide.keys_by_scope(
        (decide.scope_of(submission.account_id, uniqueness), submission.record.given)
        for submission in submissions
    )
    for submission in submissions:
        of_scope, context = keys[decide.scope_of(submission.account_id, uniqueness)], submission.context
        if submission.record.external_id is not None:
            of_scope["external_id"].add(submission.record.external_id)
        if context is not None and context.former_id:
            of_scope["external_id"].add(context.former_id)
        if context is not None and context.address_of:
            of_scope.setdefault("family_digest", set()).add(context.address_of)
    return keys


def _accepted(submissions: Sequence[Submission], results: Sequence[Enrolled | FrontdeskError]) -> Accepted:
    """The records that are to be written."""
    return [
        (submission, result)
        for submission, result in zip(submissions, results, strict=True)
        if isinstance(result, Enrolled) and submission.action is not Action.COMPARE
    ]


def _touched(accepted: Accepted) -> tuple[list[StoredMember], list[StoredMember]]:
    """The new members and the changed ones, each once, in an order in which no two chunks wait for each other."""
    touched = {id(result.stored): result.stored for _, result in accepted}.values()
    created = sorted((s for s in touched if s.is_new), key=lambda s: str(s.values["external_id"]))
    updated = sorted((s for s in touched if s.is_changed and not s.is_new), key=lambda s: int(s.values["id"]))
    return created, updated


def _write(
    tx: SetTransaction, accepted: Accepted, *, now: datetime, audited: bool
) -> tuple[persons.SimilarSearch, list[StoredMember]]:
    """Returns the search for members that look like new ones, and the stored members that were changed."""
    created, updated = _touched(accepted)
    if created:
        for id_, stored in zip(next_ids(tx, members, len(created)), created, strict=True):
            stored.values["id"] = id_
    at, written = stored_time(now), [(by, result, result.stored.values) for by, result in accepted]
    with one_round_trip(tx):
        search = persons.SimilarSearch(created, at[:10], tx)
        # Updates first: a new record may take over a key that an updated one gives up.
        update_set(tx, members, [s.values for s in updated], columns=_columns(accepted, len(updated)))
        insert_set(tx, members, [s.values for s in created])
        entries = (
            (values["id"], result.outcome, by.plan_id, result.changes, by.client, by.request_id, by.file_id)
            for by, result, values in written
            if result.outcome is not Outcome.UNCHANGED
        )
        store.insert_history(tx, entries, at)
        if audited:
            trail = [
                AuditEntry(
                    f"eligibility.{result.outcome}", by.client, by.request_id, by.account_id, values["id"]
                )
                for by, result, values in written
            ]
            audit.record(tx, trail, now=now)
        invited = [
            NewInvitation(by.account_id, values["plan_id"], values["id"], result.invitation, values["email"])
            for by, result, values in written
            if isinstance(result.invitation, Delivery)
        ]
        enqueue_invitations(tx, invited, now=now)
    moved = (result.stored for _, result in accepted if "plan_id" in result.changes)
    move_invitations(tx, {each.values["id"]: each.values["plan_id"] for each in moved if not each.is_new})
    return search, updated


def _columns(accepted: Accepted, updated: int) -> tuple[str, ...]:
    """The columns of an update, few: SQLite renews the indexes of every named column, and PostgreSQL reads them all.

    Many records name only what they change. A few name also what others changed before: so there are at most as many
    prepared statements as columns, whatever callers change together (docs/decisions/0013).
    """
    found = {
        name for _, result in accepted if result.outcome is not Outcome.CREATED for name in result.changes
    }
    if "email" in found:
        found.add("email_folded")
    if found & persons.PERSON_FIELDS:
        found.add("person_digest")
    if any(submission.context and submission.context.person for submission, _ in accepted):
        found.add("family_digest")
    if updated < MANY:
        changed_before.update(found)
        found = changed_before
    return tuple(name for name in _UPDATED if name in found or name in _ALWAYS_UPDATED)


@dataclass(slots=True)
class DryRun:
    """Members as they would be after the chunks so far. Of each: `begin_chunk`, `enrol`, commit its outcomes, `keep_chunk`: until
    then a lost race or a dead connection may run it again."""

    _scratch: Tx
    _uniqueness: Uniqueness
    _next_id: int = FIRST_DRY_RUN_ID

    def begin_chunk(self) -> None:
        """Begin the next chunk, or the last one again: what was not kept is forgotten."""
        self._scratch.rollback()

    def keep_chunk(self) -> None:
        self._scratch.commit()

    def enrol(
        self, tx: Tx, submissions: Sequence[Submission], *, now: datetime, reopens_absent: bool
    ) -> list[Enrolled | FrontdeskError]:
        """The answers that `enrol` would give. Reads through `tx` and locks nothing there; only probes are counted."""
        scratch = self._scratch
        results = _decide_chunk(
            tx, submissions, self._uniqueness, now=now, reopens_absent=reopens_absent, scratch=scratch
        )
        created, updated = _touched(_accepted(submissions, results))
        with scratch.begin_nested():
            for member in created:
                member.values["id"] = self._next_id
                self._next_id += 1
            search = persons.SimilarSearch(created, stored_time(now)[:10], tx, scratch)
            earlier = store.find_by_ids(scratch, [row["id"] for row in search.found])
            results = search.warn(results, [*store.stored_members([earlier]).values(), *updated])
            for member in updated:
                member.values.setdefault("created_at", member.values["updated_at"])
            changed = [member.values for member in (*created, *updated)]
            delete_set(scratch, members, [{"id": values["id"]} for values in changed])
            insert_set(scratch, members, changed)
        return results


@contextmanager
def dry_run(uniqueness: Uniqueness) -> Iterator[DryRun]:
    """A dry run with a scratch database of its own."""
    with scratch_database([members]) as db, db.engine.connect() as scratch:
        yield DryRun(scratch, uniqueness)


@dataclass(slots=True)
class _Undone:
    """A member's values before the request, and the history entry that says so."""

    values: dict[str, Any]
    outcome: Outcome
    changes: dict[str, list[Any]]


def restore(tx: Tx, member_ids: Sequence[int], undo: UndoRequest) -> list[RestoredMember]:
    """Take the request back for each member, in order. Raises the driver's error, or StateChanged, on a lost race, like `enrol`.

    A member stays as it is where its newest history is another request's, where another member has its old keys, or where it
    is erased. An old key that another account has now counts like one that a record brings.
    """
    counts = decide.read_probe_counts(tx, [undo.client], undo.uniqueness, undo.now)
    stored = store.lock_by_ids(tx, member_ids)
    histories, key = store.find_histories(tx, set(member_ids)), persons.get_digest_key(tx)
    undone = {id_: _undo(stored[id_], history, undo, key) for id_, history in histories.items()}
    wanted = decide.keys_by_scope(
        (item.values["uniqueness_scope"], item.values) for item in undone.values() if item is not None
    )
    found = [store.lock_members(tx, scope, wanted[scope]) for scope in sorted(wanted) if scope >= 0]
    touched = store.stored_members(found) | stored
    keys = decide.ChunkKeys(touched, counts, now=undo.now)
    results, accepted = [], []
    for id_ in member_ids:
        member, item = stored[id_], undone.get(id_)
        fault = CHANGED_SINCE if item is None else _fault_of(member, item, undo, keys)
        if item is None or fault is not None:
            results.append(RestoredMember(member.values["external_id"], None, fault))
            continue
        keys.release(member)
        member.values = item.values
        keys.hold(member)
        accepted.append(item)
        results.append(RestoredMember(member.values["external_id"], item.outcome))
    keys.save(tx)
    _write_undone(tx, accepted, undo)
    return results


def _undo(
    member: StoredMember, history: Sequence[HistoryEntry], undo: UndoRequest, key: bytes
) -> _Undone | None:
    """The member before the request; None when the newest change is not the request's."""
    if not history or history[0].file_id != undo.undone_file_id or not member.values["external_id"]:
        return None
    newest = history[0]
    values = member.values | {"row_digest": None, "updated_at": stored_time(undo.now)}
    came_back = newest.outcome is Outcome.RESTORED and history[1].outcome is Outcome.WITHDRAWN
    if newest.outcome is Outcome.CREATED or came_back:
        values["uniqueness_scope"] = -int(values["id"])
        return _Undone(values, Outcome.WITHDRAWN, {})
    if newest.outcome is Outcome.WITHDRAWN:
        values["uniqueness_scope"] = decide.scope_of(values["account_id"], undo.uniqueness)
        return _Undone(values, Outcome.RESTORED, {})
    changes = {name: [after, before] for name, (before, after) in newest.changes.items()}
    values.update((name, before) for name, (_, before) in changes.items())
    if "email" in changes:
        values["email_folded"] = None if values["email"] is None else fold_email(values["email"])
    values["person_digest"] = persons.person_digest(key, values)
    return _Undone(values, Outcome.RESTORED, changes)


def _fault_of(member: StoredMember, item: _Undone, undo: UndoRequest, keys: decide.ChunkKeys) -> Fault | None:
    """A fault when another member carries one of the member's old keys now, or when the client is at its limit of probes."""
    values, scope = member.values, item.values["uniqueness_scope"]
    if item.outcome is not Outcome.WITHDRAWN:
        brought = decide.new_keys(item.values, values if values["uniqueness_scope"] >= 0 else {})
        by = (undo.client, undo.request_id, values["account_id"], undo.file_id)
        if unheard := keys.probe(brought, scope, AuditEntry("uniqueness.probed", *by)):
            return unheard.faults[0]
    taken = keys.taken(item.values, scope, member)
    return decide.not_unique(taken[0]) if taken else None


def _write_undone(tx: Tx, accepted: Sequence[_Undone], undo: UndoRequest) -> None:
    """Withdraw first: a restored member may take over a key that a withdrawn one gives up."""
    withdrawn = [item for item in accepted if item.outcome is Outcome.WITHDRAWN]
    for items in (withdrawn, [item for item in accepted if item.outcome is not Outcome.WITHDRAWN]):
        rows = [item.values for item in items]
        columns = [name for row in rows[:1] for name in row if name != "account_id"]
        update_set(tx, members, rows, columns=columns)
    by = (undo.client, undo.request_id, undo.file_id)
    entries = (
        (each.values["id"], each.outcome, each.values["plan_id"], each.changes, *by) for each in accepted
    )
    store.insert_history(tx, entries, stored_time(undo.now))
    moved = [each.values for each in accepted if "plan_id" in each.changes]
    move_invitations(tx, {values["id"]: values["plan_id"] for values in moved})
    cancel_of_members(tx, [item.values["id"] for item in withdrawn], now=undo.now)


class Enrolments(GroupCommit[Submission, Enrolled]):
    """Enrols the records of many callers together: concurrent POSTs share one transaction (docs/decisions/0013, 0028).

    `await submit(submission)` returns what became of the record, once it is committed.

    Raises NotFound, Invalid, TooManyTaken, Unavailable.
    """

    def __init__(self, db: Database, config: Config, clock: Clock, deadlines: Deadlines) -> None:
        super().__init__(deadlines=deadlines, lanes=1 if db.is_sqlite else POSTGRESQL_LANES)
        self._db = db
        self._clock = clock
        self._enrol = partial(enrol, uniqueness=config.uniqueness)
        self._pipeline_db = None if db.is_sqlite else PipelineDatabase(config.database_url, db.outage)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="enrol")

    async def commit_group(self, items: Sequence[Submission]) -> Sequence[Enrolled | Exception]:
        if self._pipeline_db is not None:
            return await run_in_event_loop(self._commit, self._pipeline_db, items)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, self._db, items)

    def _commit(
        self, db: Writable[SetTransaction], items: Sequence[Submission]
    ) -> Sequence[Enrolled | Exception]:
        results = write_together(db, items, lambda tx, items: self._enrol(tx, items, now=self._clock()))
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
