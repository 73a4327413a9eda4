"""Writes members: `enrol` takes a chunk of records and gives their outcomes, in the caller's transaction; `restore` undoes it.

One statement reads every stored record that a key of the chunk touches, plain Python decides each record, and one statement
writes members, history, audit entries and invitations. `db.engine` repeats lost races.

A dry run makes the same decisions and writes them to a scratch database only, so that later chunks see them. A restored member
gets the values of its history; a member that the request created is withdrawn: its row stays, alone in the uniqueness scope -id.

Similar members have the same names and birth date, or the same family and birth date. They are never merged automatically: a
record that creates one gets a warning, and `member duplicates` lists the pairs (docs/members.md).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from frontdesk import audit, events, idempotency
from frontdesk.audit import AuditEntry
from frontdesk.clock import Clock
from frontdesk.config import Config, Uniqueness
from frontdesk.db import Database, Tx, sets
from frontdesk.db.engine import scratch_database
from frontdesk.db.pipeline import GroupWriter
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility import decide, model, persons, store
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import NO_CONTEXT, Enrolled, MemberRecord, Outcome, StoredMember, Submission
from frontdesk.eligibility.tables import members
from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.invitations.enqueue import enqueue_invitations, find_invitation_context, move_invitations
from frontdesk.invitations.model import Delivery, NewInvitation, NotInvitedReason
from frontdesk.invitations.protocol import cancel_of_members
from frontdesk.plans import external_ids_of, find_owners
from frontdesk.text import fold_email, stored_time

MANY = 100  # so many updated records are worth a statement of their own
CHANGED_SINCE = Fault("external_id", "changed_since", "was changed again since; it was left as it is")
EVENT_OF = {
    Outcome.CREATED: AccountEventType.MEMBER_CREATED,
    Outcome.UPDATED: AccountEventType.MEMBER_UPDATED,
    Outcome.MOVED: AccountEventType.MEMBER_MOVED,
    Outcome.ENDED: AccountEventType.MEMBER_ENDED,
    Outcome.REOPENED: AccountEventType.MEMBER_REOPENED,
    Outcome.RESTORED: AccountEventType.MEMBER_UPDATED,
    Outcome.WITHDRAWN: AccountEventType.MEMBER_ENDED,
}
# The columns that small updates of this process have changed so far.
changed_before: set[str] = set()

ACTING = "sandbox-"  # the beginning of each external_id that acts in a sandbox

Result = Enrolled | FrontdeskError
Accepted = tuple[Submission, Enrolled]
_ONCE = attrgetter("once")
Write = Callable[[Sequence[Submission]], Iterable[Result]]


def enrol(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    *,
    now: datetime,
    uniqueness: Uniqueness,
    audited: bool = True,
    reopens_absent: bool = False,
) -> Iterator[Result]:
    """Create or update a member per submission, in order (docs/interface.md, Eligible members).

    Returns an outcome for each, or NotFound (the plan is not the account's), or Invalid with every fault, or TooManyTaken, or
    the refusal by its intent (NotFound, PreconditionFailed, Conflict). A refused record is not written; a probe is counted.
    `audited` False leaves the audit trail to the caller: a file is one action, and the history of each row names the file.
    `reopens_absent` is as in ChunkState. Raises the driver's error, or StateChanged, on a lost race: run it again in a new
    transaction. When the results are read after the commit, the search for similar members travels with it. The accepted records
    of keyed requests have their answers stored; a repeated one is AnsweredBefore or Invalid (`once` of Submission).
    """
    results, feeds = _decide_chunk(tx, submissions, uniqueness, now=now, reopens_absent=reopens_absent)
    if asking := {row["account_id"] for row in feeds.rows}:
        results = [
            each._replace(has_event=True)
            if isinstance(each, Enrolled) and each.outcome in EVENT_OF and by.account_id in asking
            else each
            for by, each in zip(submissions, results, strict=True)
        ]
    pairs = zip(submissions, results, strict=True)
    accepted = [(by, result) for by, result in pairs if isinstance(result, Enrolled)]
    if moved := [made for by, made in accepted if by.file_id is None and "plan_id" in made.changes]:
        names = external_ids_of(tx, {made.left_plan_id or 0 for made in moved})
        results = [
            each._replace(left_plan=names.get(each.left_plan_id or 0)) if isinstance(each, Enrolled) else each
            for each in results
        ]
    similar, updated = _write(tx, accepted, feeds, now=now, audited=audited)
    finished = _warn_of_similar(results, similar, updated, stored_time(now)[:10])
    return _keep_answers(tx, submissions, finished, now) if any(map(_ONCE, submissions)) else finished


def _keep_answers(
    tx: SetTransaction, submissions: Sequence[Submission], results: Iterable[Result], now: datetime
) -> Iterator[Result]:
    """The results; the answers of keyed requests are stored. They have the warnings about similar members, so these are read
    before the commit."""
    finished = [*results]
    pairs = zip(submissions, finished, strict=True)
    accepted = [(by.once, each) for by, each in pairs if by.once is not None and isinstance(each, Enrolled)]
    idempotency.keep_answers(tx, accepted, now=now)
    return iter(finished)


def _decide_chunk(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    uniqueness: Uniqueness,
    *,
    now: datetime,
    reopens_absent: bool,
    scratch: Tx | None = None,
) -> tuple[list[Result], Found]:
    """Read every stored record and setting that the chunk needs in one round trip, decide each record, and count the probes.

    Returns the results, and the accounts that have asked for events. The stored records are locked. With the `scratch` database
    of a dry run nothing is locked, and its records come first. Errors as of `enrol`.
    """
    keys = _submitted_keys(submissions, uniqueness)
    addresses = {address for of_scope in keys.values() for address in of_scope["email_folded"]}
    accounts = {submission.account_id for submission in submissions}
    hasher, lock = sets.keyed_hasher(tx, size=persons.DIGEST_SIZE), scratch is None
    keyed = [*filter(None, map(_ONCE, submissions))]
    with sets.one_round_trip(tx):
        found = [store.lock_members(tx, scope, keys[scope], lock=lock) for scope in sorted(keys)]
        owners = find_owners(tx, {submission.plan_id for submission in submissions})
        counts = store.find_probe_counts(tx, {submission.client for submission in submissions}, uniqueness)
        invitations = find_invitation_context(tx, account_ids=accounts, addresses=addresses)
        feeds = events.find_feeds(tx, accounts)
        answered = idempotency.find_answers(tx, keyed) if keyed else Found()
    by_id = store.stored_members(found)
    while merged := {member.values["merged_into"] for member in by_id.values()} - by_id.keys() - {None}:
        by_id |= store.lock_by_ids(tx, merged, lock=lock)
    if scratch is not None:
        found = [store.lock_members(scratch, scope, of_scope) for scope, of_scope in keys.items()]
        by_id |= store.stored_members(found) | store.lock_by_ids(scratch, by_id, lock=False)
    chunk_keys = decide.ChunkKeys(by_id, counts, uniqueness, now)
    chunk_keys.lead(by_id)
    plans, at = {row["id"]: row for row in owners.rows}, stored_time(now)
    state = decide.ChunkState(chunk_keys, plans, invitations(), at, hasher, reopens_absent)
    for member in by_id.values():
        state.note_family(member)
    if answered.rows:
        earlier = [each.once and idempotency.earlier_answer(answered, each.once) for each in submissions]
        results = [known or state.decide(each) for known, each in zip(earlier, submissions, strict=True)]
    else:
        results = [state.decide(submission) for submission in submissions]
    chunk_keys.save(tx)
    return results, feeds


def _submitted_keys(submissions: Sequence[Submission], uniqueness: Uniqueness) -> decide.KeysByScope:
    """The keys of the records' members and of other members with their unique values, by uniqueness scope and column."""
    scopes = [decide.scope_of(submission.account_id, uniqueness) for submission in submissions]
    givens = (submission.record.given for submission in submissions)
    keys = decide.keys_by_scope(zip(scopes, givens, strict=True))
    for scope, submission in zip(scopes, submissions, strict=True):
        record, context = submission.record, submission.context
        if context is NO_CONTEXT and record.given.get("external_id") == record.external_id:
            continue
        of_scope = keys[scope]
        of_scope["external_id"].update(filter(None, (record.external_id, context.former_id)))
        if context.address_of:
            of_scope.setdefault("family_digest", set()).add(context.address_of)
    return keys


def _touched(stored: Iterable[StoredMember]) -> tuple[list[StoredMember], list[StoredMember]]:
    """The new and the changed members, each once, in an order in which chunks never wait for each other's new keys; withdrawn
    members release theirs first."""
    touched = {id(member): member for member in stored}.values()
    created = sorted((s for s in touched if s.is_new), key=lambda s: str(s.values["external_id"]))
    updated = [s for s in touched if s.changed and not s.is_new]
    updated.sort(key=lambda s: (s.values["uniqueness_scope"] >= 0, s.values["id"]))
    return created, updated


class _Similar(NamedTuple):
    """The search for members that are similar to new ones, by their digests."""

    reads: list[Found]
    among_new: bool


def _write(
    tx: SetTransaction, accepted: Sequence[Accepted], feeds: Found, *, now: datetime, audited: bool
) -> tuple[_Similar, list[StoredMember]]:
    """Returns the search for members that are similar to new ones, and the stored members that were changed."""
    created, updated = _touched(result.stored for _, result in accepted)
    if created:
        for id_, stored in zip(sets.next_ids(tx, members, len(created)), created, strict=True):
            stored.values["id"] = id_
    at, written = stored_time(now), [(by, made, made.stored.values) for by, made in accepted]
    with sets.one_round_trip(tx):
        similar = _find_similar(created, at[:10], tx)
        # Updates first: a new record may take a key that an updated record releases.
        sets.update_set(tx, members, [s.values for s in updated], columns=_columns(updated))
        sets.insert_set(tx, members, [s.values for s in created])
        entries = (
            (values["id"], str(made.outcome), by.plan_id, made.changes, by.client, by.request_id, by.file_id)
            for by, made, values in written
            if made.outcome is not Outcome.UNCHANGED
        )
        store.insert_history(tx, entries, at)
        events.record(tx, feeds, _events(accepted), now=now)
        if audited:
            trail = [
                AuditEntry(
                    f"eligibility.{made.outcome}", by.client, by.request_id, by.account_id, values["id"]
                )
                for by, made, values in written
            ]
            audit.record(tx, trail, now=now)
        invited = [
            NewInvitation(by.account_id, values["plan_id"], values["id"], made.invitation, values["email"])
            for by, made, values in written
            if isinstance(made.invitation, Delivery)
        ]
        enqueue_invitations(tx, invited, now=now)
    moved = {values["id"]: values["plan_id"] for _, made, values in written if "plan_id" in made.changes}
    move_invitations(tx, moved)
    return similar, updated


def _events(accepted: Iterable[Accepted]) -> Iterator[NewEvent]:
    """The events of the changes, with ids and names of fields only."""
    for by, result in accepted:
        if (type_ := EVENT_OF.get(result.outcome)) is None:
            continue
        data: dict[str, Any] = {"eligibility_id": result.stored.values["id"], "plan_id": by.plan_id}
        if type_ is AccountEventType.MEMBER_MOVED:
            data["from_plan_id"] = result.left_plan_id
        data["fields"] = [name for name in result.changes if name in FIELDS]
        data["file_id"] = by.file_id
        yield NewEvent(by.account_id, type_, data, by.request_id)


def _columns(updated: Sequence[StoredMember]) -> list[str]:
    """The columns of an update, few: SQLite renews the indexes of every named column, and PostgreSQL reads them all.

    Large sets name only their changed columns. Small sets also name those of earlier updates, so there are at most as many
    prepared statements as columns (docs/decisions/0013).
    """
    found = set[str]().union(*(member.changed for member in updated))
    if len(updated) < MANY:
        changed_before.update(found - {"uniqueness_scope"})  # of undos only, and in three indexes
        found |= changed_before
    return sorted(found)


@dataclass(slots=True)
class DryRun:
    """Members as they would be after the chunks so far. Of each: `begin_chunk`, `enrol`, commit its outcomes, `keep_chunk`: until
    then a lost race or a dead connection may run it again."""

    _scratch: Tx
    _uniqueness: Uniqueness
    _next_id: int = model.FIRST_DRY_RUN_ID

    def begin_chunk(self) -> None:
        """Begin the next chunk, or repeat the last: state that was not kept is dropped."""
        self._scratch.rollback()

    def keep_chunk(self) -> None:
        self._scratch.commit()

    def enrol(
        self, tx: Tx, submissions: Sequence[Submission], *, now: datetime, reopens_absent: bool
    ) -> list[Result]:
        """The answers that `enrol` would give. Reads through `tx` and locks nothing there; only probes are counted."""
        scratch = self._scratch
        results, _ = _decide_chunk(
            tx, submissions, self._uniqueness, now=now, reopens_absent=reopens_absent, scratch=scratch
        )
        created, updated = _touched(each.stored for each in results if isinstance(each, Enrolled))
        with scratch.begin_nested():
            for member in created:
                member.values["id"] = self._next_id
                self._next_id += 1
            today = stored_time(now)[:10]
            similar = _find_similar(created, today, tx, scratch)
            ids = {row["id"] for read in similar.reads for row in read.rows} - {None}
            earlier = store.lock_by_ids(scratch, ids, lock=False)
            results = [*_warn_of_similar(results, similar, [*earlier.values(), *updated], today)]
            for member in updated:
                member.values.setdefault("created_at", member.values["updated_at"])
            changed = [member.values for member in (*created, *updated)]
            sets.delete_set(scratch, members, [{"id": values["id"]} for values in changed])
            sets.insert_set(scratch, members, changed)
        return results


@contextmanager
def dry_run(uniqueness: Uniqueness) -> Iterator[DryRun]:
    """A dry run with a scratch database of its own."""
    with scratch_database([members]) as db, db.engine.connect() as scratch:
        yield DryRun(scratch, uniqueness)


class UndoRequest(NamedTuple):
    """The file to undo (`undone_file_id`), and the undo, which is a file too: its id, client, request and time. Both ids are
    None when a merge is undone."""

    undone_file_id: int | None
    file_id: int | None
    client: str
    request_id: str
    now: datetime
    uniqueness: Uniqueness


def restore(tx: Tx, member_ids: Sequence[int], undo: UndoRequest) -> list[Result]:
    """Undo the request for each member, in order. Raises the driver's error, or StateChanged, on a lost race, like `enrol`.

    The result is an error if a member stays as it is: its newest history entry is another request's, another member has its old
    keys, or it is erased. An old key that another account now uses is a probe.
    """
    counts = store.find_probe_counts(tx, [undo.client], undo.uniqueness)
    stored, hasher = store.lock_by_ids(tx, member_ids), sets.keyed_hasher(tx, size=persons.DIGEST_SIZE)
    histories = store.find_histories(tx, set(member_ids))
    undone = {id_: _undone(stored[id_], history, undo, hasher) for id_, history in histories.items()}
    wanted = decide.keys_by_scope(
        (decide.scope_of(before.account_id, undo.uniqueness), result.stored.values | before.record.given)
        for before, result in filter(None, undone.values())
        if result.outcome is not Outcome.WITHDRAWN
    )
    found = [store.lock_members(tx, scope, wanted[scope]) for scope in sorted(wanted)]
    keys = decide.ChunkKeys(store.stored_members(found) | stored, counts, undo.uniqueness, undo.now)
    pairs = [undone[id_] for id_ in member_ids]
    results = [Invalid([CHANGED_SINCE]) if pair is None else _restore(*pair, keys) for pair in pairs]
    keys.save(tx)
    restored = [pair for pair, result in zip(pairs, results, strict=True) if pair and pair[1] is result]
    feeds = events.find_feeds(tx, {by.account_id for by, _ in restored})
    _write(tx, restored, feeds, now=undo.now, audited=False)
    withdrawn = [each.stored.values["id"] for _, each in restored if each.outcome is Outcome.WITHDRAWN]
    cancel_of_members(tx, withdrawn, now=undo.now)
    return results


def _undone(
    member: StoredMember, history: Sequence[model.HistoryEntry], undo: UndoRequest, hasher: blake2b
) -> Accepted | None:
    """The values before the request, as a submission, and their result; None if another change is newer."""
    if not history or history[0].file_id != undo.undone_file_id or not member.values["external_id"]:
        return None
    newest, values, outcome = history[0], member.values, Outcome.RESTORED
    before: dict[str, Any] = {"row_digest": None, "updated_at": stored_time(undo.now)}
    changes = {}
    came_back = newest.outcome is Outcome.RESTORED and history[1].outcome is Outcome.WITHDRAWN
    if newest.outcome is Outcome.CREATED or came_back:
        outcome, before["uniqueness_scope"] = Outcome.WITHDRAWN, -int(values["id"])
    elif newest.outcome is Outcome.WITHDRAWN:
        before["uniqueness_scope"] = decide.scope_of(values["account_id"], undo.uniqueness)
    else:
        changes = {name: [new, old] for name, (old, new) in newest.changes.items()}
        before |= {name: old for name, (old, _) in newest.changes.items()}
        if "email" in changes:
            before["email_folded"] = None if before["email"] is None else fold_email(before["email"])
        before["person_digest"] = persons.person_digest(hasher, values | before)
    record = MemberRecord(values["external_id"], before, False, (), (), ())
    place = (values["account_id"], before.get("plan_id", values["plan_id"]))
    by = Submission(*place, record, undo.client, undo.request_id, file_id=undo.file_id)
    return by, Enrolled(outcome, member, (), changes, (), NotInvitedReason.NOT_NEW)


def _restore(before: Submission, result: Enrolled, keys: decide.ChunkKeys) -> Result:
    """Give the member its earlier values. An error if another member now has one of its keys, or the client is at its limit."""
    member, given = result.stored, before.record.given
    if result.outcome is not Outcome.WITHDRAWN:
        is_there = member.values["uniqueness_scope"] >= 0
        if keys.is_unheard(before.client, given, member if is_there else None):
            return decide.TooManyTaken(keys.now)
        taken = keys.taken(member.values | given, before.account_id, member)
        if keys.has_told:
            keys.count_probe(before)
        if taken:
            return Invalid([decide.not_unique(taken[0])])
    keys.change(member, given)
    return result


def _find_similar(created: Sequence[StoredMember], today: str, *txs: SetTransaction) -> _Similar:
    """Search the stored open members that are similar to new members: set reads, in the round trip that writes the new members.

    A dry run searches its scratch database too.
    """
    reads, among_new = [], False
    for column in store.DIGESTS:
        keys = [_key_of(member.values, column) for member in created if member.values[column]]
        if keys:
            different = sorted(set(keys))
            among_new |= len(different) < len(keys)
            reads += [store.find_similar(tx, column, different, today) for tx in txs]
    return _Similar(reads, among_new)


def _warn_of_similar(
    results: list[Result], similar: _Similar, changed: Iterable[StoredMember], today: str
) -> Iterator[Result]:
    """The results, those of new members with a warning that names the similar member. The chunk or dry run has `changed` stored
    members since the search."""
    now = {member.values["id"]: member.values for member in changed}
    people: dict[str, int] = {}
    for row in (row for read in similar.reads for row in read.rows if row["id"] is not None):
        values = now.get(row["id"])
        if values is None or (store.is_open(values, today) and row["key"] in _keys_of(values)):
            people.setdefault(row["key"], row["id"])
    if not people and not similar.among_new:
        yield from results
        return
    for result in results:
        yield _warned(result, people, today)


def find_look_alikes(tx: Tx, people: Sequence[Mapping[str, Any]], today: str) -> list[int | None]:
    """For each person, by names, birth date and account, a similar stored member that is open today."""
    hasher = sets.keyed_hasher(tx, size=persons.DIGEST_SIZE)
    digests = [persons.person_digest(hasher, person) for person in people]
    keys = [digest and f"{digest} {person['dob']}" for digest, person in zip(digests, people, strict=True)]
    found = store.find_similar(tx, "person_digest", sorted({*filter(None, keys)}), today)
    ids = {row["key"]: row["id"] for row in found.rows}
    return [ids.get(key or "") for key in keys]


def _warned(result: Result, people: dict[str, int], today: str) -> Result:
    """The result of a new member, with a warning if one of `people` is similar; the member is added to them."""
    if not isinstance(result, Enrolled) or result.outcome is not Outcome.CREATED:
        return result
    values, keys = result.stored.values, _keys_of(result.stored.values)
    found = next((people[key] for key in keys if key in people), None)
    if store.is_open(values, today):
        for key in keys:
            people.setdefault(key, values["id"])
    if found is None:
        return result
    is_stored = found < model.FIRST_DRY_RUN_ID
    said = f"looks like member {found}" if is_stored else "looks like another new member of the file"
    return result._replace(warnings=(*result.warnings, f"{model.SIMILAR_MEMBER}{model.WARNING_MARK}{said}"))


def _key_of(values: Mapping[str, Any], column: str) -> str:
    """A digest and the birth date, as `store.find_similar` takes them."""
    return f"{values[column]} {values['dob']}"


def _keys_of(values: Mapping[str, Any]) -> list[str]:
    return [_key_of(values, column) for column in store.DIGESTS if values[column]]


class Enrolments(GroupWriter[Submission, Enrolled]):
    """Enrols the records of many callers together: concurrent POSTs share one transaction (docs/decisions/0013, 0028).

    `await submit(submission)` returns the record's result after the commit.

    Raises NotFound, Invalid, TooManyTaken, PreconditionFailed, Conflict, Unavailable. A sandbox sets `act`: it gets each chunk
    with a record that acts by its external_id, and the function that writes records.
    """

    def __init__(self, db: Database, config: Config, clock: Clock, deadlines: Deadlines) -> None:
        super().__init__(db, deadlines)
        self._clock, self._uniqueness = clock, config.uniqueness
        self.act: Callable[[Sequence[Submission], Write], Iterable[Result]] | None = None

    def work(self, tx: SetTransaction, items: Sequence[Submission]) -> Iterable[Result]:
        write = partial(enrol, tx, now=self._clock(), uniqueness=self._uniqueness)
        if self.act and any((item.record.external_id or "").startswith(ACTING) for item in items):
            return self.act(items, write)
        return write(items)

    async def commit_group(self, items: Sequence[Submission]) -> Sequence[Enrolled | Exception]:
        results = await super().commit_group(items)
        accepted = [each for each in results if isinstance(each, Enrolled)]
        if any(each.has_event or isinstance(each.invitation, Delivery) for each in accepted):
            self.db.announce_work()
        return results
