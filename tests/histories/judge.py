"""Loads the files of a history as the product does, and compares after each file the stored access
with the truth.

The three laws, for each day from the file's day on: no day of access that the truth has is lost
without a held file, a refusal or a warning that names the member; no row changes another person; no
member gains a day without a warning. A day counts as the truth has it if the file, or one before,
has told it: what was never sent can't be known.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from sqlalchemy import select

from frontdesk import access, eligibility
from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Database, open_database
from frontdesk.db.engine import write_alone
from frontdesk.db.migrate import upgrade
from frontdesk.eligibility.access_days import Spans, spans_of
from frontdesk.eligibility.days import OPEN
from frontdesk.eligibility.tables import members
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import (
    BY_ABSENCE,
    KEPT,
    REFUSED,
    SKIPPED,
    WARNED,
    EligibilityFile,
    FileState,
)
from frontdesk.plans.changes import create_plan, create_provider_group
from frontdesk.plans.model import NewPlan
from tests.conftest import SetClock
from tests.factories import Customer
from tests.files.loading import Desk
from tests.histories import days
from tests.histories.drawing import History
from tests.histories.senders import Sender, SentFile
from tests.histories.world import BEGIN, PLANS, Person, World, union

EMPLOYERS = (0, 1)
DAYS_AFTER = 400  # after the last file
# Warnings that say nothing of access.
OF_OTHER_THINGS = frozenset(
    (
        "address_of_subscriber",
        "gender_unknown",
        "untidy_file",
        "similar_member",
        "dob_changed",
        "dob_shifted_one_day",
        "first_name_changed",
        "email_taken",
    )
)
_DETAILS = frozenset(plan[:4] for plan in PLANS)
# Columns that say nothing of the person and its access.
BOOKKEEPING = ("updated_at", "row_digest", "family_digest", "person_digest", "uniqueness_scope")
# The worker's derivation of members whose coverage begins or ends, if the product has one.
Derivation = Callable[[Database, Clock], object]


@dataclass(frozen=True, slots=True)
class Violation:
    """`law` is what was broken, `kind` groups violations with one cause, `text` tells the file, the
    person, the days and what the report said.
    """

    law: str
    kind: str
    text: str


class Court:
    """A migrated SQLite database in which each history has an account of its own."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def judge(self, history: History) -> list[Violation]:
        """The violations, in the order of the files."""
        return [*_Trial(self._db, history).violations()]

    def find(self, history: History, kind: str) -> Violation | None:
        """The first violation of the kind. The files behind it are not loaded."""
        violations = _Trial(self._db, history).violations()
        return next((each for each in violations if each.kind == kind), None)


@contextmanager
def court_folder() -> Iterator[Path]:
    """A temporary folder for courts, in memory where the system has such a folder."""
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() else None
    with TemporaryDirectory(dir=parent, prefix="histories-") as folder:
        yield Path(folder)


@contextmanager
def court(folder: Path) -> Iterator[Court]:
    """A court of this process in the folder."""
    db = open_database(f"sqlite:///{folder}/{os.getpid()}.db")
    upgrade(db)
    # Loads let other writers in between, and other threads go first; there are none.
    claims = "frontdesk.files.claims"
    with patch(f"{claims}.SQLITE_PAUSE_SECONDS", 0), patch(f"{claims}.NICENESS", 0):
        yield Court(db)
    db.close()


def make_account(db: Database, now: datetime) -> Customer:
    """An account with a plan for each employer. It has no API client, which would take longest."""
    with db.write() as tx:
        account = access.create_account(tx, name="Example Health", now=now)
        group = create_provider_group(tx, name="Doctors", external_id=None, now=now)
        plans = [
            create_plan(tx, NewPlan(account.id, group.id, f"plan-{n}", f"Plan {n}", None), now=now)
            for n in EMPLOYERS
        ]
    return Customer(account.id, [plan.id for plan in plans], "", "", "")


class _Trial:
    """One history: its world, its account, and who each stored member is."""

    def __init__(self, db: Database, history: History) -> None:
        self._db = db
        self._history = history
        self._day = BEGIN + timedelta(days=history.start)
        self._clock = SetClock(noon(self._day))
        self._customer = make_account(db, self._clock())
        self._desk = Desk(db, self._customer, self._clock)
        self._desk.options = RunOptions(Uniqueness.ACCOUNT)
        self._world = World(history.families)
        self._senders = [Sender(self._world, history.habits, each) for each in EMPLOYERS]
        self._owners: dict[int, Person] = {}  # by the member's id
        self._descriptions: dict[Person, set[tuple[str, str]]] = {}  # first names and birth dates
        self._number = 0
        self._is_cancelled = False
        self._last: dict[int, Mapping[str, Any]] = {}  # the members after the last file

    def violations(self) -> Iterator[Violation]:
        """Play the history. Each violation comes before the next file is loaded."""
        yield from self._send_files()
        for round_ in self._history.rounds:
            if self._is_cancelled:
                return  # what was told and what is stored differ from now on
            yield from self._pass_days(round_.gap)
            self._world.today = self._day
            for event in round_.events:
                self._world.apply(event)
            yield from self._send_files()
        yield from self._pass_days(DAYS_AFTER)

    def _send_files(self) -> Iterator[Violation]:
        self._world.today = self._day
        for person in self._world.people:
            known = self._descriptions.setdefault(person, set())
            known.add((person.first.casefold(), person.dob.isoformat()))
        for sender in self._senders:
            self._clock.advance(60)
            sent = sender.write(self._day)
            if sent is not None and not self._is_cancelled:
                yield from self._load(sent)

    def _load(self, sent: SentFile) -> Iterator[Violation]:
        before = self._last
        desk = self._desk
        options = {"plan": sent.employer, "full": sent.is_full, "mapping": sent.mapping}
        file = desk.load(sent.content, **options)
        self._number += 1
        is_held = file.state is FileState.HELD
        if is_held:
            self._is_cancelled = not self._history.approves
            file = desk.cancel(file) if self._is_cancelled else desk.approve(file)
        report = desk.report(file)
        after = self._last = self._stored()
        self._find_owners(after, sent)
        verdict = _Verdict(self, sent, file, report, before, after)
        if file.state is FileState.FAILED:
            yield verdict.failed()
        yield from verdict.changed_people()
        if not is_held:
            yield from verdict.changed_days()

    def _stored(self) -> dict[int, Mapping[str, Any]]:
        """The account's members by id."""
        query = select(members).where(members.c.account_id == self._customer.account_id)
        with self._db.read() as tx:
            rows = tx.execute(query).mappings().all()
        return {row["id"]: dict(row) for row in rows}

    def _find_owners(self, stored: Mapping[int, Mapping[str, Any]], sent: SentFile) -> None:
        """Note whose row has created each new member."""
        for id_, values in stored.items():
            if id_ in self._owners:
                continue
            people = sent.people_of(values["external_id"])
            same = [each for each in people if self.describes(values, each)]
            self._owners[id_] = (same or people)[0]

    def describes(self, values: Mapping[str, Any], person: Person) -> bool:
        """Whether the stored values are the first name and birth date that the person has, or had."""
        first = values["first_name"].casefold()
        dob = values["dob"]
        newborn = self._history.habits.newborn.casefold()
        described = self._descriptions[person]
        return (first, dob) in described or (first == newborn and ("", dob) in described)

    @property
    def owners(self) -> Mapping[int, Person]:
        return self._owners

    @property
    def world(self) -> World:
        return self._world

    @property
    def title(self) -> str:
        return f"File {self._number} of {self._day} ({self._history.habits.form})"

    @property
    def names_plans(self) -> bool:
        return self._history.habits.has_plan_names

    def access(
        self, person: Person, stored: Mapping[int, Mapping[str, Any]], plan: str | None = None
    ) -> int:
        """The days of access, under this plan, of all members that are this person."""
        own = (values for id_, values in stored.items() if self._owners.get(id_) is person)
        spans = [span for values in own for span in spans_of(values)]
        if plan is not None:
            plan_id = self._customer.plan_ids[PLANS.index(plan)]
            spans = [span for span in spans if span.plan_id == plan_id]
        return days_of(spans)

    def told_under(self, person: Person, plan: str) -> int:
        """The days of access under the plan that files have told."""
        stretches = (each for of in self._world.of(person) for each in of.of())
        return union(each.told for each in stretches if each.plan == plan)

    def _pass_days(self, count: int) -> Iterator[Violation]:
        """Move the clock on. On each day on which a span begins, or has ended the day before, the
        product's worker derives the members.
        """
        end = self._day + timedelta(days=count)
        if DERIVATION is not None:
            turning = {
                day
                for values in self._last.values()
                for span in spans_of(values)
                for day in (span.begin, day_after(span.end))
                if self._day.isoformat() < day <= end.isoformat()
            }
            for day in sorted(turning):
                yield from self._derive(date.fromisoformat(day))
        self._day = end
        self._clock.now = noon(end)

    def _derive(self, day: date) -> Iterator[Violation]:
        assert DERIVATION is not None
        self._clock.now = noon(day)
        before = self._last
        DERIVATION(self._db, self._clock)
        after = self._last = self._stored()
        for id_, values in after.items():
            was = days_of(spans_of(before[id_])) & days.since(day)
            spans = spans_of(values)
            now = days_of(spans) & days.since(day)
            begin = values["effective_date"]
            is_in_force = begin <= day.isoformat() <= (values["expiry_date"] or OPEN)
            if was != now or is_in_force != days.contains(now, day):
                text = f"Derived on {day}: {values['external_id']} had {days.shown(was)}, has "
                text += f"{days.shown(now)}; the record has {begin} to {values['expiry_date']}."
                yield Violation("derived", "derived | a worker derives a member", text)


def find_derivation() -> Derivation | None:
    """The worker's task that derives members on their day; None where the product has none."""
    derive_due = getattr(eligibility, "derive_due", None)
    if derive_due is None:
        return None

    def derive_all(db: Database, clock: Clock) -> None:
        after = None
        while True:
            page = write_alone(db, partial(derive_due, now=clock(), after=after))
            after = page.next_after
            if after is None:
                return

    return derive_all


DERIVATION = find_derivation()


@dataclass(slots=True)
class _Verdict:
    """What one file did."""

    trial: _Trial
    sent: SentFile
    file: EligibilityFile
    report: Sequence[Mapping[str, Any]]
    before: Mapping[int, Mapping[str, Any]]
    after: Mapping[int, Mapping[str, Any]]

    def failed(self) -> Violation:
        problem = self.file.problem or {}
        text = f"{self.trial.title} failed: {problem.get('message')}"
        return Violation("failed", f"failed: {problem.get('code')}", text)

    def changed_people(self) -> Iterator[Violation]:
        """Members that a row about somebody else has changed."""
        for id_, values in self.after.items():
            old = self.before.get(id_)
            if old is None:
                continue
            changed = [
                name for name in values if name not in BOOKKEEPING and values[name] != old[name]
            ]
            owner = self.trial.owners[id_]
            about = {*self.sent.people_of(old["external_id"])}
            became_another = not self.trial.describes(values, owner) and any(
                self.trial.describes(values, other)
                for other in self.trial.world.people
                if other is not owner
            )
            if changed and ((about and owner not in about) or became_another):
                others = ", ".join(map(str, about - {owner}))
                text = f"{old['external_id']} is {owner}; rows about {others or 'the same'} "
                text += f"changed {', '.join(f'{each}: {old[each]} -> {values[each]}' for each in changed)}."
                yield self._violation("other person", ", ".join(sorted(changed)), owner, text)

    def changed_days(self) -> Iterator[Violation]:
        trial = self.trial
        from_today = days.since(self.sent.day)
        for person in trial.world.people:
            before = trial.access(person, self.before) & from_today
            after = trial.access(person, self.after) & from_today
            told = trial.world.told(person)
            truth = trial.world.known(person)
            gives = union(each.gives for each in self.sent.about(person))
            untold = self.sent.told_before.get(person, 0) & ~told
            lost = before & ~after & told & truth
            not_given = gives & told & truth & from_today & ~after & ~lost
            gained = after & ~before & ~(told | truth)
            not_ended = untold & after & ~truth
            if before == after and after.bit_count() == 1:
                not_ended = (
                    0  # a record ends on its first day at the earliest, so it keeps that day
                )
            if lost and not self._excuses_loss(person):
                yield self._days("lost", person, lost)
            if not_given and not self._is_named(person):
                yield self._days("not given", person, not_given)
            if gained and not self._is_named(person):
                yield self._days("gained", person, gained)
            if not_ended and not self._is_named(person):
                yield self._days("not ended", person, not_ended)
            misplaced = self._misplaced(person, gives) & from_today & after & told & truth
            if misplaced and not self._is_named(person):
                yield self._days("wrong plan", person, misplaced)

    def _misplaced(self, person: Person, gives: int) -> int:
        """The days that the file has put, or left although it names them, under a plan that no file
        has told of them.
        """
        trial = self.trial
        found = 0
        for plan in PLANS if trial.names_plans else ():
            before = trial.access(person, self.before, plan)
            after = trial.access(person, self.after, plan)
            found |= after & (gives | ~before) & ~trial.told_under(person, plan)
        return found

    def _excuses_loss(self, person: Person) -> bool:
        """Whether a warning names the person, or a refused row beside which no absence took the
        access: a refused row ends nobody.
        """
        lines = [*self._lines(person)]
        if any(line["outcome"] in BY_ABSENCE and line["row"] is None for line in lines):
            return any(_is_warning(line) for line in lines)
        return self._is_named(person)

    def _is_named(self, person: Person) -> bool:
        """Whether a refusal, a skipped row, a line of one who was kept or a warning about access names
        the person.
        """
        return any(
            line["outcome"] in (REFUSED, SKIPPED, KEPT) or _is_warning(line)
            for line in self._lines(person)
        )

    def _lines(self, person: Person) -> Iterable[Mapping[str, Any]]:
        keys = {each.key for each in self.sent.about(person)}
        keys |= {
            str(self.after[id_]["external_id"])
            for id_, owner in self.trial.owners.items()
            if owner is person and id_ in self.after
        }
        return (line for line in self.report if line["external_id"] in keys)

    def _days(self, law: str, person: Person, found: int) -> Violation:
        rows = [row for each in self.sent.about(person) for row in each.rows]
        said = sorted(
            {
                f"{line['outcome']} {line['code']}".strip()
                for line in self._lines(person)
                if line["outcome"] != WARNED or _is_warning(line)
            }
        )
        kinds = sorted({*map(_without_details, rows)})
        kind = f"{'; '.join(kinds) or 'no row'} -> {', '.join(said) or 'no line'}"
        trial = self.trial
        text = f"{law} {days.shown(found)}.\n"
        text += f"  before {days.shown(trial.access(person, self.before))}, "
        text += f"after {days.shown(trial.access(person, self.after))}\n"
        text += f"  truth  {days.shown(trial.world.known(person))}; "
        text += f"told {days.shown(trial.world.told(person))}"
        return self._violation(law, kind, person, text)

    def _violation(self, law: str, kind: str, person: Person, text: str) -> Violation:
        rows = [f"{each.key}: {row}" for each in self.sent.about(person) for row in each.rows]
        lines = [
            f"{line['external_id']}: {line['outcome']} {line['code']} {','.join(line['changed'])}"
            for line in self._lines(person)
        ]
        full = f"{self.trial.title}, {self.file.state.value}: {person}: {text}\n"
        full += f"  the file: {'; '.join(rows) or 'no row'}\n"
        full += f"  the report: {'; '.join(lines) or 'nothing'}"
        form = self.trial.title.partition("(")[2].rstrip(")")
        return Violation(law, f"{law} | {form} | {kind}", full)


def _is_warning(line: Mapping[str, Any]) -> bool:
    code = str(line["code"])
    is_other = code in OF_OTHER_THINGS or code.endswith("_dropped")
    return line["outcome"] == WARNED and not is_other


def _without_details(row: str) -> str:
    """The words of a row without dates and plans, so that violations with one cause are alike."""
    return " ".join(word for word in row.split() if word[:4] not in _DETAILS and "-" not in word)


def days_of(spans: Spans) -> int:
    return union(
        days.between(
            date.fromisoformat(span.begin),
            None if span.end >= OPEN else date.fromisoformat(span.end),
        )
        for span in spans
    )


def day_after(day: str) -> str:
    if day >= OPEN:
        return day
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)
