"""Decides what each record of a chunk does, in plain Python against the stored state, and guards the unique keys.

Records are decided in order: each sees what the records before it did, as if it had been sent alone. The row of a file may say
more than values of fields (RowContext): only the methods that begin by asking for a `context` know of it. A POST has none.

The unique keys are `external_id`, `member_id` and the folded e-mail, each unique inside a uniqueness scope: 0 where they are
unique over the whole service, else the account's id. A withdrawn member is alone in the scope -id. A probe is a record, or an
undo, that brings a key of another account's member: the refusal tells that it is taken. After a number of probes in a UTC day
the client's records with new keys are refused unheard (docs/decisions/0108).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Any

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.config import Uniqueness
from frontdesk.db.failures import StateChanged
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.fields import (
    STORED_COLUMNS,
    UNIQUE,
    check_dates,
    in_field_order,
    missing_on_create,
)
from frontdesk.eligibility.model import ADDRESS, ANSWERED, Action, Enrolled, Outcome, StoredMember, Submission
from frontdesk.eligibility.persons import PERSON_FIELDS, are_two_people, person_digest, person_of
from frontdesk.errors import Fault, FrontdeskError, Invalid, NotFound, RateLimited
from frontdesk.invitations.enqueue import decide_invitation
from frontdesk.invitations.model import InvitationContext

TAKEN_PER_DAY = 1000  # probes of a client in a UTC day, over all processes
KEPT_DAYS = 30  # of the counts

NOT_ENROLLED = Fault(
    "external_id",
    "not_enrolled",
    "is not that of a member under this plan; send the row to the plan of the member, or enrol it first",
)
IDENTITY_CONFLICT = Fault(
    "external_id",
    "identity_conflict",
    "is that of a stored member with another name, birth date, role or family. If it is the same person, correct the record with "
    "a POST. If the number was given to somebody new, free it with: frontdesk member rename. Else the mapping has to name "
    "members in another way (identify)",
)

# Marks a member that a full file ended by omitting it, and keeps the expiry_date that it had. Any record that says an expiry_date
# takes the mark away: from then on the end is the sender's own (docs/decisions/0091).
BEFORE_ABSENCE = "expiry_before_absence"
OPEN = "9999-12-31"  # stands for an access without an end

_EMPTY: dict[str, Any] = dict.fromkeys(STORED_COLUMNS) | {"metadata": {}}
_EMPTY |= dict.fromkeys(("row_digest", "family_digest", "merged_into"))
_answered = itemgetter(*ANSWERED)


def scope_of(account_id: int, uniqueness: Uniqueness) -> int:
    return account_id if uniqueness is Uniqueness.ACCOUNT else 0


def not_unique(name: str) -> Fault:
    return Fault(name, "not_unique", "is already in use by another record")


def new_keys(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """The keys of `given`, by column, that `own` does not have."""
    return {
        column: key
        for column in UNIQUE.values()
        if (key := given.get(column)) is not None and own.get(column) != key
    }


def keys_by_scope(records: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[int, dict[str, set[str]]]:
    """The unique keys that the records carry, by scope and column. A record is its scope and its values by column."""
    keys = defaultdict[int, dict[str, set[str]]](lambda: {column: set() for column in UNIQUE.values()})
    for scope, values in records:
        for column, found in keys[scope].items():
            if (key := values.get(column)) is not None:
                found.add(key)
    return keys


class TooManyTaken(RateLimited, kind="rate_limited"):
    """The client was told of as many values of other accounts as it may be in a day; it may go on tomorrow (UTC)."""

    def __init__(self, now: datetime) -> None:
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        again = "new members and new keys are taken again tomorrow (UTC)"
        super().__init__(
            f"Too many records had the value of another record; {again}.",
            retry_after_seconds=max(1, int((tomorrow - now).total_seconds())),
        )
        self.faults = (Fault("external_id", "too_many_taken", f"was not looked at; {again}"),)


def read_probe_counts(
    tx: SetTransaction, clients: Collection[str], uniqueness: Uniqueness, now: datetime
) -> Found:
    """How many probes each client has made today, as rows of `client` and `taken`. A set read; ChunkKeys takes its rows."""
    is_needed = uniqueness is Uniqueness.SERVICE
    return store.find_probe_counts(tx, clients, now.date().isoformat()) if is_needed else Found()


class ChunkKeys:
    """The members of a chunk by every unique key that they carry, and the probes among its records.

    A chunk is `quiet` if its members and submitters are one account's, and no client is at its limit. Else each probe is counted,
    and `save` adds them to the client's row of the day. Another chunk of the client waits for that row: so the limit is exact.
    """

    def __init__(
        self,
        by_id: Mapping[int, StoredMember],
        counts: Found,
        submitters: Iterable[int] = (),
        *,
        now: datetime,
    ) -> None:
        self._holders: dict[tuple[str, int, str | None], StoredMember] = {}
        for member in by_id.values():
            self.hold(member)
        self._now = now
        self._counts = {row["client"]: row["taken"] for row in counts.rows}
        self._found: dict[str, tuple[int, AuditEntry]] = {}  # by client
        accounts = {*submitters, *(member.values["account_id"] for member in by_id.values())}
        self.is_quiet = len(accounts) < 2 and max(self._counts.values(), default=0) < TAKEN_PER_DAY

    def lead(self, by_id: Mapping[int, StoredMember]) -> None:
        """Let the external_id of each merged member find the member that it was merged into, which is among them."""
        for member in by_id.values():
            kept, values = member, member.values
            while kept.values["merged_into"] is not None:
                kept = by_id[kept.values["merged_into"]]
            if kept is not member:
                self._holders["external_id", values["uniqueness_scope"], values["external_id"]] = kept

    def find(self, external_id: str | None, scope: int) -> StoredMember | None:
        return self._holders.get(("external_id", scope, external_id))

    def taken(self, values: Mapping[str, Any], scope: int, own: StoredMember | None) -> list[str]:
        """The unique fields of `values` whose key a member other than `own` carries."""
        holders, found = self._holders, []
        for name, column in UNIQUE.items():
            key = values.get(column)
            if key is not None and holders.get((column, scope, key), own) is not own:
                found.append(name)
        return found

    def hold(self, member: StoredMember) -> None:
        values, holders = member.values, self._holders
        scope = values["uniqueness_scope"]
        for column in UNIQUE.values():
            if (key := values[column]) is not None:
                holders[column, scope, key] = member

    def release(self, member: StoredMember) -> None:
        values = member.values
        for column in UNIQUE.values():
            self._holders.pop((column, values["uniqueness_scope"], values[column]), None)

    def probe(self, brought: Mapping[str, str], scope: int, entry: AuditEntry) -> TooManyTaken | None:
        """Count a record that brings these keys, by column, if another account's member has one; its refusal if its client is at
        the limit. The entry is what the audit trail would get."""
        if self.is_quiet or not brought:
            return None
        found, _ = self._found.get(entry.actor, (0, entry))
        if self._counts.get(entry.actor, 0) + found >= TAKEN_PER_DAY:
            return TooManyTaken(self._now)
        holders = (self._holders.get((column, scope, key)) for column, key in brought.items())
        if any(holder is not None and holder.values["account_id"] != entry.account_id for holder in holders):
            self._found[entry.actor] = (found + 1, entry)
        return None

    def save(self, tx: SetTransaction) -> None:
        """Add the probes to the counts. The audit trail has an entry each time that a count has doubled or is at the limit.

        Raises StateChanged when the chunk found more than other chunks have left.
        """
        today, entries = self._now.date(), list[AuditEntry]()
        for client, (found, entry) in sorted(self._found.items()):
            taken = store.count_probes(tx, client, entry.account_id, today.isoformat(), found)
            if taken > TAKEN_PER_DAY:
                raise StateChanged
            if taken == found:
                store.delete_probes(tx, before_day=(today - timedelta(days=KEPT_DAYS)).isoformat())
            if taken.bit_length() > (taken - found).bit_length() or taken == TAKEN_PER_DAY:
                entries.append(entry._replace(detail={"taken_today": taken}))
        if entries:
            audit.record(tx, entries, now=self._now)


@dataclass(slots=True)
class ChunkState:
    """The stored members that a chunk touches, kept up to date while its records are decided.

    `plan_owners` has the account of each plan, `inactive_plans` those that accept no patients, `at` is now, as stored. With
    `reopens_absent`, a record without an expiry_date opens the access of a member that a full file ended by omitting it.
    """

    keys: ChunkKeys
    plan_owners: dict[int, int]
    inactive_plans: AbstractSet[int]
    invitations: InvitationContext
    uniqueness: Uniqueness
    at: str
    digest_key: bytes
    reopens_absent: bool
    subscribers: dict[str, StoredMember] = field(default_factory=dict)  # by family digest

    def decide(self, submission: Submission) -> Enrolled | FrontdeskError:
        """The outcome of one record, or the error that refuses it; a refused record leaves no trace."""
        if self.plan_owners.get(submission.plan_id) != submission.account_id:
            return NotFound("plan")
        scope = scope_of(submission.account_id, self.uniqueness)
        submission, stored = self._find(submission, scope)
        own = stored if stored is not None and stored.values["account_id"] == submission.account_id else None
        if not self.keys.is_quiet and (unheard := self._probe(submission, own, scope)) is not None:
            return unheard
        # A plan's file is out of date about a member that has moved to another plan: it neither ends nor compares it.
        is_under = own is not None and own.values["plan_id"] == submission.plan_id
        if submission.action is not Action.ENROL and not is_under:
            return Invalid(in_field_order([*submission.record.faults, NOT_ENROLLED]))
        if stored is None:
            return self._create(submission, scope)
        if own is None:
            # Another account's record: the caller learns that the identifier is taken, and the faults of a new record.
            faults = self._faults(submission, submission.record.given, scope, own=None)
            return Invalid(in_field_order([not_unique("external_id"), *faults]))
        person = submission.context and submission.context.person
        if person and are_two_people(person, person_of(own.values)):
            return Invalid([IDENTITY_CONFLICT])
        since = submission.unless_changed_since
        if since is not None and datetime.fromisoformat(str(own.values["updated_at"])) > since:
            return self._enrolled(Outcome.UNCHANGED, submission, stored=own, changes={})
        return self._update(submission, own, scope)

    def _find(self, submission: Submission, scope: int) -> tuple[Submission, StoredMember | None]:
        """The stored member with the record's identifier; of a correction, with the identifier that it had before. The identifier
        of a merged member finds the one that was kept, which keeps its own."""
        record, context = submission.record, submission.context
        key: str | None = context.former_id if context is not None else ""
        stored = self.keys.find(key, scope) if key else None
        if stored is None or stored.values["account_id"] != submission.account_id:
            key = record.external_id
            stored = self.keys.find(key, scope)
        if stored is not None and stored.values["external_id"] != key:
            given = {name: value for name, value in record.given.items() if name != "external_id"}
            submission = _with_given(submission, given)
        return submission, stored

    def _probe(self, submission: Submission, own: StoredMember | None, scope: int) -> TooManyTaken | None:
        """Count the record if it brings a key of another account's member; its refusal if its client is at the limit."""
        if submission.action not in (Action.ENROL, Action.COMPARE):
            return None
        given = submission.record.given
        if own is None and submission.context is not None and submission.context.given_of_new:
            given = {**submission.context.given_of_new, **given}
        by = (submission.client, submission.request_id, submission.account_id, submission.file_id)
        brought = new_keys(given, {} if own is None else own.values)
        return self.keys.probe(brought, scope, AuditEntry("uniqueness.probed", *by))

    def _create(self, submission: Submission, scope: int) -> Enrolled | FrontdeskError:
        said = submission.record.given
        submission = self._as_new(submission, scope)
        given, at = submission.record.given, self.at
        if faults := self._faults(submission, given, scope, own=None):
            return Invalid(in_field_order(faults))
        values = {
            "id": None,  # once the whole chunk is decided
            "account_id": submission.account_id,
            "plan_id": submission.plan_id,
            "uniqueness_scope": scope,
            **_EMPTY,
            **given,
            "created_at": at,
            "updated_at": at,
        }
        values["person_digest"] = person_digest(self.digest_key, values)
        stored = StoredMember(values, is_new=True)
        self._keep_digests(stored, submission, said)
        self.keys.hold(stored)
        changes = {name: [None, value] for name, value in given.items() if value is not None}
        changes.pop("email_folded", None)
        return self._enrolled(Outcome.CREATED, submission, stored=stored, changes=changes)

    def _update(self, submission: Submission, stored: StoredMember, scope: int) -> Enrolled | FrontdeskError:
        submission = self._as_change(submission, stored, scope)
        values, plan_id = stored.values, submission.plan_id
        given, reopened = self._given_after_absence(submission, values)
        changed = {name: value for name, value in given.items() if values[name] != value}
        moved = values["plan_id"] != plan_id
        if changed or submission.record.faults:
            faults = self._faults(submission, {**values, **changed}, scope, own=stored)
            if faults:
                return Invalid(in_field_order(faults))
        changes = {name: [values[name], value] for name, value in changed.items() if name != "email_folded"}
        if moved:
            changes["plan_id"] = [values["plan_id"], plan_id]
        if submission.action is Action.COMPARE:
            return self._enrolled(Outcome.UNCHANGED, submission, stored=stored, changes=changes)
        if changed or moved:
            self.keys.release(stored)
            values.update(changed, plan_id=plan_id, updated_at=self.at)
            if PERSON_FIELDS & changed.keys():
                values["person_digest"] = person_digest(self.digest_key, values)
            stored.is_changed = True
            self.keys.hold(stored)
        self._keep_digests(stored, submission, submission.record.given)
        outcome = Outcome.UPDATED if submission.action is Action.ENROL else Outcome.ENDED
        if reopened or moved:
            outcome = Outcome.REOPENED if reopened else Outcome.MOVED
        elif changed.keys() <= {BEFORE_ABSENCE}:  # clearing the mark is no change of the record
            outcome = Outcome.UNCHANGED
        return self._enrolled(outcome, submission, stored=stored, changes=changes)

    def _as_new(self, submission: Submission, scope: int) -> Submission:
        """The submission for a member that is not stored yet."""
        record, context = submission.record, submission.context
        if context is None:
            return submission
        of_new = dict(context.given_of_new or {})
        subscriber = self.subscribers.get(context.address_of)
        if subscriber is not None and "zipcode" not in record.given:
            of_new |= {name: value for name in ADDRESS if (value := subscriber.values[name]) is not None}
            record = replace(record, warnings=(*record.warnings, "address_of_subscriber"))
        record = replace(record, given={**of_new, **record.given})
        return self._without_taken_email(submission._replace(record=record), scope, own=None)

    def _as_change(self, submission: Submission, stored: StoredMember, scope: int) -> Submission:
        """The submission for the stored member."""
        given, values, context = submission.record.given, stored.values, submission.context
        if context is None:
            return submission
        end = values["expiry_date"]
        if context.keeps_earlier_end and end is not None and end < given["expiry_date"]:
            # A table lists its terminated employees every night: the first night counts.
            given = {**given, "expiry_date": end}
            submission = submission._replace(record=replace(submission.record, given=given))
        if context.ends_access:
            begin = given.get("effective_date") or values["effective_date"]
            if (given.get("expiry_date") or begin) < begin:
                submission = _with_given(submission, {**given, "expiry_date": begin}, "ends_on_first_day")
        return self._without_taken_email(submission, scope, own=stored)

    def _without_taken_email(
        self, submission: Submission, scope: int, *, own: StoredMember | None
    ) -> Submission:
        """An address that another record carries is left out: a family often shares one (docs/decisions/0079).

        The row keeps no digest, so that it is read again: the address may be free by then.
        """
        given = submission.record.given
        folded = given.get("email_folded")
        if folded is None or not self.keys.taken({"email_folded": folded}, scope, own):
            return submission
        given = {name: value for name, value in given.items() if name not in ("email", "email_folded")}
        return _with_given(submission, given, "email_taken")

    def _given_after_absence(
        self, submission: Submission, values: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], bool]:
        """What the record changes on the stored values, and whether it opens the access of a member that was absent.

        The access gets back the expiry_date that it had before, unless that is past.
        """
        given, before = submission.record.given, values[BEFORE_ABSENCE]
        if submission.action is Action.END_ABSENT:
            return {**given, BEFORE_ABSENCE: values["expiry_date"] or OPEN}, False
        if before is None or submission.action is Action.COMPARE:
            return given, False
        reopens = self.reopens_absent and submission.action is Action.ENROL
        if reopens and given.get("expiry_date") is None:
            end = None if "expiry_date" in given or before == OPEN else before
            if end is None or end >= self.at[:10]:
                return {**given, "expiry_date": end, BEFORE_ABSENCE: None}, True
        return ({**given, BEFORE_ABSENCE: None} if "expiry_date" in given else given), False

    def _keep_digests(self, stored: StoredMember, submission: Submission, said: Mapping[str, Any]) -> None:
        """Keep the member's family, and the digest of the row that it agrees with; without one, a change clears an older row's.

        A row that gives a stored member no expiry_date has none where there is that date: a later file may have to warn of it.
        """
        values, digest = stored.values, submission.row_digest
        if submission.plan_id in self.inactive_plans:
            digest = None  # each row is warned of, so none may be recognised
        person = submission.context and submission.context.person
        if person and person.family and values["family_digest"] != person.family:
            values["family_digest"] = person.family
            stored.is_changed = True
        self.note_family(stored)
        if values["expiry_date"] is not None and "expiry_date" not in said:
            digest = None
        if digest is not None or stored.is_changed:
            values["row_digest"] = digest
            stored.is_changed = True

    def note_family(self, member: StoredMember) -> None:
        values = member.values
        is_kept = values["family_digest"] is not None and values["merged_into"] is None
        if is_kept and values["subscriber_relationship"] == "Primary":
            self.subscribers[values["family_digest"]] = member

    def _enrolled(
        self, outcome: Outcome, submission: Submission, *, stored: StoredMember, changes: dict[str, list[Any]]
    ) -> Enrolled:
        values, record, settings = stored.values, submission.record, self.invitations
        folded, expiry = values["email_folded"], values["expiry_date"]
        invitation = decide_invitation(
            is_new=outcome is Outcome.CREATED,
            has_email=folded is not None,
            suppressed=(submission.account_id, folded) in settings.suppressed,
            expired=expiry is not None and expiry < self.at[:10],
            asked=record.invite_immediately,
            batches_enabled=settings.batches_enabled.get(submission.account_id),
        )
        warnings = record.warnings
        if outcome is not Outcome.CREATED and "dob" in changes:
            warnings += _identity_warnings(changes)
        if submission.action is Action.ENROL and submission.plan_id in self.inactive_plans:
            warnings += ("plan_inactive",)
        if "metadata" in record.given:
            # Keys in another order are no change: the answer has the order sent, the store keeps the order of the history.
            values = values | {"metadata": record.given["metadata"]}
        return Enrolled(outcome, stored, _answered(values), changes, warnings, invitation)

    def _faults(
        self, submission: Submission, values: Mapping[str, Any], scope: int, *, own: StoredMember | None
    ) -> list[Fault]:
        """The record's own faults, what a new record lacks, taken keys, and dates of the merged record in the wrong order."""
        faults = list(submission.record.faults)
        if own is None:
            context = submission.context
            faults += missing_on_create(submission.record, () if context is None else context.causes)
        if taken := self.keys.taken(values, scope, own):
            # A new record's external_id is free: nothing was found by it, or the caller reports it.
            faults += [not_unique(name) for name in taken if own is not None or name != "external_id"]
        wrong_dates = check_dates(values.get("effective_date"), values.get("expiry_date"))
        return [*faults, wrong_dates] if wrong_dates else faults


def _with_given(submission: Submission, given: dict[str, Any], *warnings: str) -> Submission:
    """The submission with other values than those of its row, so that the row's digest is not kept."""
    record = submission.record
    record = replace(record, given=given, warnings=(*record.warnings, *warnings))
    return submission._replace(record=record, row_digest=None)


def _identity_warnings(changes: dict[str, list[Any]]) -> tuple[str, ...]:
    """A dob that moves by one day is the classic time-zone bug. A first name that changes with it is another person."""
    before, after = changes["dob"]
    one_day = abs((date.fromisoformat(after) - date.fromisoformat(before)).days) == 1
    warnings: tuple[str, ...] = ("dob_shifted_one_day",) if one_day else ()
    return (*warnings, "identity_changed") if "first_name" in changes else warnings
