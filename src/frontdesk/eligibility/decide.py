"""Decides the outcome of each record of a chunk, in plain Python against the stored state, and guards the unique keys.

Records are decided in order: each sees the effects of the records before it, as if it had been sent alone. The row of a file may
have more than values of fields (RowContext); only methods with a `context` use it. That of a POST is empty.

The unique keys are `external_id`, `member_id` and the folded e-mail, each unique inside a uniqueness scope: 0 where they are
unique over the whole service, else the account's id. A withdrawn member is alone in the scope -id. A probe is a record, or an
undo, with a key of another account's member: the refusal shows that the key is in use. After TAKEN_PER_DAY probes in a UTC day
the client's records with new keys are refused without a look-up (docs/decisions/0108).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from hashlib import blake2b
from operator import itemgetter
from typing import Any

from frontdesk import audit, errors
from frontdesk.audit import AuditEntry
from frontdesk.config import Uniqueness
from frontdesk.db.failures import StateChanged
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import model, store
from frontdesk.eligibility.fields import FIELDS, STORED_COLUMNS, UNIQUE, check_dates, missing_on_create
from frontdesk.eligibility.model import ANY_INTENT, Action, Enrolled, Outcome, StoredMember, Submission
from frontdesk.eligibility.persons import PERSON_FIELDS, Values, are_two_people, person_digest, person_of
from frontdesk.errors import Conflict, Fault, FrontdeskError, Invalid, NotFound, RateLimited
from frontdesk.invitations.enqueue import decide_invitation
from frontdesk.invitations.model import InvitationContext

TAKEN_PER_DAY = 1000  # probes of a client in a UTC day, over all processes

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

# Marks a member that was ended by absence, and keeps its earlier expiry_date. A record with an expiry_date clears the mark: from
# then on the end is the sender's own (docs/decisions/0091).
BEFORE_ABSENCE = "expiry_before_absence"
OPEN = "9999-12-31"  # stands for an access without an end

_ORDER = {name: position for position, name in enumerate(FIELDS)}
_EMPTY: dict[str, Any] = dict.fromkeys(STORED_COLUMNS) | {"metadata": {}}
_EMPTY |= dict.fromkeys(("row_digest", "family_digest", "merged_into"))
_answered = itemgetter(*model.ANSWERED)

KeysByScope = dict[int, dict[str, set[str]]]  # in each scope by column


def scope_of(account_id: int, uniqueness: Uniqueness) -> int:
    return account_id if uniqueness is Uniqueness.ACCOUNT else 0


def not_unique(name: str) -> Fault:
    return Fault(name, "not_unique", "is already in use by another record")


def keys_by_scope(records: Iterable[tuple[int, Values]]) -> KeysByScope:
    """The unique keys of the records, by scope and column. A record is its scope and its values by column."""
    by_scope = defaultdict[int, list[Values]](list)
    for scope, values in records:
        by_scope[scope].append(values)
    return {
        scope: {column: {*filter(None, (each.get(column) for each in found))} for column in UNIQUE.values()}
        for scope, found in by_scope.items()
    }


class TooManyTaken(RateLimited):
    """The client has reached its daily limit of cross-account collisions; it may send new keys tomorrow (UTC)."""

    def __init__(self, now: datetime) -> None:
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        said = "Too many records had a value of another record; send new members and new keys again tomorrow (UTC)."
        left = max(1, int((tomorrow - now).total_seconds()))
        super().__init__(said, retry_after_seconds=left, fault=("external_id", "too_many_taken"))


class ChunkKeys:
    """The members of a chunk by each of their unique keys, and the probes among its records.

    `counts` are of `store.find_probe_counts`. `save` adds the chunk's probes to them. Other chunks of the client wait for that
    row, so the limit is exact.
    """

    def __init__(
        self, by_id: Mapping[int, StoredMember], counts: Found, uniqueness: Uniqueness, now: datetime
    ) -> None:
        self._holders: dict[tuple[str, int, str | None], StoredMember] = {}
        self._kept: dict[Any, StoredMember] = {}  # by the id of a member that was merged into it
        for member in by_id.values():
            self.hold(member)
        self.uniqueness, self.now, self._day = uniqueness, now, now.date().isoformat()
        counted = {row["client"]: row["taken"] for row in counts.rows if row["day"] == self._day}
        self._counts = defaultdict[str, int](int, counted)  # with those of the chunk
        self._probes = defaultdict[str, list[Submission]](list)  # by client
        self.has_told = False

    def lead(self, by_id: Mapping[int, StoredMember]) -> None:
        """Let the external_id of each merged member lead to the kept member, which is among them."""
        for member in by_id.values():
            kept, values = member, member.values
            while kept.values["merged_into"] is not None:
                kept = by_id[kept.values["merged_into"]]
            if kept is not member:
                self._kept[values["id"]] = kept

    def find(self, external_id: str | None, account_id: int) -> StoredMember | None:
        """The account's member with the identifier; the kept one for that of a merged member."""
        holder = self._holders.get(("external_id", scope_of(account_id, self.uniqueness), external_id))
        if holder is None or holder.values["account_id"] != account_id:
            return None
        return holder if holder.values["merged_into"] is None else self._kept[holder.values["id"]]

    def taken(self, values: Values, account_id: int, own: StoredMember | None) -> list[str]:
        """The unique fields of `values` with a key of another member than `own`. Counts a probe."""
        scope, found = scope_of(account_id, self.uniqueness), []
        for name, column in UNIQUE.items():
            key = values.get(column)
            if key is not None and (holder := self._holders.get((column, scope, key), own)) is not own:
                found.append(name)
                self.has_told |= holder is not None and holder.values["account_id"] != account_id
        return found

    def hold(self, member: StoredMember) -> None:
        values, holders = member.values, self._holders
        scope = values["uniqueness_scope"]
        for column in UNIQUE.values():
            if (key := values[column]) is not None:
                holders[column, scope, key] = member

    def change(self, member: StoredMember, values: Values) -> None:
        """Give the member these values; its old keys are free."""
        scope = member.values["uniqueness_scope"]
        for column in UNIQUE.values():
            self._holders.pop((column, scope, member.values[column]), None)
        member.values.update(values)
        member.changed.update(values)
        self.hold(member)

    def is_unheard(self, client: str, given: Values, own: StoredMember | None) -> bool:
        """True if the client is at its limit, and the record has a key that its member does not have."""
        if self._counts[client] < TAKEN_PER_DAY:
            return False
        return own is None or any(given.get(key) not in (None, own.values[key]) for key in UNIQUE.values())

    def count_probe(self, submission: Submission) -> None:
        """Count the record if its refusal `has_told` the client of another account's key."""
        self._probes[submission.client].append(submission)
        self._counts[submission.client] += 1
        self.has_told = False

    def save(self, tx: SetTransaction) -> None:
        """Add the probes to the counts. The audit trail gets an entry each time a count has doubled or reaches the limit. Raises
        StateChanged if the chunk has more probes than other chunks have left."""
        for client, probes in sorted(self._probes.items()):
            by, found = probes[0], len(probes)
            taken = store.count_probes(tx, client, by.account_id, self._day, found)
            if taken > TAKEN_PER_DAY:
                raise StateChanged
            if taken.bit_length() > (taken - found).bit_length() or taken == TAKEN_PER_DAY:
                told = (client, by.request_id, by.account_id, by.file_id, {"taken_today": taken})
                audit.record(tx, [AuditEntry("uniqueness.probed", *told)], now=self.now)


@dataclass(slots=True)
class ChunkState:
    """The stored members that a chunk touches, kept up to date while its records are decided.

    `plans` have the `account_id` and `accepting_patients` of each plan, `at` is now, as stored. With `reopens_absent`, a record
    without an expiry_date reopens a member that was ended by absence.
    """

    keys: ChunkKeys
    plans: Mapping[int, Values]
    invitations: InvitationContext
    at: str
    hasher: blake2b
    reopens_absent: bool
    subscribers: dict[str, StoredMember] = field(default_factory=dict)  # by family digest

    def decide(self, submission: Submission) -> Enrolled | FrontdeskError:
        """The outcome of one record, or the error that refuses it. A refused record leaves no trace, unless it is a probe."""
        result = self._decide(submission)
        if self.keys.has_told:
            self.keys.count_probe(submission)
        return result

    def _decide(self, submission: Submission) -> Enrolled | FrontdeskError:
        plan = self.plans.get(submission.plan_id)
        if plan is None or plan["account_id"] != submission.account_id:
            return NotFound("plan")
        submission, own = self._find(submission)
        if submission.intent is not ANY_INTENT and (refusal := _unintended(submission, own)):
            return refusal
        # A member that has moved to another plan is neither ended nor compared by a file of its old plan.
        is_under = own is not None and own.values["plan_id"] == submission.plan_id
        if submission.action is not Action.ENROL and not is_under:
            return _invalid([*submission.record.faults, NOT_ENROLLED])
        if self.keys.is_unheard(submission.client, submission.record.given, own):
            return TooManyTaken(self.keys.now)
        if own is None:
            return self._create(submission)
        person = submission.context.person
        if person and are_two_people(person, person_of(own.values)):
            return Invalid([IDENTITY_CONFLICT])
        since = submission.unless_changed_since
        if since is not None and datetime.fromisoformat(str(own.values["updated_at"])) > since:
            return self._enrolled(Outcome.UNCHANGED, submission, stored=own, changes={})
        return self._update(submission, own)

    def _find(self, submission: Submission) -> tuple[Submission, StoredMember | None]:
        """The account's member with the record's identifier; for a correction, with the former identifier. The identifier of a
        merged member leads to the kept member, which keeps its own."""
        record, context = submission.record, submission.context
        key: str | None = context.former_id
        own = self.keys.find(key, submission.account_id) if key else None
        if own is None:
            key = record.external_id
            own = self.keys.find(key, submission.account_id)
        if own is not None and own.values["external_id"] != key:
            given = {name: value for name, value in record.given.items() if name != "external_id"}
            submission = submission._replace(record=replace(record, given=given), row_digest=None)
        return submission, own

    def _create(self, submission: Submission) -> Enrolled | Invalid:
        said = submission.record.given
        submission = self._of_row(submission, None)
        given, at = submission.record.given, self.at
        if refusal := self._refusal(submission, given, None):
            return refusal
        values = {
            "id": None,  # once the whole chunk is decided
            "account_id": submission.account_id,
            "plan_id": submission.plan_id,
            "uniqueness_scope": scope_of(submission.account_id, self.keys.uniqueness),
            **_EMPTY,
            **given,
            "created_at": at,
            "updated_at": at,
        }
        values["person_digest"] = person_digest(self.hasher, values)
        stored = StoredMember(values, is_new=True)
        self._keep_digests(stored, submission, said)
        self.keys.hold(stored)
        changes = {name: [None, value] for name, value in given.items() if value is not None}
        changes.pop("email_folded", None)
        return self._enrolled(Outcome.CREATED, submission, stored=stored, changes=changes)

    def _update(self, submission: Submission, stored: StoredMember) -> Enrolled | Invalid:
        submission = self._of_row(submission, stored)
        values, plan_id = stored.values, submission.plan_id
        given, reopened = self._given_after_absence(submission, values)
        changed = {name: value for name, value in given.items() if values[name] != value}
        if changed or submission.record.faults:
            refusal = self._refusal(submission, {**values, **changed}, stored)
            if refusal:
                return refusal
        changes = {name: [values[name], value] for name, value in changed.items() if name != "email_folded"}
        if moved := values["plan_id"] != plan_id:
            changes["plan_id"] = [values["plan_id"], plan_id]
            changed["plan_id"] = plan_id
        if submission.action is Action.COMPARE:
            return self._enrolled(Outcome.UNCHANGED, submission, stored=stored, changes=changes)
        outcome = Outcome.UPDATED if submission.action is Action.ENROL else Outcome.ENDED
        if reopened or moved:
            outcome = Outcome.REOPENED if reopened else Outcome.MOVED
        elif changed.keys() <= {BEFORE_ABSENCE}:  # clearing the mark is no change of the record
            outcome = Outcome.UNCHANGED
        if changed:
            if PERSON_FIELDS & changed.keys():
                changed["person_digest"] = person_digest(self.hasher, {**values, **changed})
            self.keys.change(stored, changed | {"updated_at": self.at})
        self._keep_digests(stored, submission, submission.record.given)
        return self._enrolled(outcome, submission, stored=stored, changes=changes)

    def _of_row(self, submission: Submission, own: StoredMember | None) -> Submission:
        """The submission with the context of a file's row applied to this member; that of a POST is unchanged.

        The row gets no digest if its effect depends on the day or on a free address: it has to be read again.
        """
        if submission.file_id is None:
            return submission
        context, record, digest = submission.context, submission.record, submission.row_digest
        given, warnings = record.given, record.warnings
        if own is None:
            of_new = dict(context.given_of_new or {})
            subscriber = self.subscribers.get(context.address_of)
            if subscriber is not None and "zipcode" not in given:
                values = subscriber.values
                of_new |= {name: values[name] for name in model.ADDRESS if values[name] is not None}
                warnings += ("address_of_subscriber",)
            given = of_new | given
        elif context.keeps_earlier_end and (own.values["expiry_date"] or OPEN) < given["expiry_date"]:
            # A table lists its terminated employees every night: the first night counts.
            given = given | {"expiry_date": own.values["expiry_date"]}
        begin = own and (given.get("effective_date") or own.values["effective_date"])
        if context.ends_access and begin and (given.get("expiry_date") or begin) < begin:
            given, warnings, digest = given | {"expiry_date": begin}, (*warnings, "ends_on_first_day"), None
        folded = given.get("email_folded")
        if folded is not None and self.keys.taken({"email_folded": folded}, submission.account_id, own):
            # Dropped: families share an address, and a member must not lose access for it (decision 0079).
            given = {name: value for name, value in given.items() if name not in ("email", "email_folded")}
            warnings, digest = (*warnings, "email_taken"), None
        if given is record.given:
            return submission
        return submission._replace(record=replace(record, given=given, warnings=warnings), row_digest=digest)

    def _given_after_absence(self, submission: Submission, values: Values) -> tuple[Values, bool]:
        """The changes of the stored values, and whether they reopen a member that was ended by absence.

        A reopened member gets its earlier expiry_date back, unless that is past.
        """
        given, before = submission.record.given, values[BEFORE_ABSENCE]
        if before is None or submission.action is Action.COMPARE:
            return given, False
        reopens = self.reopens_absent and submission.action is Action.ENROL
        if reopens and given.get("expiry_date") is None:
            end = None if "expiry_date" in given or before == OPEN else before
            if end is None or end >= self.at[:10]:
                return {**given, "expiry_date": end, BEFORE_ABSENCE: None}, True
        return ({BEFORE_ABSENCE: None, **given} if "expiry_date" in given else given), False

    def _keep_digests(self, stored: StoredMember, submission: Submission, said: Values) -> None:
        """Store the member's family, and the digest of its row; without one, a change clears an older row's digest.

        A row without an expiry_date gets no digest if the member has one: a later file may have to warn of it.
        """
        values, digest = stored.values, submission.row_digest
        person = submission.context.person
        if person and person.family and values["family_digest"] != person.family:
            values["family_digest"] = person.family
            stored.changed.add("family_digest")
        self.note_family(stored)
        has_end = values["expiry_date"] is not None and "expiry_date" not in said
        if digest is not None and (has_end or not self.plans[submission.plan_id]["accepting_patients"]):
            digest = None  # each row of an inactive plan gets a warning
        if digest is not None or stored.changed:
            values["row_digest"] = digest
            stored.changed.add("row_digest")

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
        if not self.plans[submission.plan_id]["accepting_patients"] and submission.action is Action.ENROL:
            warnings += ("plan_inactive",)
        if "metadata" in record.given:
            # Keys in another order are no change: the answer has the order sent, the store keeps the order of the history.
            values = values | {"metadata": record.given["metadata"]}
        return Enrolled(outcome, stored, _answered(values), changes, warnings, invitation)

    def _refusal(self, submission: Submission, values: Values, own: StoredMember | None) -> Invalid | None:
        """The record's own faults, missing fields of a new record, keys in use, and dates of the merged record in wrong order."""
        faults = list(submission.record.faults)
        if own is None:
            faults += missing_on_create(submission.record, submission.context.causes)
        faults += map(not_unique, self.keys.taken(values, submission.account_id, own))
        wrong_dates = check_dates(values.get("effective_date"), values.get("expiry_date"))
        if wrong_dates:
            faults.append(wrong_dates)
        return _invalid(faults) if faults else None


def _unintended(submission: Submission, own: StoredMember | None) -> FrontdeskError | None:
    """The refusal of a record that would do more than its request lets it do. It comes before the faults of
    fields, unless the external_id has one."""
    intent = submission.intent
    if intent.eligibility_id not in (None, own and own.values["id"]):
        return Conflict(
            "The member was renamed or merged at the same time. Read it, then send the request again."
        )
    if own is None:
        if intent.creates:
            return None
        if submission.record.external_id is None:
            return _invalid([*submission.record.faults])
        detail = "No member of the account has this external_id, and the request creates none."
        return NotFound("member", detail, field="external_id")
    if not intent.updates:
        detail = (
            "A member of the account has this external_id already. To update it, leave If-None-Match out."
        )
        return errors.PreconditionFailed(detail, code="member_exists", field="external_id")
    if not intent.moves and own.values["plan_id"] != submission.plan_id:
        detail = (
            "The member is under another plan of the account. To move it to this plan, leave move=false out."
        )
        return Conflict(detail, code="other_plan", field="external_id")
    return None


def _invalid(faults: list[Fault]) -> Invalid:
    """The refusal with the faults in the order of the field table; unknown fields last."""
    return Invalid(sorted(faults, key=lambda fault: _ORDER.get(fault.field.partition(".")[0], len(_ORDER))))


def _identity_warnings(changes: dict[str, list[Any]]) -> tuple[str, ...]:
    """A dob that moves by one day is a typical time-zone fault. If the first name changes too, it may be another person."""
    before, after = changes["dob"]
    one_day = abs((date.fromisoformat(after) - date.fromisoformat(before)).days) == 1
    warnings: tuple[str, ...] = ("dob_shifted_one_day",) if one_day else ()
    return (*warnings, "identity_changed") if "first_name" in changes else warnings
