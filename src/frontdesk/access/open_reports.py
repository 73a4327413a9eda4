"""One report at a time is streamed to an API client, by each serving process."""

from collections.abc import Callable

from frontdesk.errors import Fault, RateLimited

RETRY_AFTER_SECONDS = 5


class ReportOpen(RateLimited, kind="rate_limited"):
    """The client is being sent another report."""

    def __init__(self) -> None:
        detail = "Another whole report is on its way to this client. Read one at a time, or by the page."
        super().__init__(detail, retry_after_seconds=RETRY_AFTER_SECONDS)
        self.faults = (Fault("report", "report_open", detail),)


class OpenReports:
    """The clients to which a report is on its way."""

    def __init__(self) -> None:
        self._clients: set[int] = set()

    def begin(self, client: int) -> Callable[[], None]:
        """Returns what ends it. Raises ReportOpen."""
        if client in self._clients:
            raise ReportOpen
        self._clients.add(client)
        return lambda: self._clients.discard(client)
