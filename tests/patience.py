"""Waiting for what must come about. A test that passes does not wait it out, so patience is that of the slowest machine."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return when `condition()` holds. Raises RuntimeError, naming `what` was waited for, when it never does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.005)
