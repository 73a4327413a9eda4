"""How right the wait estimates of the last hour were, as metrics; nothing is told while the database can't be asked."""

from collections.abc import Iterator
from datetime import timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from frontdesk.app import App
from frontdesk.errors import Unavailable
from frontdesk.queues import list_outcomes, measure_accuracy

LATELY = timedelta(hours=1)


class QueueAccuracy:
    """A Prometheus collector; it asks the database each time the metrics are read."""

    def __init__(self, app: App) -> None:
        self._app = app

    def describe(self) -> list[Metric]:
        """Nothing is read when it is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        since = self._app.clock() - LATELY
        try:
            found = measure_accuracy(self._app.db.ask(lambda tx: list_outcomes(tx, since)))
        except Unavailable:
            return
        families = (
            ("matched", "Estimates of the last hour that a patient's wait could be compared with."),
            ("mean_error_seconds", "Mean absolute error of the last hour's wait estimates."),
            ("bias_seconds", "Mean of estimate minus wait over the last hour."),
            ("p90_error_seconds", "Absolute error that 90 % of the last hour's estimates stay below."),
        )
        for name, sentence in families:
            family = GaugeMetricFamily(f"frontdesk_queue_estimate_{name}", sentence, labels=["plan"])
            for accuracy in found:
                family.add_metric([str(accuracy.plan_id)], getattr(accuracy, name))
            yield family
