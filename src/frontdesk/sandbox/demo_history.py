"""Two weeks of history of the demo's account, for the console: files of every state, mails, visits.

The product's own functions make it, with a clock that is set: what is stored is what two weeks of
use would have left. It is made once, with the account (docs/sandbox.md, "The demo's history").
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from typing import Any

from frontdesk import audit
from frontdesk.audit import Requester, user_actor
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.eligibility import enrol, parse_member
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.files.actions import Upload, approve_file, begin_file, cancel_file, undo_file
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import EligibilityFile, FileKey, NewFile
from frontdesk.files.run import run_next
from frontdesk.formats.model import FileMode
from frontdesk.invitations import find_of_members, set_deliverability, suppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.plans.model import Plan
from frontdesk.queues.snapshot import QueueSnapshots
from frontdesk.reach import Reach
from frontdesk.sandbox import demo_files as files
from frontdesk.sandbox.demo_data import BEGUN, MADE, Demo, open_doors, set_up_demo
from frontdesk.sandbox.demo_users import DemoUser
from frontdesk.sandbox.simulate import EventFeeder, open_practices
from frontdesk.usage import counter_of
from frontdesk.users.model import Role

LENGTH = timedelta(days=14)
VISITS = timedelta(hours=26)  # the chart of a plan shows 24
STEP = timedelta(minutes=10)  # of the visits and their estimates
TOLD_AFTER_SECONDS = 1.0
SEED = 38

# What the demo's account sends at most, so that the last new members wait for their turn.
BATCH_SIZE = 20
BATCH_INTERVAL = timedelta(minutes=30)


def begin_history(tx: Tx, requester: Requester) -> Demo:
    """The demo's account as it was LENGTH before the requester's time, which has to be new. Its
    queues are empty. Call `History.make` next.
    """
    past = requester._replace(now=requester.now - LENGTH)
    made = set_up_demo(tx, past, with_queues=False)
    audit.record_action(tx, past, BEGUN, made.account.id, made.account.id)
    return made


@dataclass(slots=True)
class PastClock:
    """A clock that stands until it is set."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """`deliver`: delivers what is due at the time of `clock`, to the mailbox of the sandbox.
    `tell`: called once, if the history takes longer than TOLD_AFTER_SECONDS.
    """

    run: RunOptions
    clock: PastClock
    deliver: Callable[[], None]
    tell: Callable[[], None]


class History:
    """Makes the history, in the order of its time. `users` hand in and approve the files."""

    def __init__(
        self, db: Database, made: Demo, users: list[DemoUser], options: HistoryOptions
    ) -> None:
        self._db = db
        self._account_id = made.account.id
        self._plans = {plan.external_id: plan for plan in made.plans}
        self._client = made.client.client_id
        self._users = {user.role: user_actor(user.user_id) for user in users}
        self._options = options
        self._clock = options.clock
        self._numbers = count(1)
        self._untold_until: float | None = time.monotonic() + TOLD_AFTER_SECONDS
        self._end = options.clock() + LENGTH
        self._covered_from = date(options.clock().year, 1, 1)
        self._visits: _PastVisits | None = None
        self._posted: list[int] = []
        self._invented = 0
        invented = self._invent(files.BRONZE_PEOPLE + files.SILVER_PEOPLE)
        first, second, again = files.namesakes(self._covered_from)
        self._bronze = [first, second, *invented[: files.BRONZE_PEOPLE]]
        self._silver = [again, *invented[files.BRONZE_PEOPLE :]]

    def make(self) -> None:
        """All of it. Raises what a step raises; the history is incomplete then."""
        for before_end, step in self._steps():
            self._go_to(self._end - before_end)
            step()
        self._go_to(self._end)
        if self._visits is not None:
            self._visits.close()
        counter_of(self._db.engine).save_rest(self._db, self._clock())
        entry = self._by("sandbox").entry(MADE, self._account_id, self._account_id)
        write_alone(self._db, partial(audit.record, entries=[entry], now=self._clock()))
        self._db.announce_work()

    def _steps(self) -> Iterator[tuple[timedelta, Callable[[], None]]]:
        """What happens, and how long before the end."""
        hours = [
            (335.0, self._allow_batches),
            (334.0, self._first_lists),
            *((333.5 - number / 2, self._options.deliver) for number in range(10)),
            (287.0, self._nightly_list),
            (286.0, self._options.deliver),
            (240.0, self._changes_with_faults),
            (215.0, self._unreadable_file),
            (192.0, self._wrong_plan),
            (167.0, self._next_years_list),
            (144.0, self._dry_run),
            (120.0, self._closed_site),
            (72.0, self._single_people),
            (71.9, self._options.deliver),
            (71.0, self._reader_unsubscribes),
            (70.0, self._blocked_address),
            (47.0, self._nightly_list),
            (46.0, self._options.deliver),
            (9.0, self._needs_mapping),
            (3.0, self._half_a_list),
            (0.3, self._new_hires),
            (0.2, self._options.deliver),
            (0.01, self._large_file),
        ]
        return ((timedelta(hours=before_end), step) for before_end, step in hours)

    def _go_to(self, moment: datetime) -> None:
        """Set the clock; the visits of the time between happen."""
        if self._untold_until is not None and time.monotonic() > self._untold_until:
            self._untold_until = None
            self._options.tell()
        while (step := self._next_step()) < moment:
            self._clock.now = step
            if self._visits is None:
                self._visits = self._begin_visits()
            self._visits.happen(self._end)
        self._clock.now = moment

    def _next_step(self) -> datetime:
        """The next whole step of the visits."""
        seconds = STEP.total_seconds()
        begin = max(self._clock(), self._end - VISITS).timestamp()
        return datetime.fromtimestamp((begin // seconds + 1) * seconds, UTC)

    def _begin_visits(self) -> "_PastVisits":
        open_all = partial(open_doors, plans=self._plans.values(), now=self._clock())
        write_alone(self._db, open_all)
        return _PastVisits(self._db, self._account_id, self._plans, self._clock)

    # Files.

    def _first_lists(self) -> None:
        self._load(
            "demo-bronze", files.csv_of(self._bronze), "bronze-first-list.csv", FileMode.FULL
        )
        self._load("demo-silver", files.csv_of(self._silver), "silver-first-list.csv")

    def _nightly_list(self) -> None:
        """Two people are new, three have changed, two are not listed any more."""
        new = self._invent(2)
        moved = [person | {"city": "Salem", "zipcode": "01970"} for person in self._bronze[10:13]]
        self._bronze = [*self._bronze[:10], *moved, *self._bronze[13:-2], *new]
        content = files.csv_of(self._bronze)
        self._load("demo-bronze", content, "nightly-bronze.csv", FileMode.FULL, by=self._client)

    def _changes_with_faults(self) -> None:
        people = files.with_faults(self._silver[5:11])
        self._load("demo-silver", files.csv_of(people), "silver-corrections.csv")

    def _unreadable_file(self) -> None:
        self._load("demo-silver", files.NOT_READABLE, "silver-list.pdf")

    def _wrong_plan(self) -> None:
        """People of another employer, taken back an hour later."""
        file = self._load("demo-silver", files.csv_of(self._invent(6)), "northwind-joiners.csv")
        self._pass(timedelta(hours=1))
        self._run(self._decide(undo_file, file, Role.EDITOR))

    def _next_years_list(self) -> None:
        """A list of next year that came too early: held, and cancelled some hours later."""
        begin = date(self._end.year + 1, 1, 1)
        content = files.csv_of(files.beginning(self._bronze, begin))
        file = self._load("demo-bronze", content, f"bronze-{begin.year}.csv", FileMode.FULL)
        self._pass(timedelta(hours=4))
        self._decide(cancel_file, file, Role.EDITOR)

    def _dry_run(self) -> None:
        content = files.csv_of([*self._silver, *self._invent(3)])
        self._load("demo-silver", content, "silver-december.csv", FileMode.FULL, dry_run=True)

    def _closed_site(self) -> None:
        """A list without the thirty people of a site that was closed: held, then approved."""
        self._bronze = self._bronze[:-30]
        content = files.csv_of(self._bronze)
        file = self._load("demo-bronze", content, "bronze-site-closed.csv", FileMode.FULL)
        self._pass(timedelta(hours=2))
        self._run(self._decide(approve_file, file, Role.APPROVER))

    def _needs_mapping(self) -> None:
        content = files.x12_of(self._invent(12))
        self._load("demo-gold", content, "gold-enrolment.834", mapping={})

    def _half_a_list(self) -> None:
        """A nightly list without most of its rows: held, because so many would lose access."""
        content = files.csv_of(self._bronze[: len(self._bronze) // 3])
        self._load("demo-bronze", content, "nightly-bronze.csv", FileMode.FULL, by=self._client)

    def _new_hires(self) -> None:
        """More new members with an address than one batch takes."""
        hires = [
            person | {"email": f"hire.{number}@example.com"}
            for number, person in enumerate(self._invent(BATCH_SIZE + 6), 1)
        ]
        content = files.csv_of(hires)
        self._load("demo-silver", content, "silver-new-hires.csv", FileMode.CHANGE)

    def _large_file(self) -> None:
        """It waits, and runs as soon as there is a worker. It changes nothing: a dry run."""
        content = files.large_csv(self._covered_from)
        self._hand_in("demo-gold", content, "gold-merger.csv", dry_run=True)

    def _load(
        self, plan: str, content: bytes, name: str, *mode: FileMode, **more: Any
    ) -> EligibilityFile:
        return self._run(self._hand_in(plan, content, name, *mode, **more))

    def _hand_in(
        self,
        plan: str,
        content: bytes,
        name: str,
        mode: FileMode | None = None,
        *,
        by: str | None = None,
        **more: Any,
    ) -> EligibilityFile:
        """A file that waits for a worker, from the editor or another actor."""
        requester = self._by(by or self._users[Role.EDITOR])
        new = NewFile(self._account_id, self._plans[plan].id, file_name=name, mode=mode)
        new = replace(new, **more)
        file = write_alone(self._db, partial(begin_file, new=new, requester=requester))
        upload = Upload(self._db, file)
        upload.write(content)
        return upload.finish(requester)

    def _decide(
        self, action: Callable[..., EligibilityFile], file: EligibilityFile, role: Role
    ) -> EligibilityFile:
        """What a user of this role does with the file."""
        key = FileKey(file.id, Reach.of(self._account_id))
        requester = self._by(self._users[role])
        return write_alone(self._db, partial(action, key=key, requester=requester))

    def _run(self, file: EligibilityFile) -> EligibilityFile:
        run_next(self._db, self._clock, self._options.run, only=file.id)
        return file

    # People and their mails.

    def _allow_batches(self) -> None:
        requester = self._by(self._users[Role.OPERATOR])

        def allow(tx: Tx) -> None:
            changes = {"enabled": True, "batch_size": BATCH_SIZE}
            seconds = int(BATCH_INTERVAL.total_seconds())
            set_deliverability(tx, self._account_id, batch_interval_seconds=seconds, **changes)
            audit.record_action(
                tx,
                requester,
                "deliverability.changed",
                self._account_id,
                self._account_id,
                fields=["batch_interval_seconds", "batch_size", "enabled"],
            )

        write_alone(self._db, allow)

    def _single_people(self) -> None:
        """People whose mails go different ways: sent, bounced, refused, complained about."""
        names = ("elena.fischer", "bounce+moreno", "refuse+tanaka", "complaint+brooks", "iris.cole")
        self._posted = [
            self._post(person | {"email": f"{name}@example.com"})
            for name, person in zip(names, self._invent(len(names)), strict=True)
        ]

    def _reader_unsubscribes(self) -> None:
        """As by the link of the mail."""
        member_id = self._posted[0]
        requester = self._by("unsubscribe-link")

        def unsubscribe(tx: Tx) -> None:
            [invitation] = find_of_members(tx, [member_id])
            address = "elena.fischer@example.com"
            reason = SuppressionReason.UNSUBSCRIBE
            suppress(tx, address, reason, now=requester.now, account_id=self._account_id)
            audit.record_action(tx, requester, "suppression.added", self._account_id, invitation.id)

        write_alone(self._db, unsubscribe)

    def _blocked_address(self) -> None:
        """An operator blocks an address before its mail leaves, so that the mail is cancelled."""
        requester = self._by(self._users[Role.OPERATOR])
        address = "do.not.mail@example.com"

        def block(tx: Tx) -> None:
            suppress(tx, address, SuppressionReason.BY_HAND, now=requester.now)
            audit.record_action(tx, requester, "suppression.added", count=1)

        write_alone(self._db, block)
        [person] = self._invent(1)
        self._post(person | {"email": address})
        self._options.deliver()

    def _post(self, person: Mapping[str, str]) -> int:
        """The id of the member, who is written and invited as by a POST of the client."""
        now = self._clock()
        given = {name: value for name, value in person.items() if value}
        record = parse_member({**given, "invite_immediately": True}, today=now.date().isoformat())
        requester = self._by(self._client)
        plan_id = self._plans["demo-gold"].id
        new = Submission(self._account_id, plan_id, record, requester.actor, requester.request_id)
        uniqueness = self._options.run.uniqueness
        [result] = write_alone(
            self._db, lambda tx: enrol(tx, [new], now=now, uniqueness=uniqueness)
        )
        if not isinstance(result, Enrolled):
            raise result
        return int(result.stored.values["id"])

    def _invent(self, number: int) -> list[files.Person]:
        """So many people that the history has not had yet."""
        known = self._invented
        self._invented += number
        return files.invented(number, after=known, covered_from=self._covered_from)

    def _pass(self, duration: timedelta) -> None:
        self._go_to(self._clock() + duration)

    def _by(self, actor: str) -> Requester:
        return Requester(actor, f"demo-{next(self._numbers)}", self._clock())


class _PastVisits:
    """The visits of the demo's plans and the estimates that were given, step by step."""

    def __init__(
        self, db: Database, account_id: int, plans: Mapping[str, Plan], clock: PastClock
    ) -> None:
        self._db = db
        self._account_id = account_id
        self._plan_ids = [plan.id for plan in plans.values()]
        self._clock = clock
        self._snapshots = QueueSnapshots(clock, int(STEP.total_seconds()))
        reach = Reach.of(account_id)
        # Not a secret: each demo has the same patients.
        chance = Random(SEED)  # noqa: S311
        practices = db.ask(lambda tx: open_practices(tx, reach, chance, clock()))
        self._feeder = EventFeeder(db, practices, speed=1, clock=clock)

    def happen(self, end: datetime) -> None:
        """What happens until now; and the estimates, unless they would be shown after the end."""
        self._feeder.feed()
        if self._clock() + STEP <= end:
            self._snapshots.read(self._db, self._account_id, self._plan_ids)

    def close(self) -> None:
        self._snapshots.close()
