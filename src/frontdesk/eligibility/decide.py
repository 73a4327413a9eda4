"""Decides the outcome of each record of a chunk, in plain Python against the stored state.

`decide_chunk` takes what `enrol.read_chunk` has read, and reads and writes nothing itself. Records
are decided in order: each sees the effects of the records before it, as if it had been sent alone.
The row of a file may have more than values of fields (RowContext); that of a POST is empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from enum import Enum, auto
from operator import itemgetter
from typing import Any, NamedTuple

from frontdesk import codes, errors
from frontdesk.clock import account_day
from frontdesk.config import Uniqueness
from frontdesk.db.sets import Found
from frontdesk.eligibility import model
from frontdesk.eligibility.access_days import access_pair, spans_of
from frontdesk.eligibility.coverages import kept_coverages
from frontdesk.eligibility.days import OPEN
from frontdesk.eligibility.fields import FIELDS, STORED_COLUMNS, check_dates, missing_on_create
from frontdesk.eligibility.late_rows import NOTHING, refusal_of
from frontdesk.eligibility.model import (
    ANY_INTENT,
    Action,
    Enrolled,
    MemberWarning,
    Outcome,
    StoredMember,
    Submission,
)
from frontdesk.eligibility.person_check import PersonCheck
from frontdesk.eligibility.persons import Values, names_in
from frontdesk.eligibility.probes import Probes, TooManyTaken
from frontdesk.eligibility.row_access import BEFORE_ABSENCE, FileTerms, RowAccess
from frontdesk.eligibility.unique_keys import UniqueKeys, family_of_ended, not_unique, scope_of
from frontdesk.errors import Conflict, Fault, FrontdeskError, Invalid, NotFound
from frontdesk.idempotency import EarlierAnswers
from frontdesk.invitations.enqueue import decide_invitation
from frontdesk.invitations.model import (
    Delivery,
    InvitationContext,
    InvitationDecision,
    QueuedReason,
)
from frontdesk.invitations.places import AccountPlaces
from frontdesk.text import SSN_LENGTHS, looks_like_ssn, stored_time

NOT_ENROLLED = Fault(
    "external_id",
    codes.faults.NOT_ENROLLED,
    "is not that of a member under this plan; send the row to the plan of the member, or enrol it first",
)
# Marks a dependent that has the address of its subscriber: later rows without one follow that.
HOME = "shares_home"

_ORDER = {name: position for position, name in enumerate(FIELDS)}
_EMPTY: dict[str, Any] = dict.fromkeys(STORED_COLUMNS) | {"metadata": {}}
_EMPTY |= dict.fromkeys(("row_digest", "family_digest", "merged_into"))
_answered = itemgetter(*model.ANSWERED)

Result = Enrolled | FrontdeskError


class StoredChunk(NamedTuple):
    """What the database knows about the records of a chunk, at the time `now`.

    `members` are those that a key of the chunk touches, by id. `plans` are rows of
    `plans.find_owners`, by id. `probe_counts` are of `store.find_probe_counts`, `feeds` the
    accounts that have asked for events. `earlier` has the stored answers of keyed requests, None
    without any. `is_dry_run`: the members are partly those of a scratch database. Rows of members
    in `changed_since` are refused.
    """

    members: dict[int, StoredMember]
    plans: Mapping[int, Values]
    probe_counts: Found
    invitations: InvitationContext
    places: AccountPlaces
    feeds: Found
    earlier: EarlierAnswers | None
    now: datetime
    uniqueness: Uniqueness
    is_dry_run: bool
    changed_since: frozenset[int] = NOTHING


class DecidedChunk(NamedTuple):
    """Each record of a chunk with its result, in order, and the probes among them."""

    pairs: list[tuple[Submission, Result]]
    probes: Probes


def decide_chunk(
    stored: StoredChunk, submissions: Sequence[Submission], file: FileTerms | None
) -> DecidedChunk:
    """Decide each record, in order; `file` has the terms if they are rows of a file. A repeated
    keyed request gets its stored answer (AnsweredBefore), or Invalid.
    """
    state = ChunkState(stored, file)
    pairs: list[tuple[Submission, Result]] = []
    for submission in submissions:
        answered = None
        if stored.earlier is not None and submission.once is not None:
            answered = stored.earlier.result_of(submission.once)
        pairs.append((submission, answered or state.decide(submission)))
    return DecidedChunk([*map(state.with_dependents, pairs)], state.probes)


class Effect(NamedTuple):
    """What an accepted record did to the member. `changes` is `{field: [from, to]}`; the submission
    of a file's row has the values of its context.
    """

    outcome: Outcome
    submission: Submission
    stored: StoredMember
    changes: dict[str, list[Any]]


class Treatment(Enum):
    """What an answer says about keys that members of other accounts hold."""

    SHOWN = auto()  # each has a fault; the answer is counted
    IGNORED = auto()  # nothing: nothing is written, so the record is decided as if they were free
    WITHHELD = auto()  # the record is refused as a whole, unless it has faults of its own


class ChunkState:
    """The stored members that a chunk touches, kept up to date while its records are decided."""

    def __init__(self, stored: StoredChunk, file: FileTerms | None) -> None:
        self.keys = UniqueKeys(stored.members, stored.uniqueness)
        self.members = stored.members
        self.probes = Probes(stored.probe_counts, stored.now)
        self.plans = stored.plans
        self.invitations = stored.invitations
        self.places = stored.places
        self.now = stored.now
        self.at = stored_time(stored.now)
        self.days = {
            plan["account_id"]: account_day(stored.now, plan["time_zone"])
            for plan in stored.plans.values()
        }
        self.access = RowAccess(file, self.days, stored.plans)
        self.is_dry_run = stored.is_dry_run
        self.changed_since = stored.changed_since
        self.person_check = PersonCheck(stored.members.values())
        self.subscribers: dict[str, StoredMember] = {}  # by family digest
        for member in stored.members.values():
            self.note_family(member)

    def decide(self, submission: Submission) -> Enrolled | FrontdeskError:
        """The outcome of one record, or the error that refuses it. A refused record leaves no
        trace, unless it is a probe.
        """
        plan = self.plans.get(submission.plan_id)
        if plan is None or plan["account_id"] != submission.account_id:
            return NotFound("plan")
        submission, own, taken = self._look_up(submission)
        if own is not None and self.access.keeps_plan(submission, own.values):
            submission = submission._replace(plan_id=own.values["plan_id"])
        refusal = _not_allowed(submission, own)
        if refusal is not None:
            return refusal
        if own is not None and submission.file_id is not None:
            late = refusal_of(own, self.changed_since)
            warnings = late or self.person_check.check(submission, own)
            if isinstance(warnings, Invalid):
                return warnings
            submission = _warned(submission, warnings)
        if taken:
            effect = self._effect_with_taken_keys(submission, own, taken)
        elif own is None:
            effect = self._create(submission)
        else:
            effect = self._update(submission, own)
        return self._enrolled(effect) if isinstance(effect, Effect) else effect

    def with_dependents(self, pair: tuple[Submission, Result]) -> tuple[Submission, Result]:
        """The decided record; one that ends a subscriber has a warning if a dependent keeps access
        after all records of the chunk.
        """
        submission, result = pair
        family = family_of_ended(submission)
        if not family or not isinstance(result, Enrolled) or result.outcome is not Outcome.ENDED:
            return pair
        end = result.stored.values["expiry_date"] or OPEN
        dependents = (
            member.values
            for member in self.members.values()
            if member.values["family_digest"] == family
            and member.values["account_id"] == submission.account_id
            and member.values["subscriber_relationship"] != "Primary"
        )
        if not any(span.end > end for values in dependents for span in spans_of(values)):
            return pair
        warning = MemberWarning.of(codes.rows.DEPENDENTS_STAY)
        return submission, result._replace(warnings=(*result.warnings, warning))

    def _look_up(
        self, submission: Submission
    ) -> tuple[Submission, StoredMember | None, dict[str, int]]:
        """The account's member with the record's identifier; for a correction, with the former
        identifier. Then the accounts of other members that hold a unique key of the record, by
        field.

        The identifier of a merged member leads to the member that it was merged into, which keeps
        its own: the submission comes back without it.
        """
        record = submission.record
        key: str | None = submission.context.former_id
        own = self.keys.find(key, submission.account_id) if key else None
        if own is None:
            key = record.external_id
            own = self.keys.find(key, submission.account_id)
        if own is not None and own.values["external_id"] != key:
            given = {name: value for name, value in record.given.items() if name != "external_id"}
            submission = submission._replace(record=replace(record, given=given), row_digest=None)
        taken = self.keys.holders(submission.record.given, submission.account_id, own)
        return submission, own, taken

    def _effect_with_taken_keys(
        self, submission: Submission, own: StoredMember | None, taken: dict[str, int]
    ) -> Effect | Invalid | TooManyTaken:
        """The effect of a record with keys that other members hold: `taken` has their accounts, by
        field.
        """
        others = set(taken.values()) - {submission.account_id}
        treatment = self._treatment_of(submission, others)
        if others and treatment is Treatment.SHOWN:
            self.probes.count(submission, others, is_answered=True)
        shown = [
            name
            for name, account_id in taken.items()
            if treatment is Treatment.SHOWN or account_id == submission.account_id
        ]
        if "email" in shown and submission.drops_taken_email:
            submission = _without_email(submission)
            shown.remove("email")
        is_withheld = treatment is Treatment.WITHHELD
        if own is None:
            result = self._create(submission, shown, is_withheld=is_withheld)
        else:
            result = self._update(submission, own, shown, is_withheld=is_withheld)
        if isinstance(result, TooManyTaken):
            self.probes.count(submission, others, is_answered=False)
        return result

    def _treatment_of(self, submission: Submission, others: set[int]) -> Treatment:
        """Once the account has had its answers, a record can only learn of another account's key by
        being written or not.
        """
        if not others or not self.probes.is_at_limit(submission.account_id):
            return Treatment.SHOWN
        if self.is_dry_run or submission.action is Action.COMPARE:
            return Treatment.IGNORED
        return Treatment.WITHHELD

    def _create(
        self, submission: Submission, taken: Sequence[str] = (), *, is_withheld: bool = False
    ) -> Effect | Invalid | TooManyTaken:
        """The effect of a record of a new member. Other members hold its `taken` fields."""
        sent = submission.record.given
        submission = self._row_of_new(submission)
        given = submission.record.given
        if refusal := self._refusal(submission, given, None, taken):
            return refusal
        if is_withheld:
            return TooManyTaken(self.now)
        values = {
            "id": None,  # once the whole chunk is decided
            "account_id": submission.account_id,
            "plan_id": submission.plan_id,
            "uniqueness_scope": scope_of(submission.account_id, self.keys.uniqueness),
            **_EMPTY,
            **given,
            "created_at": self.at,
            "updated_at": self.at,
        }
        stored = StoredMember(values, is_new=True)
        self._store_digests(stored, submission, sent)
        self.keys.add(stored)
        changes = {name: [None, value] for name, value in given.items() if value is not None}
        changes.pop("email_folded", None)
        return Effect(Outcome.CREATED, submission, stored, changes)

    def _update(
        self,
        submission: Submission,
        stored: StoredMember,
        taken: Sequence[str] = (),
        *,
        is_withheld: bool = False,
    ) -> Effect | Invalid | TooManyTaken:
        """The effect of a record of a stored member. Other members hold its `taken` fields."""
        values = stored.values
        since = submission.unless_changed_since
        if since is not None and datetime.fromisoformat(str(values["updated_at"])) > since:
            return Effect(Outcome.UNCHANGED, submission, stored, changes={})
        submission = self._row_of_stored(submission, stored)
        submission, given, reopened = self.access.given_to_stored(submission, values)
        plan_id = submission.plan_id
        if values[HOME] and _says_own_home(submission):
            given = {**given, HOME: None}
        changed = {name: value for name, value in given.items() if values[name] != value}
        if changed or submission.record.faults:
            refusal = self._refusal(submission, {**values, **changed}, stored, taken)
            if refusal:
                return refusal
        if is_withheld:
            return TooManyTaken(self.now)
        changes = {
            name: [values[name], value] for name, value in changed.items() if name != "email_folded"
        }
        if moved := values["plan_id"] != plan_id:
            changes["plan_id"] = [values["plan_id"], plan_id]
            changed["plan_id"] = plan_id
        if submission.action is Action.COMPARE:
            return Effect(Outcome.UNCHANGED, submission, stored, changes)
        is_end = submission.action is Action.END
        ends = is_end and not changed.keys().isdisjoint(("expiry_date", BEFORE_ABSENCE))
        outcome = Outcome.ENDED if ends else Outcome.UPDATED
        if reopened or moved:
            outcome = Outcome.REOPENED if reopened else Outcome.MOVED
        elif changed.keys() <= {HOME}:  # clearing this mark is no change of the record
            outcome = Outcome.UNCHANGED
        if changed:
            self.keys.change(stored, changed | {"updated_at": self.at})
        self._store_digests(stored, submission, submission.record.given)
        return Effect(outcome, submission, stored, changes)

    def _row_of_new(self, submission: Submission) -> Submission:
        """The row of a file with the values that its context has for a new member. A POST stays as
        it is.
        """
        if submission.file_id is None:
            return submission
        context = submission.context
        record = submission.record
        given = dict(context.given_of_new or {})
        warnings = record.warnings
        subscriber = self.subscribers.get(context.address_of)
        if context.shares_home:
            given[HOME] = True
        elif subscriber is not None and _may_share_home(submission, subscriber.values):
            values = subscriber.values
            given |= {name: values[name] for name in model.ADDRESS if values[name] is not None}
            given[HOME] = True
            warnings = (*warnings, MemberWarning.of(codes.rows.ADDRESS_OF_SUBSCRIBER))
        given |= record.given
        submission = submission._replace(record=replace(record, given=given, warnings=warnings))
        return self.access.row_of_new(submission)

    def _row_of_stored(self, submission: Submission, own: StoredMember) -> Submission:
        """The row of a file with what its context has for the stored member. A POST stays as it is."""
        if submission.file_id is None:
            return submission
        return self.access.row_of_stored(_with_own_home(submission, own), own.values)

    def _store_digests(self, stored: StoredMember, submission: Submission, sent: Values) -> None:
        """Store the member's family, and the digest of its row; without one, a change clears an
        older row's digest.

        A row without an expiry_date gets no digest if the member has one: a later file may have to
        warn of it.
        """
        values = stored.values
        digest = submission.row_digest
        person = submission.context.person
        if person and person.family and values["family_digest"] != person.family:
            values["family_digest"] = person.family
            stored.changed.add("family_digest")
        self.note_family(stored)
        has_end = values["expiry_date"] is not None and "expiry_date" not in sent
        if digest is not None and (
            has_end or not self.plans[submission.plan_id]["accepting_patients"]
        ):
            digest = None  # each row of an inactive plan gets a warning
        if digest is not None or stored.changed:
            values["row_digest"] = digest
            stored.changed.add("row_digest")

    def note_family(self, member: StoredMember) -> None:
        values = member.values
        is_kept = values["family_digest"] is not None and values["merged_into"] is None
        if is_kept and values["subscriber_relationship"] == "Primary":
            self.subscribers[values["family_digest"]] = member

    def _enrolled(self, effect: Effect) -> Enrolled:
        """The result of an accepted record, with its warnings and the decision on an invitation."""
        outcome, submission, stored, changes = effect
        values = stored.values
        record = submission.record
        settings = self.invitations
        folded = values["email_folded"]
        expiry = values["expiry_date"]
        invitation: InvitationDecision = decide_invitation(
            is_new=outcome is Outcome.CREATED,
            has_email=folded is not None,
            suppressed=(submission.account_id, folded) in settings.suppressed,
            expired=expiry is not None and expiry < self.days[submission.account_id].earliest,
            asked=record.invite_immediately,
            batches_enabled=settings.batches_enabled.get(submission.account_id),
        )
        if invitation is Delivery.IMMEDIATE and not self.places.take(submission.account_id):
            invitation = QueuedReason.IMMEDIATE_LIMIT
        warnings = record.warnings
        if submission.file_id is None:
            # The rows of a file have warnings of the person check, and the column of the
            # identifiers is judged as a whole (files.check).
            if outcome is Outcome.CREATED:
                warnings += _ssn_warnings(values["external_id"])
            elif "dob" in changes:
                warnings += _identity_warnings(changes)
        if (
            not self.plans[submission.plan_id]["accepting_patients"]
            and submission.action is Action.ENROL
        ):
            warnings += (MemberWarning.of(codes.warnings.PLAN_INACTIVE),)
        end_warning = self.access.end_warning(submission, values)
        if end_warning is not None:
            warnings += (end_warning,)
        if "metadata" in record.given:
            # Keys in another order are no change: the answer has the order sent, the store keeps
            # the order of the history.
            values = values | {"metadata": record.given["metadata"]}
        is_written = outcome not in (Outcome.CREATED, Outcome.UNCHANGED)
        access = access_pair(values, changes) if is_written else None
        answered = _answered(values)
        return Enrolled(outcome, stored, answered, changes, warnings, invitation, access=access)

    def _refusal(
        self, submission: Submission, values: Values, own: StoredMember | None, taken: Sequence[str]
    ) -> Invalid | None:
        """The record's own faults, missing fields of a new record, keys in use (`taken`), and dates
        of the merged record in wrong order.
        """
        faults = list(submission.record.faults)
        if own is None:
            faults += missing_on_create(submission.record, submission.context.causes)
        faults += map(not_unique, taken)
        wrong_dates = check_dates(values.get("effective_date"), values.get("expiry_date"))
        if wrong_dates:
            faults.append(wrong_dates)
        return _invalid(faults) if faults else None


def _not_allowed(submission: Submission, own: StoredMember | None) -> FrontdeskError | None:
    """The refusal of a record that does more than its request lets it do, or of a row of a file that
    ends or compares no member of its plan.
    """
    refusal = _unintended(submission, own)
    if refusal is not None:
        return refusal
    # A member that has moved to another plan is neither ended nor compared by a file of its old
    # plan, unless it keeps a coverage of that.
    if submission.action is Action.ENROL:
        return None
    if own is not None:
        plan_ids = {own.values["plan_id"], *(each.plan_id for each in kept_coverages(own.values))}
        if submission.plan_id in plan_ids:
            return None
    return _invalid([*submission.record.faults, NOT_ENROLLED])


def _unintended(submission: Submission, own: StoredMember | None) -> FrontdeskError | None:
    """The refusal of a record that would do more than its request lets it do. It comes before the
    faults of fields, unless the external_id has one.
    """
    intent = submission.intent
    if intent is ANY_INTENT:
        return None
    if intent.eligibility_id not in (None, own and own.values["id"]):
        return Conflict(
            "The member was renamed or merged at the same time. Read it, then try again."
        )
    if own is None:
        if intent.creates:
            return None
        if submission.record.external_id is None:
            return _invalid([*submission.record.faults])
        detail = codes.faults.NO_SUCH_MEMBER.sentence
        return NotFound("member", detail, field="external_id")
    if not intent.updates:
        code = codes.faults.MEMBER_EXISTS
        return errors.PreconditionFailed(code.sentence, code=code, field="external_id")
    if not intent.moves and own.values["plan_id"] != submission.plan_id:
        code = codes.faults.OTHER_PLAN
        return Conflict(code.sentence, code=code, field="external_id")
    return None


def _warned(submission: Submission, warnings: Sequence[MemberWarning]) -> Submission:
    if not warnings:
        return submission
    record = submission.record
    warned = replace(record, warnings=(*record.warnings, *warnings))
    return submission._replace(record=warned)


def _without_email(submission: Submission) -> Submission:
    """The row without its address, which another member has. Families share one, and a member must
    not lose access for it (docs/decisions/0079). The address may be free another day, so the row
    gets no digest.
    """
    record = submission.record
    given = {
        name: value for name, value in record.given.items() if name not in ("email", "email_folded")
    }
    warnings = (*record.warnings, MemberWarning.of(codes.warnings.EMAIL_TAKEN))
    warned = replace(record, given=given, warnings=warnings)
    return submission._replace(record=warned, row_digest=None)


def _invalid(faults: list[Fault]) -> Invalid:
    """The refusal with the faults in the order of the field table; unknown fields last."""
    return Invalid(
        sorted(faults, key=lambda fault: _ORDER.get(fault.field.partition(".")[0], len(_ORDER)))
    )


def _with_own_home(submission: Submission, own: StoredMember) -> Submission:
    """The row without the address of the subscriber if the stored member has one of its own."""
    if not submission.context.shares_home or own.values[HOME]:
        return submission
    given = submission.record.given
    kept = {name: value for name, value in given.items() if name not in model.ADDRESS}
    return submission._replace(record=replace(submission.record, given=kept))


def _says_own_home(submission: Submission) -> bool:
    is_own = submission.action is Action.ENROL and not submission.context.shares_home
    return is_own and "zipcode" in submission.record.given


def _may_share_home(submission: Submission, subscriber: Values) -> bool:
    """Whether a new dependent without a zip code may have the address of the stored subscriber."""
    given = submission.record.given
    names = names_in(given.get("last_name") or "")
    return (
        not given.keys() & set(model.ADDRESS)
        and subscriber["account_id"] == submission.account_id
        and not names.isdisjoint(names_in(subscriber["last_name"]))
    )


def _ssn_warnings(external_id: str) -> tuple[MemberWarning, ...]:
    if len(external_id) in SSN_LENGTHS and looks_like_ssn(external_id):
        return (MemberWarning.of(codes.warnings.LOOKS_LIKE_SSN),)
    return ()


def _identity_warnings(changes: dict[str, list[Any]]) -> tuple[MemberWarning, ...]:
    """A dob that moves by one day is a typical time-zone fault. If the first name changes too, it
    may be another person.
    """
    before, after = changes["dob"]
    days = (date.fromisoformat(after) - date.fromisoformat(before)).days
    warnings: tuple[MemberWarning, ...] = ()
    if abs(days) == 1:
        warnings += (MemberWarning.of(codes.warnings.DOB_SHIFTED_ONE_DAY),)
    if "first_name" in changes:
        warnings += (MemberWarning.of(codes.warnings.IDENTITY_CHANGED),)
    return warnings
