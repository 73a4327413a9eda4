"""The hourly limit under several workers, clocks that jump and workers that die: never more than N
in any 60 minutes.
"""

import random
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk import invitations
from frontdesk.access.accounts import set_immediate_limit
from frontdesk.db import Database
from frontdesk.eligibility import find_expired
from frontdesk.invitations.hourly_window import HourlyWindows
from frontdesk.invitations.model import (
    AttemptOutcome,
    ClaimedInvitation,
    DeliveryPolicy,
    InvitationStep,
)
from frontdesk.invitations.protocol import DeliveryContext, claim, expire_leases, offer_and_settle
from tests.factories import NOW, Customer, make_customer, member_body
from tests.faults.callers import times
from tests.invitations.mails import enrol_members

EXAMPLES = times(20, long=5000)  # on each of the two databases
HOUR = 3600.0
WORKERS = 4
LIMIT = 5
BATCH = 3
INTERVAL = 60
MEMBERS = 25

_numbers = count(1)


class Simulated:
    """Workers that share a database; time is set, and the wall clock is as wrong as a test wants."""

    def __init__(self, db: Database, customer: Customer, *, immediate: bool = False) -> None:
        self.db = db
        self.customer = customer
        self.real = 0.0
        self.offset = 0.0
        self.accepted: list[float] = []
        leases: dict[str, Any] = {"lease_seconds": 300, "offer_lease_seconds": 300}
        self.policy = DeliveryPolicy("example.com", **leases, max_attempts=1000)
        self.contexts = [self._context() for _ in range(WORKERS)]
        self.in_hand: list[list[ClaimedInvitation]] = [[] for _ in range(WORKERS)]
        with db.write() as tx:
            # What an earlier example left is nobody's business here.
            tx.exec_driver_sql(
                "UPDATE invitations SET state = 'cancelled', due_at = NULL, epoch = epoch + 1"
            )
            if immediate:
                set_immediate_limit(tx, customer.account_id, LIMIT)
            else:
                limits = {
                    "batch_size": BATCH,
                    "batch_interval_seconds": INTERVAL,
                    "hourly_limit": LIMIT,
                }
                invitations.set_deliverability(tx, customer.account_id, enabled=True, **limits)
            asking = {"invite_immediately": True} if immediate else {}
            bodies = [member_body(next(_numbers), **asking) for _ in range(MEMBERS)]
            enrol_members(tx, customer, bodies, now=NOW)

    @property
    def wall(self) -> datetime:
        return NOW + timedelta(seconds=self.real + self.offset)

    def advance(self, seconds: float, unseen: float) -> None:
        """Time passes; the workers look at the windows, the last time `unseen` seconds before the
        end.
        """
        if not seconds:
            return
        self.real += max(0.0, seconds - unseen)
        with self.db.read() as tx:
            for context in self.contexts:
                context.windows.observe(tx)
        self.real += min(seconds, unseen)

    def claim(self, number: int) -> None:
        if self.in_hand[number]:
            return
        with self.db.write() as tx:
            expire_leases(tx, self.contexts[number], now=self.wall)
            claimed = claim(
                tx, self.contexts[number], now=self.wall, count=10, find_expired=find_expired
            )
        with self.db.write() as tx:
            granted, _ = offer_and_settle(tx, self.contexts[number], claimed, [], now=self.wall)
        self.in_hand[number] = [one for one in claimed if one.id in granted]

    def accept(self, number: int) -> None:
        """The relay takes all that the worker has in hand; the worker has not written it down yet."""
        self.accepted += [self.real for _ in self.in_hand[number]]

    def settle(self, number: int, kind: InvitationStep) -> None:
        outcomes = [AttemptOutcome(one, kind, offered=True) for one in self.in_hand[number]]
        self.in_hand[number] = []
        with self.db.write() as tx:
            offer_and_settle(tx, self.contexts[number], [], outcomes, now=self.wall)

    def restart(self, number: int) -> None:
        """Killed and started again: what it knew and had in hand is gone."""
        self.contexts[number] = self._context()
        self.in_hand[number] = []

    def most_in_an_hour(self) -> int:
        moments = sorted(self.accepted)
        return max(
            (sum(start <= m <= start + HOUR for m in moments) for start in moments), default=0
        )

    def _context(self) -> DeliveryContext:
        windows = HourlyWindows(lambda: self.real)
        return DeliveryContext(self.policy, windows, jitter=random.Random(1))


worker_numbers = st.integers(0, WORKERS - 1)
steps = st.one_of(
    st.tuples(
        st.just("deliver"), worker_numbers, st.sampled_from([0.0, 5.0, 0.0, 200.0, 0.0, 290.0])
    ),
    st.tuples(st.just("refused"), worker_numbers),
    st.tuples(st.just("die after"), worker_numbers),
    st.tuples(st.just("restart"), worker_numbers),
    st.tuples(st.just("pass"), st.sampled_from([1.0, 30.0, 61.0, 600.0, 1800.0, 3500.0, 3601.0])),
)
jumps = st.sampled_from([3600.0, -3600.0, -86_400.0, 86_400.0, 30.0, 1800.0])


@given(
    st.lists(st.tuples(steps, st.floats(0, 1.9)), min_size=5, max_size=30),
    st.lists(jumps, max_size=5),
    st.randoms(),
    st.booleans(),
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_never_more_than_the_limit_in_any_hour(
    db: Database,
    actions: list[tuple[tuple[object, ...], float]],
    jumps: list[float],
    chance: random.Random,
    immediate: bool,
) -> None:
    world = Simulated(db, make_customer(db, now=NOW), immediate=immediate)
    jumping = {chance.randrange(len(actions)): jump for jump in jumps}
    for number, (action, unseen) in enumerate(actions):
        world.offset += jumping.get(number, 0.0)
        perform(world, action, unseen)
    assert world.most_in_an_hour() <= LIMIT


def perform(world: Simulated, action: tuple[object, ...], unseen: float) -> None:
    match action:
        case ("deliver", int(number), float(seconds)):
            world.claim(number)
            world.advance(seconds / 2, unseen)
            world.accept(number)
            world.advance(seconds / 2, unseen)
            world.settle(number, InvitationStep.ACCEPTED)
        case ("refused", int(number)):
            world.claim(number)
            world.settle(number, InvitationStep.REFUSED_FOR_NOW)
        case ("die after", int(number)):
            world.claim(number)
            world.accept(number)
            world.restart(number)
        case ("restart", int(number)):
            world.restart(number)
        case ("pass", float(seconds)):
            world.advance(seconds, unseen)


@pytest.mark.parametrize("immediate", [False, True])
def test_the_whole_limit_is_used_hour_after_hour(db: Database, *, immediate: bool) -> None:
    world = Simulated(db, make_customer(db, now=NOW), immediate=immediate)
    for turn in range(3 * 40):
        world.advance(90, 1.0)
        for number in (turn % WORKERS, (turn + 1) % WORKERS):
            perform(world, ("deliver", number, 0.0), 0)
    assert world.most_in_an_hour() == LIMIT
    assert len(world.accepted) >= 2 * LIMIT + 4


@pytest.mark.parametrize("immediate", [False, True])
@pytest.mark.parametrize("jump", [3600.0, 86_400.0, -86_400.0])
def test_a_clock_that_leaps_frees_no_place(db: Database, jump: float, *, immediate: bool) -> None:
    world = Simulated(db, make_customer(db, now=NOW), immediate=immediate)
    for _ in range(3):
        perform(world, ("deliver", 0, 0.0), 0)
        world.advance(90, 1.0)
    assert len(world.accepted) == LIMIT
    world.offset += jump
    for number in range(WORKERS):
        perform(world, ("deliver", number, 0.0), 0)
    assert len(world.accepted) == LIMIT
