"""One thing of a kind at a time is done for each client or account, by each serving process."""

from collections.abc import Callable

from frontdesk.errors import Fault, RateLimited

RETRY_AFTER_SECONDS = 5


class StillBusy(RateLimited, kind="rate_limited"):
    """The thing is being done for the same client or account."""

    def __init__(self, field: str, code: str, detail: str) -> None:
        super().__init__(detail, retry_after_seconds=RETRY_AFTER_SECONDS)
        self.faults = (Fault(field, code, detail),)


class OneAtATime:
    """The ids for which the thing is being done. `field`, `code` and `detail` are those of the refusal."""

    def __init__(self, field: str, code: str, detail: str) -> None:
        self._refusal = (field, code, detail)
        self._busy: set[int] = set()

    def begin(self, id_: int) -> Callable[[], None]:
        """Returns what ends it, from any thread. Raises StillBusy."""
        if id_ in self._busy:
            raise StillBusy(*self._refusal)
        self._busy.add(id_)
        return lambda: self._busy.discard(id_)
