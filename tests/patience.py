"""Waiting for what must come about. A test that passes does not wait it out, so patience is that of
the slowest machine.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")

PATIENCE_SECONDS = 120.0


def wait_until(
    condition: Callable[[], object],
    what: str,
    *,
    at_earliest_after: float = 0.0,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Return when `condition()` holds. Raises RuntimeError, naming `what` was waited for, when it
    never does. `at_earliest_after`: seconds that pass before it may hold, by the product's rules.

    Where there is more to do in a longer run, `progress()` tells how far it has come: patience is
    for what stands still.
    """
    deadline = time.monotonic() + at_earliest_after + PATIENCE_SECONDS
    reached = progress()
    while not condition():
        reached_before = reached
        reached = progress()
        now = time.monotonic()
        if reached != reached_before:
            deadline = now + PATIENCE_SECONDS
        if now > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.005)


def in_event_loop(
    test: Callable[Arguments, Coroutine[Any, Any, None]],
) -> Callable[Arguments, None]:
    """The coroutine as a test that runs in an event loop of its own. Raises TimeoutError when it
    never ends.
    """

    @wraps(test)
    def run(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), PATIENCE_SECONDS))

    return run
