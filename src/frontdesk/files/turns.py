"""Accounts take turns: a worker pauses the load of one file while files of other accounts have theirs.

A paused load keeps its file, and all that it has read: nothing is read twice. Each load has a thread, and one of a worker's
loads runs at a time.
"""

import threading
import time
from collections.abc import Callable

from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.db.engine import database_time
from frontdesk.files import store
from frontdesk.files.claims import FileClaim, LeaseRenewer, RunOptions, claim_next
from frontdesk.files.content import delete_abandoned_uploads
from frontdesk.files.model import FileStep
from frontdesk.files.run import at_full_speed, run_file

MOST_OPEN = 8  # loads of a worker; each keeps 16 bytes a row, and two chunks


class OpenLoad:
    """The load of a claimed file, in a thread that runs during the account's turns."""

    def __init__(
        self, claim: FileClaim, leases: LeaseRenewer, is_turn_over: Callable[["OpenLoad"], bool]
    ) -> None:
        self.claim, self._leases, self._is_turn_over = claim, leases, is_turn_over
        self._rows_before = claim.file.rows_done
        self._paused = threading.Event()
        self._error: BaseException | None = None
        self.turn_began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"file {claim.file.id}", daemon=True)
        claim.yield_turn = self._yield_turn

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    @property
    def can_be_given_back(self) -> bool:
        """It has advanced, and another worker can go on with what it has done."""
        file = self.claim.file
        return file.step is FileStep.APPLY and not file.dry_run and file.rows_done > self._rows_before

    def begin(self) -> None:
        """Take the first turn, as `go_on`."""
        self._thread.start()
        self._wait()

    def go_on(self) -> None:
        """Take a turn: returns when it is over, or the load has ended. Raises what the load raised."""
        claim = self.claim
        with claim.db.write() as tx:
            claim.turn_at = database_time(tx)
            store.take_turn(tx, claim.file.account_id, claim.turn_at)
        self.turn_began = time.monotonic()
        self._paused.clear()
        claim.running.set()
        self._wait()

    def give_back(self) -> None:
        """End the load at its next checkpoint; another turn, of any worker, checks the file anew and goes on with its rows."""
        self.claim.return_file()
        self._thread.join()

    def _wait(self) -> None:
        while not self._paused.wait(1.0) and self.is_open:
            pass
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            run_file(self.claim, self._leases)
        except BaseException as error:  # noqa: BLE001 - raised where the turn was taken
            self._error = error
        self._paused.set()

    def _yield_turn(self) -> None:
        if self._is_turn_over(self):
            self.claim.running.clear()
            self._paused.set()
            self.claim.running.wait()


class FileTurns:
    """What a worker does with files. A turn ends after `slice_seconds` if another account waits."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        options: RunOptions,
        *,
        slice_seconds: float,
        most_open: int = MOST_OPEN,
    ) -> None:
        self._db, self._clock, self._options = db, clock, options
        self._slice_seconds, self._most_open = slice_seconds, most_open
        self._leases = LeaseRenewer(db)
        self._loads: list[OpenLoad] = []

    def take(self) -> bool:
        """Work on one file until it ends or its turn is over: a new one, or the paused one whose turn is longest ago. False if
        there is none. Raises Unavailable, and faults of the service, so that they are logged."""
        self._loads = [load for load in self._loads if load.is_open]
        longest_ago = min(self._loads, key=lambda load: load.claim.turn_at, default=None)
        claim = self._claim(longest_ago)
        with at_full_speed():
            if claim is not None:
                load = OpenLoad(claim, self._leases, self._is_turn_over)
                self._loads.append(load)
                load.begin()
            elif longest_ago is not None:
                longest_ago.go_on()
            else:
                delete_abandoned_uploads(self._db, self._clock())
        return claim is not None or longest_ago is not None

    def close(self) -> None:
        """Give all files back, so that other workers go on with them at once."""
        while self._loads:
            self._loads.pop().give_back()

    def _claim(self, longest_ago: OpenLoad | None) -> FileClaim | None:
        before = None if longest_ago is None else longest_ago.claim.turn_at
        if len(self._loads) >= self._most_open:
            # The one whose turn was last: its account's next turn comes after those of the others.
            loads = [load for load in self._loads if load.can_be_given_back]
            waits = self._db.ask(lambda tx: store.find_claimable(tx, database_time(tx), before=before))
            if waits is None or not loads:
                return None
            last = max(loads, key=lambda load: load.claim.turn_at)
            last.give_back()
            self._loads.remove(last)
        return claim_next(self._db, self._clock, self._options, before=before)

    def _is_turn_over(self, load: OpenLoad) -> bool:
        if time.monotonic() < load.turn_began + self._slice_seconds:
            return False
        if any(other is not load and other.is_open for other in self._loads):
            return True
        if self._db.ask(lambda tx: store.find_claimable(tx, database_time(tx))) is not None:
            return True
        load.turn_began = time.monotonic()
        return False
