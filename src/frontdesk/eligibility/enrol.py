"""Writes members: `enrol` takes a chunk of records and gives their outcomes, in the caller's
transaction.

It makes three steps. `read_chunk` reads every stored record that a key of the chunk touches, in one
round trip; `decide.decide_chunk` decides each record in plain Python; `write_chunk` writes members,
history, audit entries and invitations in one round trip. `db.engine` repeats lost races.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from frontdesk import audit, events, idempotency, usage
from frontdesk.audit import AuditEntry
from frontdesk.clock import account_day
from frontdesk.config import Uniqueness
from frontdesk.db import sets
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import persons, store
from frontdesk.eligibility.decide import DecidedChunk, Result, StoredChunk, decide_chunk
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.fitting import add_fitting
from frontdesk.eligibility.late_rows import find_changed_since
from frontdesk.eligibility.model import Enrolled, Outcome, StoredMember, Submission
from frontdesk.eligibility.row_access import FileTerms
from frontdesk.eligibility.similar import SimilarSearch
from frontdesk.eligibility.tables import members
from frontdesk.eligibility.unique_keys import submitted_keys
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.idempotency import EarlierAnswers
from frontdesk.invitations.enqueue import (
    enqueue_invitations,
    find_invitation_context,
    move_invitations,
)
from frontdesk.invitations.model import Delivery, NewInvitation, NotInvitedReason, QueuedReason
from frontdesk.invitations.places import find_places
from frontdesk.plans import external_ids_of, find_owners
from frontdesk.text import stored_time

# Beside the values: the other columns, the row itself, and its entries in indexes.
HISTORY_ENTRY_BYTES = 200
EVENT_OF = {
    Outcome.CREATED: AccountEventType.MEMBER_CREATED,
    Outcome.UPDATED: AccountEventType.MEMBER_UPDATED,
    Outcome.MOVED: AccountEventType.MEMBER_MOVED,
    Outcome.ENDED: AccountEventType.MEMBER_ENDED,
    Outcome.REOPENED: AccountEventType.MEMBER_REOPENED,
    Outcome.RESTORED: AccountEventType.MEMBER_UPDATED,
    Outcome.WITHDRAWN: AccountEventType.MEMBER_WITHDRAWN,
}
# It changes with an undo only, and is part of three indexes.
SELDOM_CHANGED = frozenset({"uniqueness_scope"})

Accepted = tuple[Submission, Enrolled]


def enrol(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    *,
    now: datetime,
    uniqueness: Uniqueness,
    audited: bool = True,
    file: FileTerms | None = None,
) -> Iterator[Result]:
    """Create or update a member per submission, in order (docs/interface.md, Eligible members).

    Returns an outcome for each, or NotFound (the plan is not the account's), or Invalid with every
    fault, or TooManyTaken, or the refusal by its intent (NotFound, PreconditionFailed, Conflict). A
    refused record is not written; a probe is counted. `audited` False leaves the audit trail to the
    caller: a file is one action, and the history of each row names the file. `file` has the terms of
    the file whose rows these are. When the results are read after the commit, the search for similar
    members travels with it. The accepted records of keyed requests have their answers stored; a repeated
    one is AnsweredBefore or Invalid (`once` of Submission).

    Raises the driver's error, or StateChanged, on a lost race: run it again in a new transaction.
    """
    stored = read_chunk(tx, submissions, now=now, uniqueness=uniqueness, file=file)
    if file is not None:
        add_fitting(stored.members, submissions, tx)
    decided = decide_chunk(stored, submissions, file)
    return write_chunk(tx, stored, decided, audited=audited)


def read_chunk(
    tx: SetTransaction,
    submissions: Sequence[Submission],
    *,
    now: datetime,
    uniqueness: Uniqueness,
    lock: bool = True,
    file: FileTerms | None = None,
) -> StoredChunk:
    """Read every stored record and setting that the chunk needs, in one round trip. The stored
    records are locked, unless it is a dry run that reads them (`lock` False). `file` is as in
    `enrol`.
    """
    keys = submitted_keys(submissions, uniqueness)
    addresses = {address for of_scope in keys.values() for address in of_scope["email_folded"]}
    accounts = {submission.account_id for submission in submissions}
    inviting = {each.account_id for each in submissions if each.record.invite_immediately}
    keyed = [each.once for each in submissions if each.once is not None]
    with sets.one_round_trip(tx):
        found = store.lock_by_keys(tx, keys, lock=lock)
        probe_counts = store.find_probe_counts(tx, accounts, uniqueness)
        owners = find_owners(tx, plans_named(submissions))
        invitations = find_invitation_context(tx, account_ids=accounts, addresses=addresses)
        places = find_places(tx, inviting, now=now, reserve=lock)
        feeds = events.find_feeds(tx, accounts)
        answered = idempotency.find_answers(tx, keyed) if keyed else None
    by_id = store.with_merged(tx, store.stored_members(found), lock=lock)
    return StoredChunk(
        by_id,
        plans=with_owners(tx, {row["id"]: row for row in owners.rows}, submissions, by_id.values()),
        probe_counts=probe_counts,
        invitations=invitations(),
        places=places(),
        feeds=feeds,
        earlier=None if answered is None else EarlierAnswers(answered),
        now=now,
        uniqueness=uniqueness,
        is_dry_run=not lock,
        changed_since=find_changed_since(tx, by_id, submissions, file),
    )


def plans_named(submissions: Sequence[Submission]) -> set[int]:
    """The plans of the submissions, and of the coverages that they begin."""
    named = {submission.plan_id for submission in submissions}
    for submission in submissions:
        for change in submission.context.coverages:
            if change.plan_id is not None:
                named.add(change.plan_id)
    return named


def with_owners(
    tx: SetTransaction,
    plans: Mapping[int, Mapping[str, Any]],
    submissions: Iterable[Submission],
    members: Iterable[StoredMember],
) -> Mapping[int, Mapping[str, Any]]:
    """The plans, with those of the coverages that members keep, and of the members if the
    submissions are rows of a file: a record may get one of these.
    """
    are_of_file = any(submission.file_id is not None for submission in submissions)
    kept = set()
    for member in members:
        if are_of_file:
            kept.add(member.values["plan_id"])
        kept.update(each["plan"] for each in member.values["coverages"] or ())
    missing = kept - plans.keys()
    if not missing:
        return plans
    with sets.one_round_trip(tx):
        found = find_owners(tx, missing)
    return {**plans, **{row["id"]: row for row in found.rows}}


def write_chunk(
    tx: SetTransaction, stored: StoredChunk, decided: DecidedChunk, *, audited: bool
) -> Iterator[Result]:
    """Count the probes, write what was decided, and return the results with what is known only
    then: ids, the plans that members left, and warnings about similar members.
    """
    decided.probes.save(tx)
    pairs = decided.pairs
    accepted = [(by, result) for by, result in pairs if isinstance(result, Enrolled)]
    names = _names_of_left_plans(tx, accepted)
    written = write_members(tx, accepted, stored.feeds, now=stored.now, audited=audited)
    results = _finished(pairs, written, names, stored.feeds)
    if stored.earlier is None:
        return results
    # The answers of keyed requests have the warnings about similar members, so these are read
    # before the commit.
    finished = [*results]
    answers = [
        (by.once, result)
        for (by, _), result in zip(pairs, finished, strict=True)
        if by.once is not None and isinstance(result, Enrolled)
    ]
    idempotency.keep_answers(tx, answers, now=stored.now, groups=stored.earlier.groups)
    return iter(finished)


def _names_of_left_plans(tx: SetTransaction, accepted: Iterable[Accepted]) -> dict[int, str]:
    """The external_ids, by id, of the plans that members left by requests. The report of a file
    names them by itself.
    """
    left = {
        made.left_plan_id
        for by, made in accepted
        if by.file_id is None and made.left_plan_id is not None
    }
    return external_ids_of(tx, left) if left else {}


class Written(NamedTuple):
    """The stored members that a chunk has changed, and the search for members that are similar to
    its new ones.
    """

    updated: list[StoredMember]
    similar: SimilarSearch


def _finished(
    pairs: Iterable[tuple[Submission, Result]],
    written: Written,
    names: Mapping[int, str],
    feeds: Found,
) -> Iterator[Result]:
    """The results as callers get them. The search for similar members is read first."""
    with_events = {row["account_id"] for row in feeds.rows}
    similar = written.similar.warnings_of(written.updated)
    for by, result in pairs:
        if not isinstance(result, Enrolled):
            yield result
            continue
        known: dict[str, Any] = {}
        if by.account_id in with_events and result.outcome in EVENT_OF:
            known["has_event"] = True
        if names and result.left_plan_id is not None:
            known["left_plan"] = names.get(result.left_plan_id)
        warning = None if similar is None else similar.warning_of(result)
        if warning is not None:
            known["warnings"] = (*result.warnings, warning)
        yield result._replace(**known) if known else result


def touched_members(
    tx: SetTransaction, stored: Iterable[StoredMember]
) -> tuple[list[StoredMember], list[StoredMember]]:
    """The new and the changed members, each once and with its person digest, in an order in which
    chunks never wait for each other's new keys; withdrawn members release theirs first.
    """
    touched = {id(member): member for member in stored}.values()
    created = sorted((s for s in touched if s.is_new), key=lambda s: str(s.values["external_id"]))
    updated = [s for s in touched if s.changed and not s.is_new]
    updated.sort(key=lambda s: (s.values["uniqueness_scope"] >= 0, s.values["id"]))
    hasher = sets.keyed_hasher(tx, size=persons.DIGEST_SIZE)
    for member in created:
        member.values["person_digest"] = persons.person_digest(hasher, member.values)
    for member in updated:
        if persons.PERSON_FIELDS & member.changed:
            member.values["person_digest"] = persons.person_digest(hasher, member.values)
            member.changed.add("person_digest")
    return created, updated


def write_members(
    tx: SetTransaction, accepted: Sequence[Accepted], feeds: Found, *, now: datetime, audited: bool
) -> Written:
    """Write members, their history, events, audit entries and invitations, in one round trip."""
    created, updated = touched_members(tx, (result.stored for _, result in accepted))
    if created:
        ids = sets.next_ids(tx, members, len(created))
        for id_, member in zip(ids, created, strict=True):
            member.values["id"] = id_
    at = stored_time(now)
    with sets.one_round_trip(tx):
        similar = SimilarSearch(created, account_day(now, None).earliest, tx)
        # Updates first: a new record may take a key that an updated record releases.
        changed = set[str]().union(*(member.changed for member in updated))
        rows = [member.values for member in updated]
        sets.update_changed(tx, members, rows, changed=changed, seldom=SELDOM_CHANGED)
        sets.insert_set(tx, members, [member.values for member in created])
        store.insert_history(tx, _history(accepted), at)
        events.record(tx, feeds, _events(accepted), now=now)
        if audited:
            audit.record(tx, _trail(accepted), now=now)
        enqueue_invitations(tx, _invitations(accepted), now=now)
    _count_history(tx, accepted)
    moved = {
        made.stored.values["id"]: made.stored.values["plan_id"]
        for _, made in accepted
        if "plan_id" in made.changes
    }
    move_invitations(tx, moved)
    return Written(updated, similar)


def _history(accepted: Iterable[Accepted]) -> Iterator[store.NewEntry]:
    for by, made in accepted:
        if made.outcome is not Outcome.UNCHANGED:
            member_id = made.stored.values["id"]
            source = (by.client, by.request_id, by.file_id)
            yield member_id, str(made.outcome), by.plan_id, made.changes, *source


def _trail(accepted: Iterable[Accepted]) -> list[AuditEntry]:
    return [
        AuditEntry(
            f"eligibility.{made.outcome}",
            by.client,
            by.request_id,
            by.account_id,
            made.stored.values["id"],
        )
        for by, made in accepted
    ]


def _events(accepted: Iterable[Accepted]) -> Iterator[NewEvent]:
    """The events of the changes, with ids and names of fields only."""
    for by, result in accepted:
        for type_ in event_types(result.outcome, result.changes):
            data: dict[str, Any] = {
                "eligibility_id": result.stored.values["id"],
                "plan_id": by.plan_id,
            }
            if type_ is AccountEventType.MEMBER_MOVED:
                data["from_plan_id"] = result.left_plan_id
            data["fields"] = [name for name in result.changes if name in FIELDS]
            data["file_id"] = by.file_id
            yield NewEvent(by.account_id, type_, data, by.request_id)


def event_types(
    outcome: Outcome, changes: Mapping[str, Sequence[Any]]
) -> tuple[AccountEventType, ...]:
    """The events of an outcome: `member.ended` whenever the last day came nearer, whatever the way.

    >>> event_types(Outcome.UPDATED, {"expiry_date": [None, "2026-12-31"]})
    (<AccountEventType.MEMBER_ENDED: 'member.ended'>,)
    >>> event_types(Outcome.ENDED, {"expiry_date": ["2026-11-30", "2026-12-31"]})
    (<AccountEventType.MEMBER_UPDATED: 'member.updated'>,)
    """
    type_ = EVENT_OF.get(outcome)
    if type_ is None:
        return ()
    before, after = changes.get("expiry_date", (None, None))
    comes_nearer = after is not None and (before is None or after < before)
    if type_ is AccountEventType.MEMBER_MOVED and comes_nearer:
        return type_, AccountEventType.MEMBER_ENDED
    if type_ in (AccountEventType.MEMBER_UPDATED, AccountEventType.MEMBER_ENDED):
        return (AccountEventType.MEMBER_ENDED if comes_nearer else AccountEventType.MEMBER_UPDATED,)
    return (type_,)


def _invitations(accepted: Iterable[Accepted]) -> list[NewInvitation]:
    return [
        _new_invitation(made.invitation, made.stored.values)
        for _, made in accepted
        if not isinstance(made.invitation, NotInvitedReason)
    ]


def _new_invitation(decision: Delivery | QueuedReason, values: Mapping[str, Any]) -> NewInvitation:
    owner = (values["account_id"], values["plan_id"], values["id"])
    if isinstance(decision, QueuedReason):
        return NewInvitation(*owner, Delivery.IMMEDIATE, values["email"], decision)
    return NewInvitation(*owner, decision, values["email"])


def _count_history(tx: SetTransaction, accepted: Sequence[Accepted]) -> None:
    """Count the bytes of history for the quotas of the accounts."""
    sizes: dict[int, int] = {}
    for by, made in accepted:
        if made.outcome is not Outcome.UNCHANGED:
            size = HISTORY_ENTRY_BYTES + len(orjson.dumps(made.changes))
            sizes[by.account_id] = sizes.get(by.account_id, 0) + size
    for account_id, size in sizes.items():
        usage.count(tx.engine, account_id, history=size)
