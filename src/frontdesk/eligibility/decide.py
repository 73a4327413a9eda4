"""Decides what each record of a chunk does, in plain Python against the stored state.

Records are decided in order: each sees what the records before it did, as if it had been sent alone.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date, datetime
from operator import itemgetter
from typing import Any, NamedTuple

from frontdesk.config import Uniqueness
from frontdesk.eligibility.fields import STORED_COLUMNS, check_dates, in_field_order, missing_on_create
from frontdesk.eligibility.model import ANSWERED, Action, Enrolled, Outcome, StoredMember, Submission
from frontdesk.eligibility.probes import ChunkProbes
from frontdesk.eligibility.row_context import IDENTITY_CONFLICT, are_two_people, as_change, as_new, person_of
from frontdesk.eligibility.similar import PERSON_FIELDS, person_digest
from frontdesk.eligibility.unique_keys import KeyHolders, not_unique, scope_of
from frontdesk.errors import Fault, FrontdeskError, Invalid, NotFound
from frontdesk.invitations.enqueue import decide_invitation
from frontdesk.invitations.model import InvitationContext

NOT_ENROLLED = Fault(
    "external_id",
    "not_enrolled",
    "is not that of a member under this plan; send the row to the plan of the member, or enrol it first",
)

# Marks a member that a full file ended by omitting it, and keeps the expiry_date that it had. Any record that says an expiry_date
# takes the mark away: from then on the end is the sender's own (docs/decisions/0091).
BEFORE_ABSENCE = "expiry_before_absence"
OPEN = "9999-12-31"  # stands for an access without an end

_EMPTY: dict[str, Any] = dict.fromkeys(STORED_COLUMNS) | {"metadata": {}}
_answered = itemgetter(*ANSWERED)


class ChunkContext(NamedTuple):
    """What was read for a chunk: the account of each plan, those of them that accept no patients, and what decides about
    invitations. `at` is now, as stored.

    With `reopens_absent`, a record without an expiry_date opens the access of a member that a full file ended by omitting it.
    """

    plan_owners: dict[int, int]
    inactive_plans: AbstractSet[int]
    invitations: InvitationContext
    uniqueness: Uniqueness
    at: str
    digest_key: bytes
    reopens_absent: bool = False

    @property
    def today(self) -> str:
        return self.at[:10]


class ChunkState:
    """The stored members that a chunk touches, kept up to date while its records are decided."""

    def __init__(self, members: Iterable[StoredMember], context: ChunkContext, probes: ChunkProbes) -> None:
        self._context, self._probes = context, probes
        members = [*members]
        self._holders = KeyHolders(members)
        self._holders.lead(members)
        self._subscribers: dict[str, StoredMember] = {}  # by family digest
        for member in members:
            self._note_family(member)

    def decide(self, submission: Submission) -> Enrolled | FrontdeskError:
        """The outcome of one record, or the error that refuses it; a refused record leaves no trace."""
        if self._context.plan_owners.get(submission.plan_id) != submission.account_id:
            return NotFound("plan")
        scope = scope_of(submission.account_id, self._context.uniqueness)
        submission, stored = self._find(submission, scope)
        if (unheard := self._probes.check(submission, stored, scope, self._holders)) is not None:
            return unheard
        if submission.action is not Action.ENROL and not _is_under(submission, stored):
            return Invalid(in_field_order([*submission.record.faults, NOT_ENROLLED]))
        if stored is None:
            return self._create(submission, scope)
        if _is_somebody_else(submission, stored):
            return Invalid([IDENTITY_CONFLICT])
        if _is_newer(stored, submission.unless_changed_since):
            return self._enrolled(Outcome.UNCHANGED, submission, stored=stored, changes={})
        return self._update(submission, stored, scope)

    def _find(self, submission: Submission, scope: int) -> tuple[Submission, StoredMember | None]:
        """The stored member with the record's identifier; of a correction, with the identifier that it had before. A merged
        member leads to the one that was kept."""
        key = submission.record.external_id
        former = submission.context.former_id if submission.context is not None else ""
        stored = self._holders.find(former, scope) if former else None
        if stored is not None and stored.values["account_id"] == submission.account_id:
            key = former
        else:
            stored = None if key is None else self._holders.find(key, scope)
        if stored is not None and stored.values["external_id"] != key:
            submission = _without_external_id(submission)
        return submission, stored

    def _create(self, submission: Submission, scope: int) -> Enrolled | FrontdeskError:
        given_of_old = submission.record.given
        submission = as_new(submission, scope, holders=self._holders, subscribers=self._subscribers)
        given = submission.record.given
        faults = self._faults_of_new(submission, scope)
        if faults:
            return Invalid(in_field_order(faults))
        at = self._context.at
        values = {
            "id": None,  # once the whole chunk is decided
            "account_id": submission.account_id,
            "plan_id": submission.plan_id,
            "uniqueness_scope": scope,
            **_EMPTY,
            **given,
            "row_digest": None,
            "family_digest": None,
            "person_digest": person_digest(
                self._context.digest_key, {**given, "account_id": submission.account_id}
            ),
            "merged_into": None,
            "created_at": at,
            "updated_at": at,
        }
        changes = {
            name: [None, value]
            for name, value in given.items()
            if value is not None and name != "email_folded"
        }
        stored = StoredMember(values, is_new=True)
        self._keep_digests(stored, submission, given_of_old)
        self._holders.hold(stored)
        return self._enrolled(Outcome.CREATED, submission, stored=stored, changes=changes)

    def _update(self, submission: Submission, stored: StoredMember, scope: int) -> Enrolled | FrontdeskError:
        values, context = stored.values, self._context
        if values["account_id"] != submission.account_id:
            # Another account's record: the caller learns that the identifier is taken, and the faults of a new record.
            taken = not_unique("external_id")
            return Invalid(in_field_order([taken, *self._faults_of_new(submission, scope)]))
        submission = as_change(submission, self._holders, scope, stored)
        given, reopened = _given_after_absence(
            values, submission, reopens=context.reopens_absent, today=context.today
        )
        changed = {name: value for name, value in given.items() if values[name] != value}
        moved = values["plan_id"] != submission.plan_id
        if changed or submission.record.faults:
            faults = self._faults(submission, {**values, **changed}, scope, own=stored)
            if faults:
                return Invalid(in_field_order(faults))
        changes = {name: [values[name], value] for name, value in changed.items() if name != "email_folded"}
        if moved:
            changes["plan_id"] = [values["plan_id"], submission.plan_id]
        if submission.action is Action.COMPARE:
            return self._enrolled(Outcome.UNCHANGED, submission, stored=stored, changes=changes)
        if changed or moved:
            self._holders.release(stored)
            values.update(changed, plan_id=submission.plan_id, updated_at=context.at)
            if PERSON_FIELDS & changed.keys():
                values["person_digest"] = person_digest(context.digest_key, values)
            stored.is_changed = True
            self._holders.hold(stored)
        self._keep_digests(stored, submission, submission.record.given)
        outcome = _outcome(submission.action, changed.keys(), moved=moved, reopened=reopened)
        return self._enrolled(outcome, submission, stored=stored, changes=changes)

    def _keep_digests(self, stored: StoredMember, submission: Submission, given: dict[str, Any]) -> None:
        """Keep the member's family, and the digest of the row that it agrees with; without one, a change clears an older row's.

        A row that gives a stored member no expiry_date has none where there is that date: a later file may have to warn of it.
        """
        values, digest = stored.values, submission.row_digest
        if submission.plan_id in self._context.inactive_plans:
            digest = None  # each row is warned of, so none may be recognised
        person = submission.context and submission.context.person
        if person and person.family and values["family_digest"] != person.family:
            values["family_digest"] = person.family
            stored.is_changed = True
        self._note_family(stored)
        if values["expiry_date"] is not None and "expiry_date" not in given:
            digest = None
        if digest is not None or stored.is_changed:
            values["row_digest"] = digest
            stored.is_changed = True

    def _note_family(self, member: StoredMember) -> None:
        values = member.values
        is_kept = values["family_digest"] is not None and values["merged_into"] is None
        if is_kept and values["subscriber_relationship"] == "Primary":
            self._subscribers[values["family_digest"]] = member

    def _enrolled(
        self, outcome: Outcome, submission: Submission, *, stored: StoredMember, changes: dict[str, list[Any]]
    ) -> Enrolled:
        values, record, context = stored.values, submission.record, self._context
        folded, expiry = values["email_folded"], values["expiry_date"]
        invitation = decide_invitation(
            is_new=outcome is Outcome.CREATED,
            has_email=folded is not None,
            suppressed=(submission.account_id, folded) in context.invitations.suppressed,
            expired=expiry is not None and expiry < context.today,
            asked=record.invite_immediately,
            batches_enabled=context.invitations.batches_enabled.get(submission.account_id),
        )
        warnings = record.warnings
        if outcome is not Outcome.CREATED and "dob" in changes:
            warnings += _identity_warnings(changes)
        if submission.action is Action.ENROL and submission.plan_id in context.inactive_plans:
            warnings += ("plan_inactive",)
        if "metadata" in record.given:
            # Keys in another order are no change: the answer has the order sent, the store keeps the order of the history.
            values = values | {"metadata": record.given["metadata"]}
        return Enrolled(outcome, stored, _answered(values), changes, warnings, invitation)

    def _faults_of_new(self, submission: Submission, scope: int) -> list[Fault]:
        record, context = submission.record, submission.context
        missing = missing_on_create(record, () if context is None else context.causes)
        return missing + self._faults(submission, record.given, scope, own=None)

    def _faults(
        self, submission: Submission, values: dict[str, Any], scope: int, *, own: StoredMember | None
    ) -> list[Fault]:
        """The record's own faults, taken keys, and dates of the merged record that are in the wrong order."""
        faults = list(submission.record.faults)
        if taken := self._holders.taken(values, scope, own):
            # A new record's external_id is free: nothing was found by it, or the caller reports it.
            faults += [not_unique(name) for name in taken if own is not None or name != "external_id"]
        wrong_dates = check_dates(values.get("effective_date"), values.get("expiry_date"))
        return [*faults, wrong_dates] if wrong_dates else faults


def _is_under(submission: Submission, stored: StoredMember | None) -> bool:
    """Whether the member is the account's own and under the submission's plan.

    Only there can it be ended or compared: a plan's file is out of date about a member that has moved to another plan.
    """
    place = (submission.account_id, submission.plan_id)
    return stored is not None and (stored.values["account_id"], stored.values["plan_id"]) == place


def _is_somebody_else(submission: Submission, stored: StoredMember) -> bool:
    """Whether the account's own stored member is clearly not the person of the row. A POST says nothing of a person."""
    person = submission.context and submission.context.person
    if person is None or stored.values["account_id"] != submission.account_id:
        return False
    return are_two_people(person, person_of(stored.values))


def _without_external_id(submission: Submission) -> Submission:
    """The record of a merged member for the one that it leads to, which keeps its own identifier."""
    given = {name: value for name, value in submission.record.given.items() if name != "external_id"}
    return submission._replace(record=replace(submission.record, given=given), row_digest=None)


def _given_after_absence(
    values: Mapping[str, Any], submission: Submission, *, reopens: bool, today: str
) -> tuple[Mapping[str, Any], bool]:
    """What the record changes on the stored values, and whether it opens the access of a member that was absent.

    The access gets back the expiry_date that it had before, unless that is past by `today` (`YYYY-MM-DD`).
    """
    given, before = submission.record.given, values[BEFORE_ABSENCE]
    if submission.action is Action.END_ABSENT:
        return {**given, BEFORE_ABSENCE: values["expiry_date"] or OPEN}, False
    if before is None or submission.action is Action.COMPARE:
        return given, False
    said = given.get("expiry_date")
    if reopens and said is None and submission.action is Action.ENROL:
        if "expiry_date" in given or before == OPEN:
            return {**given, "expiry_date": None, BEFORE_ABSENCE: None}, True
        if before >= today:
            return {**given, "expiry_date": before, BEFORE_ABSENCE: None}, True
    if "expiry_date" in given:
        return {**given, BEFORE_ABSENCE: None}, False
    return given, False


def _outcome(action: Action, changed: AbstractSet[str], *, moved: bool, reopened: bool) -> Outcome:
    """The outcome for a stored member. That its end is no longer one by absence is no change of the record."""
    if reopened:
        return Outcome.REOPENED
    if moved:
        return Outcome.MOVED
    if changed <= {BEFORE_ABSENCE}:
        return Outcome.UNCHANGED
    return Outcome.UPDATED if action is Action.ENROL else Outcome.ENDED


def _is_newer(stored: StoredMember, moment: datetime | None) -> bool:
    return moment is not None and datetime.fromisoformat(str(stored.values["updated_at"])) > moment


def _identity_warnings(changes: dict[str, list[Any]]) -> tuple[str, ...]:
    """A dob that moves by one day is the classic time-zone bug. A first name that changes with it is another person."""
    before, after = changes["dob"]
    one_day = abs((date.fromisoformat(after) - date.fromisoformat(before)).days) == 1
    warnings: tuple[str, ...] = ("dob_shifted_one_day",) if one_day else ()
    return (*warnings, "identity_changed") if "first_name" in changes else warnings
