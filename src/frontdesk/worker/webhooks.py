"""Sends webhooks: an endpoint at a time in each thread (docs/webhooks.md). `exchange` sends one
webhook.
"""

import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from frontdesk import __version__, events
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.errors import Unavailable
from frontdesk.events import delivery
from frontdesk.events.model import DueEndpoint, EndpointState, Event, WebhookEndpoint
from frontdesk.events.signature import signed_headers
from frontdesk.events.target import NOWHERE, host_of, parse_target
from frontdesk.interface import present
from frontdesk.worker.background import IDLE_SECONDS, BackgroundTask
from frontdesk.worker.exchange import NotDelivered, WebhookConnection
from frontdesk.worker.pacing import ReceiverPaces

THREADS = 24
MOST_SLOW = 12  # threads for endpoints that were slow last time, so that they don't take them all
MOST_FOR_HOST = 4  # threads for endpoints of one host, of all accounts
MOST_FOR_ACCOUNT = 6  # threads for endpoints of one account, deleted ones included
SLOW_SECONDS = 2.0
COMMIT_EVENTS = 20
COMMIT_SECONDS = 1.0
TURN_SECONDS = 3.0  # of an endpoint; then others have theirs, and a suspended account has no more
USER_AGENT = f"frontdesk-webhooks/{__version__}"


class WebhookSender(BackgroundTask):
    """Sends what is due, each endpoint in a thread; a slow one takes no thread that others need."""

    first_seconds = 0.0
    poll_seconds = IDLE_SECONDS
    failure_event = "webhooks_failed"

    def __init__(
        self,
        config: Config,
        db: Database,
        *,
        read_time: Callable[[Tx], datetime] = database_time,
        **options: Any,
    ) -> None:
        super().__init__(db, **options)
        self._link_secret = config.link_secret
        self._allows_loopback = config.allows_loopback
        self._tls = ssl.create_default_context()
        self._read_time = read_time
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webhook")
        self._lock = threading.Lock()
        self._paces = ReceiverPaces()
        self._running: dict[int, DueEndpoint] = {}  # by id
        self._slow: set[int] = set()  # ids of endpoints
        self._retries: list[float] = []  # when endpoints are due again, sooner than a poll

    def run(self) -> None:
        super().run()
        self.close()

    def close(self) -> None:
        """End the turns under way."""
        self._is_stopping = True
        self._threads.shutdown()

    def step(self) -> bool:
        """Begin the turns of endpoints that are due."""
        due = self._db.ask(self._find_due)
        chosen, passed_over = self._choose(due)
        if not chosen and not passed_over:
            return False

        def claim(tx: Tx) -> list[WebhookEndpoint]:
            now = self._read_time(tx)
            if passed_over:
                events.pass_over(tx, passed_over, now)
            return events.claim_due(tx, chosen, now) if chosen else []

        claimed = write_alone(self._db, claim)
        for endpoint in claimed:
            running = DueEndpoint(endpoint.id, endpoint.account_id, endpoint.url)
            with self._lock:
                self._running[endpoint.id] = running
            self._threads.submit(self._take_turn, endpoint)
        return False

    def seconds_to_next(self) -> float:
        moment = time.monotonic()
        with self._lock:
            self._retries = [at for at in self._retries if at > moment]
            first = min(self._retries, default=moment + self.poll_seconds)
        return min(self.poll_seconds, first - moment)

    def _look_again(self, saved: WebhookEndpoint | None, now: datetime) -> None:
        """An endpoint that failed may be due before the next poll."""
        seconds = 0.0 if saved is None else (saved.next_at - now).total_seconds()
        if 0.0 < seconds < self.poll_seconds:
            with self._lock:
                self._retries.append(time.monotonic() + seconds)

    def _find_due(self, tx: Tx) -> list[DueEndpoint]:
        now = self._read_time(tx)
        return events.find_due(tx, now, THREADS * 10)

    def _choose(self, due: list[DueEndpoint]) -> tuple[list[int], list[int]]:
        """The endpoints that get a thread now, and those that don't because their host or account
        has enough.
        """
        chosen: list[int] = []
        passed_over: list[int] = []
        with self._lock:
            free_threads = THREADS - len(self._running)
            free_for_slow = MOST_SLOW - len(self._running.keys() & self._slow)
            of_host = Counter(host_of(each.url) for each in self._running.values())
            of_account = Counter(each.account_id for each in self._running.values())
        for endpoint in due:
            host = host_of(endpoint.url)
            if endpoint.id in self._running or len(chosen) == free_threads:
                continue
            if (
                of_host[host] >= MOST_FOR_HOST
                or of_account[endpoint.account_id] >= MOST_FOR_ACCOUNT
            ):
                passed_over.append(endpoint.id)
                continue
            if endpoint.id in self._slow:
                if free_for_slow <= 0:
                    continue
                free_for_slow -= 1
            of_host[host] += 1
            of_account[endpoint.account_id] += 1
            chosen.append(endpoint.id)
        return chosen, passed_over

    def _take_turn(self, claimed: WebhookEndpoint) -> None:
        """Send to the endpoint until it has no event left, one fails, or its turn is over."""
        try:
            target = parse_target(claimed.url, allows_loopback=self._allows_loopback)
        except ValueError:  # it was stored under other settings
            target = NOWHERE
        with closing(WebhookConnection(target, self._tls, self._paces)) as connection:
            self._send_for_a_turn(connection, claimed)
        with self._lock:
            del self._running[claimed.id]
            if connection.slowest > SLOW_SECONDS:
                self._slow.add(claimed.id)
            else:
                self._slow.discard(claimed.id)
        self.wake()

    def _send_for_a_turn(self, connection: WebhookConnection, claimed: WebhookEndpoint) -> None:
        """Send commit by commit. An unexpected error costs the endpoint an attempt: otherwise the
        same events would be sent again each minute.
        """
        endpoint: WebhookEndpoint | None = claimed
        last: WebhookEndpoint = claimed
        ends_at = time.monotonic() + TURN_SECONDS
        try:
            while endpoint is not None:
                last = endpoint
                endpoint = self._send_some(connection, endpoint, is_last=time.monotonic() > ends_at)
        except Unavailable:
            pass  # the lease ends, and another turn begins: events since the last commit are sent again
        except Exception as error:  # noqa: BLE001 - see failure_event
            self._log.write(self.failure_event, error=type(error).__name__)
            self._save_failed_turn(last)

    def _save_failed_turn(self, endpoint: WebhookEndpoint) -> None:
        progress = delivery.Progress(endpoint.place, delivered=False, error=delivery.INTERNAL_ERROR)

        def save(tx: Tx) -> WebhookEndpoint | None:
            return delivery.save(tx, endpoint, progress, now=self._read_time(tx), ends=True)

        try:
            write_alone(self._db, save)
        except Exception as error:  # noqa: BLE001 - the lease ends by itself
            self._log.write(self.failure_event, error=type(error).__name__)

    def _send_some(
        self, connection: WebhookConnection, endpoint: WebhookEndpoint, *, is_last: bool
    ) -> WebhookEndpoint | None:
        """Send up to a commit, and commit. Returns the endpoint, None when its turn has ended.
        Raises Unavailable.
        """
        if endpoint.state is EndpointState.UNVERIFIED:
            return self._send_test(connection, endpoint)
        now, following = self._db.ask(partial(self._next_events, endpoint=endpoint))
        sent = self._send_events(connection, endpoint, following, now)
        is_full = len(following) == delivery.READ_TOGETHER
        has_more = is_full or (following and sent.place != following[-1].place)
        ends = sent.error is not None or is_last or self._is_stopping or not has_more

        def save(tx: Tx) -> WebhookEndpoint | None:
            return delivery.save(tx, endpoint, sent, now=self._read_time(tx), ends=ends)

        saved = write_alone(self._db, save)
        if sent.error is not None:
            self._look_again(saved, now)
        return None if ends else saved

    def _next_events(self, tx: Tx, endpoint: WebhookEndpoint) -> tuple[datetime, Sequence[Event]]:
        """The time of the read, and the events that follow."""
        now = self._read_time(tx)
        return now, delivery.next_events(tx, endpoint)

    def _send_test(
        self, connection: WebhookConnection, endpoint: WebhookEndpoint
    ) -> WebhookEndpoint | None:
        """Send the test of the address. A verified endpoint goes on with its events, in the same
        turn.
        """
        now = self._db.ask(self._read_time)
        error = self._send_or_fail(connection, endpoint, delivery.test_of_address(endpoint), now)
        tested = delivery.Progress(endpoint.place, delivered=error is None, error=error)
        ends = error is not None or self._is_stopping

        def save(tx: Tx) -> WebhookEndpoint | None:
            return delivery.save(tx, endpoint, tested, now=self._read_time(tx), ends=ends)

        saved = write_alone(self._db, save)
        if error is not None:
            self._look_again(saved, now)
        return None if ends else saved

    def _send_events(
        self,
        connection: WebhookConnection,
        endpoint: WebhookEndpoint,
        following: Sequence[Event],
        now: datetime,
    ) -> delivery.Progress:
        """Send the events that the endpoint wants until one fails, or enough were sent for a
        commit.
        """
        began = time.monotonic()
        place = endpoint.place
        sent = 0
        for event in following:
            if endpoint.wants(event):
                error = self._send_or_fail(connection, endpoint, event, now)
                if error is not None:
                    return delivery.Progress(place, delivered=sent > 0, failed=event, error=error)
                sent += 1
            place = event.place
            if sent == COMMIT_EVENTS or time.monotonic() - began > COMMIT_SECONDS:
                break
        return delivery.Progress(place, delivered=sent > 0)

    def _send_or_fail(
        self, connection: WebhookConnection, endpoint: WebhookEndpoint, event: Event, now: datetime
    ) -> str | None:
        """The error, or None when the endpoint has the event. An exception is an error of this
        event, so that it has an end.
        """
        try:
            return self._send(connection, endpoint, event, now)
        except Exception as error:  # noqa: BLE001 - see failure_event
            self._log.write(self.failure_event, error=type(error).__name__)
            connection.close()
            return delivery.INTERNAL_ERROR

    def _send(
        self, connection: WebhookConnection, endpoint: WebhookEndpoint, event: Event, now: datetime
    ) -> str | None:
        """The error, or None when the endpoint has the event."""
        began = time.monotonic()
        body = orjson.dumps(present.webhook_content(event))
        keys = delivery.secrets_of(endpoint, self._link_secret, now)
        timestamp = int(now.timestamp())
        headers = signed_headers(keys, event_id=event.event_id, timestamp=timestamp, body=body)
        headers |= {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        try:
            status = connection.post(body, headers)
        except NotDelivered as failure:
            return str(failure)
        finally:
            connection.slowest = max(connection.slowest, time.monotonic() - began)
        return None if 200 <= status < 300 else f"status_{status}"
