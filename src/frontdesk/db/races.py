"""Writes a set of items in one transaction while others write the same rows. A lost race runs again.

The writer is a loop over attempts, so that what is written stands where it is called:

    writing = WriteTogether(db, items)
    for attempt in writing:
        with attempt:
            attempt.results = store(attempt.tx, attempt.items)
    return writing.results

An error inside the block belongs to the attempt: its transaction is rolled back, and the loop decides what comes next. The
transaction commits when the loop goes on, so `return` and `break` inside the loop would undo it.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from sqlalchemy.exc import DBAPIError

from frontdesk.db.engine import Tx
from frontdesk.db.failures import StateChanged, is_deadlock, lost_race
from frontdesk.errors import Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")
OpenTx_co = TypeVar("OpenTx_co", covariant=True)
AnyTx = TypeVar("AnyTx")

ATTEMPTS_TOGETHER = 3
ATTEMPTS_ALONE = 8

# When others hold rows of a set, its items share this time to wait for locks. None is tried after the last of it.
SHARED_SECONDS, LAST_SECONDS = 3.0, 5.0
SHORTEST_WAIT_SECONDS = 0.02

OTHERS_WRITE = "Others keep writing the same record."


class Writable(Protocol[OpenTx_co]):
    """A database that opens writing transactions: `Database` or `PipelineDatabase`."""

    def write(self, *, wait_seconds: float | None = None) -> AbstractContextManager[OpenTx_co]: ...


@dataclass(slots=True, eq=False)
class Attempt(Generic[AnyTx, Item, Result]):
    """One transaction that writes `items`. The block sets `results`: one result, or the item's own error, per item."""

    tx: AnyTx
    items: Sequence[Item]
    is_split: bool = False
    results: Sequence[Result | Exception] = ()
    error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        self.error = error
        return True  # the loop raises it again, inside the transaction

    def raise_error(self) -> None:
        """Raise the block's error once. An attempt that kept it would keep every item alive, by its frames."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error

    def parts(self: "Attempt[Tx, Item, Result]") -> "Iterator[Attempt[Tx, Item, Result]]":
        """All items at once or, in a split attempt, one by one behind savepoints. Gathers the results of the parts."""
        if self.is_split:
            results = self.results = []
            for item in self.items:
                result = yield from _behind_savepoint(self.tx, item)
                results.append(result)
        elif self.items:
            part: Attempt[Tx, Item, Result] = Attempt(self.tx, self.items)
            yield part
            part.raise_error()
            self.results = part.results


@dataclass(eq=False)
class WriteTogether(Generic[AnyTx, Item, Result]):
    """Attempts to write the items. After the loop, `results` holds one result, or the item's own error, per item.

    A lost race (unique violation, deadlock, dead connection, StateChanged) runs the set again against the new state. What that
    does not settle runs item by item, so that one bad item, or one that is locked, never fails its neighbours. The loop raises
    Unavailable when none of the items can be written.
    """

    db: Writable[AnyTx]
    items: Sequence[Item]
    wait_seconds: float | None = None
    results: list[Result | Exception] = field(default_factory=list)

    def __iter__(self) -> Iterator[Attempt[AnyTx, Item, Result]]:
        is_alone, wait = len(self.items) == 1, self.wait_seconds
        try:
            results = yield from _attempts(self.db, self.items, ATTEMPTS_TOGETHER, wait_seconds=wait)
            self.results = list(results)
        except Unavailable as error:
            if is_alone or not error.busy:
                raise
            is_busy = True
        except Exception as error:  # noqa: BLE001  # one item may be the cause, and each gets its own answer
            if is_alone and not lost_race(error):
                self.results = [error]  # it would only fail again
                return
            is_busy = False
        else:
            return
        yield from self._one_by_one(is_busy=is_busy)

    def _one_by_one(self, *, is_busy: bool) -> Iterator[Attempt[AnyTx, Item, Result]]:
        """When others hold rows, each item waits no longer than its share of the time: free items are soon written."""
        started = time.monotonic()
        for position, item in enumerate(self.items):
            left = SHARED_SECONDS - (time.monotonic() - started)
            share = max(SHORTEST_WAIT_SECONDS, left / (len(self.items) - position))
            try:
                self.results += yield from _attempts(
                    self.db, [item], ATTEMPTS_ALONE, wait_seconds=share if is_busy else None
                )
            except Exception as error:  # noqa: BLE001  # it is the item's answer
                self.results.append(Unavailable(OTHERS_WRITE) if lost_race(error) else error)
            is_late = time.monotonic() - started > LAST_SECONDS
            if is_busy and (is_late or _is_away(self.results[-1])):
                break
        refused = Unavailable("The database is busy.", busy=True)
        self.results += [refused] * (len(self.items) - len(self.results))


@dataclass(eq=False)
class WriteInOne(Generic[Item, Result]):
    """Attempts to write the items in ONE transaction, together with what notes down what was done.

        for attempt in WriteInOne(db, items):
            with attempt:
                for part in attempt.parts():
                    with part:
                        part.results = store(part.tx, part.items)
                note(attempt.tx, attempt.results)

    A lost race runs again. What that does not settle runs item by item behind savepoints of one transaction. An item that
    can't be written has an error as its result: Unavailable where others keep writing the same rows, else the driver's.
    The loop raises Unavailable, and what noting raises.
    """

    db: Writable[Tx]
    items: Sequence[Item]

    def __iter__(self) -> Iterator[Attempt[Tx, Item, Result]]:
        try:
            yield from _attempts(self.db, self.items, ATTEMPTS_TOGETHER)
        except (DBAPIError, StateChanged):
            yield from _attempts(self.db, self.items, ATTEMPTS_ALONE, is_split=True)


def write_together(
    db: Writable[AnyTx],
    items: Sequence[Item],
    work: Callable[[AnyTx, Sequence[Item]], Sequence[Result | Exception]],
    *,
    wait_seconds: float | None = None,
) -> list[Result | Exception]:
    """`WriteTogether` for work that is one function: `work(tx, items)`."""
    writing = WriteTogether[AnyTx, Item, Result](db, items, wait_seconds=wait_seconds)
    for attempt in writing:
        with attempt:
            attempt.results = work(attempt.tx, attempt.items)
    return writing.results


def write_alone(
    db: Writable[AnyTx], work: Callable[[AnyTx], Result], *, wait_seconds: float | None = None
) -> Result:
    """`work(tx)` in one transaction, run again when it loses a race. Raises what `work` raises, and Unavailable."""
    [result] = write_together(db, [work], lambda tx, works: [works[0](tx)], wait_seconds=wait_seconds)
    if isinstance(result, Exception):
        raise result
    return result


def _attempts(
    db: Writable[AnyTx],
    items: Sequence[Item],
    limit: int,
    *,
    wait_seconds: float | None = None,
    is_split: bool = False,
) -> Generator[Attempt[AnyTx, Item, Result], None, Sequence[Result | Exception]]:
    """The items in one transaction, again while it loses races. Raises what the last attempt raised."""
    while True:
        limit -= 1
        try:
            with db.write(wait_seconds=wait_seconds) as tx:
                attempt: Attempt[AnyTx, Item, Result] = Attempt(tx, items, is_split=is_split)
                yield attempt
                attempt.raise_error()
        except (DBAPIError, StateChanged, Unavailable) as error:
            is_stale = isinstance(error, Unavailable) and error.stale_connection
            if limit == 0 or not (is_stale or lost_race(error)):
                raise
        else:
            return attempt.results


def _is_away(result: object) -> bool:
    return isinstance(result, Unavailable) and not result.busy


def _behind_savepoint(tx: Tx, item: Item) -> Generator[Attempt[Tx, Item, Result], None, Result | Exception]:
    for _ in range(ATTEMPTS_ALONE):
        part: Attempt[Tx, Item, Result] = Attempt(tx, [item])
        try:
            with tx.begin_nested():
                yield part
                part.raise_error()
        except (DBAPIError, StateChanged) as error:
            if isinstance(error, DBAPIError) and is_deadlock(error):
                raise  # the whole transaction is gone
            if not lost_race(error):
                return error
        else:
            return part.results[0]
    return Unavailable(OTHERS_WRITE)
