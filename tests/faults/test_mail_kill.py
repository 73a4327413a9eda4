"""kill -9 of workers in mid-SMTP, against a relay that misbehaves at every step: the promise of
delivery, exactly.

Never more than one automatic copy, unless the relay's answer was lost; then at most one more, with
the same Message-ID.
"""

import os
import random
import signal
import time

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.invitations import delivery, list_invitations
from frontdesk.invitations.model import Invitation, InvitationState, InvitationStep
from frontdesk.reach import EVERY
from tests.factories import Customer, lift_immediate_limit, make_customer, member_body
from tests.faults.callers import times
from tests.faults.workers import deliver, workers
from tests.invitations.mails import enrol_members
from tests.mail.relay import Relay
from tests.patience import wait_until

KILLS = times(25, long=500)  # on each of the two databases
LEASE_SECONDS = 1.0
MESSAGES_PER_KILL = 6

# How often a step goes wrong, and in which ways. Never "silent": waiting for time-outs would leave
# little time for kills.
FAULTS = {
    "greeting": (0.01, ["drop", "4yz", "garbage"]),
    "mail": (0.03, ["4yz", "drop", "garbage", "slow"]),
    "rcpt": (0.05, ["4yz", "5yz", "drop", "slow"]),
    "data": (0.04, ["4yz", "5yz", "drop", "garbage", "go on and drop"]),
    "content": (
        0.25,
        ["4yz", "5yz", "drop", "garbage", "slow", "take and drop", "take and garbage", "421"],
    ),
}


def invite(db: Database, customer: Customer, numbers: range) -> None:
    bodies = [member_body(number, invite_immediately=True) for number in numbers]
    with db.write() as tx:
        enrol_members(tx, customer, bodies, now=system_clock())


def stored(db: Database) -> list[tuple[Invitation, list[str]]]:
    """Every invitation with the reasons of its steps."""
    with db.read() as tx:
        rows = list_invitations(tx, EVERY, state=None, limit=100_000)
        return [
            (row, [step.reason for step in delivery.get_invitation(tx, EVERY, row.id)[1]])
            for row in rows
        ]


def count_open(db: Database) -> int:
    """How many invitations a worker would go on with by itself."""
    open_states = {InvitationState.PENDING, InvitationState.CLAIMED, InvitationState.OFFERED}
    with db.read() as tx:
        rows = list_invitations(tx, EVERY, state=None, limit=100_000)
    return sum(row.state in open_states or row.due_at is not None for row in rows)


def check_promise(db: Database, relay: Relay) -> None:
    found = stored(db)
    for row, reasons in found:
        copies = relay.taken[str(row.message_id)]
        repeats = reasons.count(InvitationStep.ONCE_MORE)
        assert repeats <= 1
        assert copies <= 1 + repeats, f"{copies} copies, {reasons}"
        assert copies or row.state != InvitationState.SENT, (
            f"called sent, but never taken: {reasons}"
        )
        if row.state in (InvitationState.PENDING, InvitationState.FAILED) and not repeats:
            assert copies == 0, f"taken, but {row.state}: {reasons}"
    assert set(relay.taken) <= {row.message_id for row, _ in found}
    assert InvitationState.SENT in {row.state for row, _ in found}


def test_killed_workers_send_nothing_twice_and_call_nothing_sent_that_is_not(
    database_url: str, db: Database
) -> None:
    customer = make_customer(db, now=system_clock())
    lift_immediate_limit(db, customer)  # a nightly run makes more than an hour's invitations
    chance = random.Random(11)
    of_relay = random.Random(5)

    def plan(step: str) -> str | None:
        often, ways = FAULTS.get(step, (0.0, [""]))
        return of_relay.choice(ways) if of_relay.random() < often else None

    with (
        Relay(plan, slow_seconds=0.05) as relay,
        workers(deliver, database_url, relay.port, LEASE_SECONDS, 1) as start,
    ):
        running = [start(), start()]
        for number in range(KILLS):
            invite(
                db, customer, range(number * MESSAGES_PER_KILL, (number + 1) * MESSAGES_PER_KILL)
            )
            time.sleep(chance.uniform(0.0, 0.15))  # a moment of its own for each kill
            running.pop(0).kill()
            running.append(start())
        relay.plan = lambda _step: None
        wait_until(
            lambda: count_open(db) == 0,
            "every invitation to be settled",
            progress=lambda: count_open(db),
        )
    check_promise(db, relay)


@pytest.mark.parametrize(
    ("step", "state"), [("rcpt", InvitationState.SENT), ("data", InvitationState.AMBIGUOUS)]
)
def test_a_worker_that_slept_past_its_lease_changes_nothing(
    database_url: str, db: Database, step: str, state: InvitationState
) -> None:
    customer = make_customer(db, now=system_clock())
    ahead = [step]
    with (
        Relay(
            lambda at: "slow" if ahead == [at] and ahead.pop() else None, slow_seconds=0.5
        ) as relay,
        workers(deliver, database_url, relay.port, 1.5, 1000) as start,
    ):
        sleeper = start()
        invite(db, customer, range(1, 2))
        wait_until(lambda: not ahead, "the worker to be at the step")
        os.kill(sleeper.pid or 0, signal.SIGSTOP)
        other = start()
        wait_until(lambda: stored(db)[0][0].state == state, "another worker to deal with it")
        other.kill()
        [(before, steps)] = stored(db)
        os.kill(sleeper.pid or 0, signal.SIGCONT)
        # What it does after that, it does when it is through with the first.
        invite(db, customer, range(2, 3))
        wait_until(lambda: stored(db)[0][0].state == InvitationState.SENT, "the worker to be awake")
        _, (after, steps_after) = stored(db)
    assert (after, steps_after) == (before, steps)
    assert relay.taken[str(before.message_id)] == 1
