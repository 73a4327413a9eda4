"""Metrics that are read from the database: the accuracy of wait estimates, invitations, hourly
windows, what workers do.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontdesk.access import find_client_ids
from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.eligibility import list_probes
from frontdesk.eligibility.probes import TAKEN_PER_DAY
from frontdesk.errors import Unavailable
from frontdesk.files import count_unfinished
from frontdesk.invitations import delivery, find_worker_status
from frontdesk.invitations.model import ATTEMPT_ENDS, InvitationState
from frontdesk.privacy.retention import read_upkeep
from frontdesk.queues import count_lapsed, list_current, list_feeds, list_outcomes, measure_accuracy
from frontdesk.queues.model import QueueInfo
from frontdesk.reach import EVERY
from frontdesk.usage import list_request_costs, oldest_slot
from frontdesk.usage.request_costs import SLOT_MINUTES

RECENT = timedelta(hours=1)
MOST_SHOWN = 10  # clients
SELDOM = 100  # times as long as a read took, which grows with the number of invitations

Read = Callable[[Tx, datetime], list[Metric]]


@dataclass(slots=True, eq=False)
class StoredMetrics:
    """A Prometheus collector that reads at most every `fresh_seconds`, and less often if that would
    be 1 % of the time.

    It reads each time when `fresh_seconds` is 0. It yields nothing while the database can't answer.
    """

    db: Database
    clock: Clock
    read: Read
    fresh_seconds: float = 0.0
    monotonic: Callable[[], float] = time.monotonic
    fresh_until: float = float("-inf")
    metrics: list[Metric] = field(default_factory=list)

    def collect(self) -> Iterator[Metric]:
        started = self.monotonic()
        if started > self.fresh_until:
            try:
                self.metrics = self.db.ask(lambda tx: self.read(tx, self.clock()))
            except Unavailable:
                return
            now = self.monotonic()
            if self.fresh_seconds:
                self.fresh_until = now + max(self.fresh_seconds, (now - started) * SELDOM)
        yield from self.metrics


def delivery_metrics(tx: Tx, now: datetime) -> list[Metric]:
    """States of invitations, hourly windows, and the age of the oldest due immediate invitation."""
    found = delivery.read_statistics(tx, now=now)
    states = {state.value: found.by_state.get(state.value, 0) for state in InvitationState}
    window = "Batched invitations in the account's current hourly window."
    oldest = "Age of the oldest due immediate invitation, in seconds."
    share = (
        "Used part of the hourly limit of immediate invitations, of the ten accounts that used "
        "most of theirs."
    )
    at_limit = "Accounts whose immediate invitations wait for the hourly limit."
    held = "1 while delivery is held."
    return [
        _gauges("frontdesk_invitations", "Invitations, by state.", "state", states),
        _gauges("frontdesk_invitations_window_used", window, "account_id", found.window_used),
        _gauges(
            "frontdesk_invitations_immediate_share", share, "account_id", found.immediate_shares
        ),
        GaugeMetricFamily(
            "frontdesk_invitations_accounts_at_limit", at_limit, value=found.immediate_at_limit
        ),
        GaugeMetricFamily(
            "frontdesk_invitations_oldest_due_seconds", oldest, value=found.oldest_due_seconds
        ),
        GaugeMetricFamily("frontdesk_invitations_held", held, value=found.held),
    ]


def work_metrics(tx: Tx, now: datetime) -> list[Metric]:
    """What workers do: signs of life, attempts at deliveries, files, the clean-up; and the age of
    queue feeds.
    """
    status = find_worker_status(tx)
    last_turn, unclean = read_upkeep(tx)
    files = count_unfinished(tx)
    ended = "Ended attempts at deliveries, and reported bounces."
    mail = CounterMetricFamily("frontdesk_mail", ended, labels=["result"])
    for result in (*ATTEMPT_ENDS.values(), "bounced"):
        mail.add_metric([result], status.get(result, 0))
    heartbeat = _age(status.get("seen_at"), database_time(tx))
    single = {
        "worker_heartbeat_seconds": ("Since a worker's last sign of life.", heartbeat),
        "relay_up": (
            "1 if a worker's last conversation with the relay succeeded.",
            status.get("relay_up"),
        ),
        "delivery_lag_seconds": (
            "From due to sent, of the newest mail.",
            status.get("lag_seconds"),
        ),
        "erasures_waiting": (
            "Removals of personal data that SQLite's log may still hold.",
            unclean,
        ),
        "retention_last_run_seconds": (
            "Since retention last began its turn.",
            _age(last_turn, now),
        ),
    }
    numbers = {state: number for state, (number, _) in files.items()}
    ages = {state: _age(at, now) for state, (_, at) in files.items() if at is not None}
    feeds = {account_id: _age(at, now) for account_id, at in list_feeds(tx).items()}
    fed = "Since an account's queue events last came."
    return [
        mail,
        *(GaugeMetricFamily(f"frontdesk_{name}", *each) for name, each in single.items()),
        _gauges("frontdesk_files", "Unfinished files, by state.", "state", numbers),
        _gauges(
            "frontdesk_files_oldest_seconds", "Age of the oldest unfinished file.", "state", ages
        ),
        _gauges("frontdesk_feed_age_seconds", fed, "account_id", feeds),
    ]


def accuracy_metrics(tx: Tx, now: datetime) -> list[Metric]:
    """The accuracy of the last hour's wait estimates, by plan."""
    found = measure_accuracy(list_outcomes(tx, EVERY, now - RECENT))
    sentences = {
        "wrong_zero_share": (
            "Share of the estimates of 0 in the last hour after which the patient waited over 30 s."
        ),
        "coverage_share": "Share of the last hour's waits inside the served interval; 0.8 is meant.",
        "matched": "Estimates of the last hour that could be compared with a patient's wait.",
        "mean_error_seconds": "Mean absolute error of the last hour's wait estimates.",
        "bias_seconds": "Mean of estimate minus wait over the last hour.",
        "p90_error_seconds": "Absolute error that 90 % of the last hour's estimates stay below.",
    }
    return [
        _gauges(
            f"frontdesk_queue_estimate_{name}",
            sentence,
            "plan",
            {one.plan_id: getattr(one, name) for one in found if getattr(one, name) is not None},
        )
        for name, sentence in sentences.items()
    ] + [_wait_gauge(list_current(tx, now)), _lapsed_gauge(tx, now)]


def _lapsed_gauge(tx: Tx, now: datetime) -> Metric:
    sentence = (
        "Duties that ended by themselves in the last 24 hours, without an event of the doctor."
    )
    numbers = count_lapsed(tx, now - timedelta(days=1))
    return _gauges("frontdesk_queue_lapsed_duties", sentence, "provider_group_id", numbers)


def probe_metrics(tx: Tx, now: datetime) -> list[Metric]:
    """The day's answers about values of other accounts, by account, and the accounts at their
    limit.
    """
    counts = list_probes(tx, now.date().isoformat())
    by_account = {one.account_id: one.taken for one in counts}
    taken = "Records of the account whose answer showed today (UTC) that another account has their value."
    stopped = "Accounts at their limit of such answers today."
    at_limit = sum(one.taken >= TAKEN_PER_DAY for one in counts)
    return [
        _gauges("frontdesk_uniqueness_taken", taken, "account_id", by_account),
        GaugeMetricFamily("frontdesk_uniqueness_accounts_at_limit", stopped, value=at_limit),
    ]


def client_metrics(tx: Tx, now: datetime) -> list[Metric]:
    """What the requests of the ten costliest clients took in about the last ten minutes."""
    labels = ["client_id", "account_id", "kind"]
    seconds = GaugeMetricFamily(
        "frontdesk_client_seconds",
        "Time that the requests of a client took in the last 10 to 20 minutes, of the ten that took "
        "most; of the event loop, of transactions.",
        labels=labels,
    )
    requests = GaugeMetricFamily(
        "frontdesk_client_requests", "The number of these requests.", labels=labels[:2]
    )
    costs = list_request_costs(tx, oldest_slot(now, SLOT_MINUTES))[:MOST_SHOWN]
    names = find_client_ids(tx, [each.client for each in costs])
    for each in costs:
        client = [names.get(each.client, ""), str(each.account_id or "")]
        requests.add_metric(client, each.requests)
        seconds.add_metric([*client, "loop"], each.loop_us / 1e6)
        seconds.add_metric([*client, "database"], each.database_us / 1e6)
    return [seconds, requests]


def _wait_gauge(queues: Mapping[int, QueueInfo]) -> Metric:
    """The estimates served now; a plan without a doctor on duty has no sample."""
    sentence = "Wait served now, in seconds: the estimate, and the ends of its 80 % interval."
    family = GaugeMetricFamily("frontdesk_queue_wait_seconds", sentence, labels=["plan", "value"])
    for plan_id, queue in queues.items():
        values = queue.low_seconds, queue.estimated_wait_seconds, queue.high_seconds
        for name, seconds in zip(("low", "estimate", "high"), values, strict=True):
            if queue.doctors_on_duty and seconds is not None:
                family.add_metric([str(plan_id), name], seconds)
    return family


def _age(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else max(0.0, (now - at).total_seconds())


def _gauges(name: str, sentence: str, label: str, values: Mapping[Any, Any]) -> Metric:
    family = GaugeMetricFamily(name, sentence, labels=[label])
    for key, value in values.items():
        family.add_metric([str(key)], value)
    return family


# Each with the seconds for which it is kept.
SEVERAL_READS = (
    (accuracy_metrics, 0.0),
    (delivery_metrics, 5.0),
    (work_metrics, 5.0),
    (probe_metrics, 0.0),
    (client_metrics, 5.0),
)
