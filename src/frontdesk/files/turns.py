"""Accounts take turns: a worker has the loads of several files open, and runs one at a time.

It pauses the load of one file while files of other accounts have their turns. A paused load keeps
its file, and all that it has read: nothing is read twice. Each load is a greenlet, which pauses at a
checkpoint (docs/decisions/0137). The turns themselves are stored, so that they count for all
workers.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial

from greenlet import greenlet

from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.db.engine import database_time
from frontdesk.errors import Unavailable
from frontdesk.files import store
from frontdesk.files.claims import FileClaim, RunOptions, Stopped, claim_next, find_claimable
from frontdesk.files.model import FileStep
from frontdesk.files.run import at_full_speed, run_file

MOST_OPEN = 8  # loads of a worker; each keeps 16 bytes a row, and two chunks


class OpenLoad:
    """The load of a claimed file, in a greenlet: at a checkpoint it hands over to the worker until
    the account's next turn.
    """

    def __init__(self, claim: FileClaim, is_turn_over: Callable[["OpenLoad"], bool]) -> None:
        self.claim = claim
        self._is_turn_over = is_turn_over
        self._rows_before = claim.file.rows_done
        self._greenlet = greenlet(run_file)
        claim.yield_turn = self._yield_turn

    @property
    def is_open(self) -> bool:
        return not self._greenlet.dead

    @property
    def can_be_given_back(self) -> bool:
        """It has advanced, and another worker can go on with what it has done."""
        file = self.claim.file
        return (
            file.step is FileStep.APPLY and not file.dry_run and file.rows_done > self._rows_before
        )

    def take_turn(self) -> None:
        """Returns when the turn is over, or the load has ended. Raises what the load raised."""
        claim = self.claim
        if self._greenlet:  # it has begun
            with claim.db.write() as tx:
                claim.turn_at = database_time(tx)
                store.take_turn(tx, claim.file.account_id, claim.turn_at)
        claim.running.set()
        self._greenlet.switch(claim)

    def give_back(self) -> None:
        """Let the file wait for another turn, of any worker, which checks the file anew and goes on
        with its rows.
        """
        if self.is_open:
            with suppress(Unavailable):  # the lease will run out
                self._greenlet.throw(Stopped)

    def _yield_turn(self) -> None:
        if self._is_turn_over(self):
            self.claim.running.clear()
            self._greenlet.parent.switch()


class FileTurns:
    """What a worker does with files. A turn ends after `slice_seconds` if another account waits."""

    def __init__(
        self, db: Database, clock: Clock, options: RunOptions, *, slice_seconds: float
    ) -> None:
        self._db = db
        self._clock = clock
        self._options = options
        self._slice_seconds = slice_seconds
        self._loads: list[OpenLoad] = []
        self._slice_began = 0.0

    def take(self) -> bool:
        """Work on one file until it ends or its turn is over: a new one, or the paused one with the
        oldest turn. False if there is none. Raises Unavailable, and faults of the service, so that
        they are logged.
        """
        self._loads = [load for load in self._loads if load.is_open]
        load = min(self._loads, key=_turn_at, default=None)
        claim = self._claim(before=None if load is None else load.claim.turn_at)
        if claim is not None:
            load = OpenLoad(claim, self._is_turn_over)
            self._loads.append(load)
        if load is None:
            return False
        self._slice_began = time.monotonic()
        with at_full_speed():
            load.take_turn()
        return True

    def close(self) -> None:
        """Give all files back, so that other workers go on with them at once."""
        while self._loads:
            self._loads.pop().give_back()

    def _claim(self, *, before: datetime | None) -> FileClaim | None:
        """Claim a file of an account with an earlier last turn, if the worker has room for it."""
        if len(self._loads) >= MOST_OPEN:
            # The load with the latest turn: the next turn of its account comes last.
            loads = [load for load in self._loads if load.can_be_given_back]
            last = max(loads, key=_turn_at, default=None)
            if last is None or not self._has_waiting_file(before=before):
                return None
            last.give_back()
            self._loads.remove(last)
        return claim_next(self._db, self._clock, self._options, before=before)

    def _is_turn_over(self, load: OpenLoad) -> bool:
        if time.monotonic() < self._slice_began + self._slice_seconds:
            return False
        has_other_load = any(other is not load and other.is_open for other in self._loads)
        if has_other_load or self._has_waiting_file():
            return True
        self._slice_began = time.monotonic()
        return False

    def _has_waiting_file(self, *, before: datetime | None = None) -> bool:
        waiting = self._db.ask(partial(find_claimable, before=before))
        return waiting is not None


def _turn_at(load: OpenLoad) -> datetime:
    return load.claim.turn_at
