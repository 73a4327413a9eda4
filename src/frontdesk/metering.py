"""What a request costs: the time for which the event loop works for it, and that of its transactions.

The event loop works for one request at a time, in steps between its waits. `metered` measures each
step, and says meanwhile whose it is. Work that the step hands on, to a thread or to a group of
records, takes the cost with it and adds its time there.
"""

import types
from collections.abc import Callable, Coroutine, Generator
from time import perf_counter
from typing import Any, TypeVar

Result = TypeVar("Result")


class RequestCost:
    """The cost of a request: its API client, if one is known, and the seconds of its transactions.

    The defaults are the class's: an object is made for every request, and most set none.
    """

    client = 0  # the client's database id
    account_id: int | None = None
    database_seconds = 0.0


class _InWork:
    """The cost of the request for which the event loop works now; None for other work."""

    __slots__ = ("cost",)

    def __init__(self) -> None:
        self.cost: RequestCost | None = None


IN_WORK = _InWork()


@types.coroutine
def metered(
    work: Coroutine[Any, Any, None], count: Callable[[RequestCost, float], None]
) -> Generator[Any, Any, None]:
    """Await the work of a request; `IN_WORK.cost` is its cost. At the end call `count` with that and
    the seconds for which the event loop worked for it.

    Each statement of the loop is paid by every request.
    """
    cost = RequestCost()
    in_work = IN_WORK
    send = work.send
    step: Callable[[Any], Any] = send
    given: Any = None
    spent = 0.0
    try:
        while True:
            in_work.cost = cost
            began_at = perf_counter()
            try:
                awaited = step(given)
            finally:
                spent += perf_counter() - began_at
                in_work.cost = None
            step = send
            try:
                given = yield awaited
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001  # a cancelled task: it is the work's
                given = error
                step = work.throw
    except StopIteration:
        return
    finally:
        count(cost, spent)


def timed(work: Callable[[], Result]) -> Callable[[], Result]:
    """The work, which is to run in a thread and asks the database, with its time added to the cost
    of the request that hands it on.
    """
    cost = IN_WORK.cost
    if cost is None:
        return work

    def run() -> Result:
        started = perf_counter()
        try:
            return work()
        finally:
            cost.database_seconds += perf_counter() - started

    return run
