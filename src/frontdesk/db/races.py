"""Writing a set of items in one transaction while others write the same rows; it knows nothing of the items."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from sqlalchemy.exc import DBAPIError

from frontdesk.db.engine import Tx
from frontdesk.db.failures import is_deadlock, lost_race
from frontdesk.errors import Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Tx, Sequence[Item]], Sequence[Result | Exception]]


class Writable(Protocol):
    """What can be written in a transaction: a `Database`, or its short way."""

    def write(self, *, wait_seconds: float | None = None) -> AbstractContextManager[Tx]: ...


ATTEMPTS_TOGETHER = 3
ATTEMPTS_ALONE = 8

# When others hold something of a set, its items share this time to wait for locks, and none is tried any more after
# the last of it.
SHARED_SECONDS, LAST_SECONDS = 3.0, 5.0
SHORTEST_WAIT_SECONDS = 0.02


def write_together(
    db: Writable, items: Sequence[Item], work: Work[Item, Result], *, wait_seconds: float | None = None
) -> list[Result | Exception]:
    """`work(tx, items)` in one transaction; one result, or the item's own error, per item.

    A lost race (unique violation, deadlock, dead connection) runs the set again against the new state. What that does
    not settle runs item by item, so that one bad item, or one that somebody else has locked, never fails its neighbours.
    Raises Unavailable for all of them.
    """
    try:
        return list(_attempt(db, items, work, attempts=ATTEMPTS_TOGETHER, wait_seconds=wait_seconds))
    except Unavailable as error:
        if not error.busy or len(items) == 1:
            raise
        return _each_in_its_time(db, items, work)
    except Exception as error:  # noqa: BLE001  # one item may be the cause, and each gets its own answer
        if len(items) == 1 and not (isinstance(error, DBAPIError) and lost_race(error)):
            return [error]  # it was alone already, and would only fail again
        return [_alone(db, item, work) for item in items]


def write_alone(db: Writable, work: Callable[[Tx], Result]) -> Result:
    """`work(tx)` in one transaction, run again when it loses a race. Raises what `work` raises, and Unavailable."""
    [result] = write_together(db, [work], lambda tx, works: [works[0](tx)])
    if isinstance(result, Exception):
        raise result
    return result


def _each_in_its_time(
    db: Writable, items: Sequence[Item], work: Work[Item, Result]
) -> list[Result | Exception]:
    """Item by item, each waiting for locks no longer than its share of the time: what nobody holds is soon written."""
    results: list[Result | Exception] = []
    started = time.monotonic()
    for item in items:
        left = SHARED_SECONDS - (time.monotonic() - started)
        share = max(SHORTEST_WAIT_SECONDS, left / (len(items) - len(results)))
        result = _alone(db, item, work, wait_seconds=share)
        results.append(result)
        is_away = isinstance(result, Unavailable) and not result.busy
        if is_away or time.monotonic() - started > LAST_SECONDS:
            break
    refused = Unavailable("The database is busy.", busy=True)
    return results + [refused] * (len(items) - len(results))


def _alone(
    db: Writable, item: Item, work: Work[Item, Result], *, wait_seconds: float | None = None
) -> Result | Exception:
    try:
        return _attempt(db, [item], work, attempts=ATTEMPTS_ALONE, wait_seconds=wait_seconds)[0]
    except DBAPIError as error:
        return Unavailable("Others keep writing the same record.") if lost_race(error) else error
    except Exception as error:  # noqa: BLE001  # it is the item's answer
        return error


def _attempt(
    db: Writable,
    items: Sequence[Item],
    work: Work[Item, Result],
    *,
    attempts: int,
    wait_seconds: float | None = None,
) -> Sequence[Result | Exception]:
    while True:
        attempts -= 1
        try:
            with db.write(wait_seconds=wait_seconds) as tx:
                return work(tx, items)
        except DBAPIError as error:
            if attempts == 0 or not lost_race(error):
                raise
        except Unavailable as error:
            if attempts == 0 or not error.stale_connection:
                raise


def write_in_one(
    db: Writable,
    items: Sequence[Item],
    write: Work[Item, Result],
    *,
    finish: Callable[[Tx, Sequence[Result | Exception]], None],
    failed: Callable[[Exception], Exception],
) -> None:
    """`write(tx, items)`, then `finish(tx, results)`, in ONE transaction, so that what `finish` notes down is what was
    done.

    A lost race runs it again. What that does not settle runs item by item behind savepoints of one transaction, where an
    item that can't be written gets `failed(error)` as its result. Raises Unavailable, and what `finish` raises.
    """

    def together(tx: Tx, all_: Sequence[Item]) -> Sequence[Result | Exception]:
        results = write(tx, all_) if all_ else []
        finish(tx, results)
        return results

    def one_by_one(tx: Tx, all_: Sequence[Item]) -> Sequence[Result | Exception]:
        results = [_behind_savepoint(tx, item, write, failed) for item in all_]
        finish(tx, results)
        return results

    try:
        _attempt(db, items, together, attempts=ATTEMPTS_TOGETHER)
    except DBAPIError:
        _attempt(db, items, one_by_one, attempts=ATTEMPTS_ALONE)


def _behind_savepoint(
    tx: Tx, item: Item, write: Work[Item, Result], failed: Callable[[Exception], Exception]
) -> Result | Exception:
    error: Exception = Unavailable("Others keep writing the same record.")
    for _ in range(ATTEMPTS_ALONE):
        try:
            with tx.begin_nested():
                return write(tx, [item])[0]
        except DBAPIError as found:
            if is_deadlock(found):
                raise  # the whole transaction is gone
            if not lost_race(found):
                error = found
                break
    return failed(error)
