"""The accuracy of the last hour's wait estimates as metrics; there are none while the database can't be reached."""

from collections.abc import Iterator
from datetime import timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from frontdesk.app import App
from frontdesk.errors import Unavailable
from frontdesk.queues import list_outcomes, measure_accuracy

RECENT = timedelta(hours=1)


class QueueAccuracy:
    """A Prometheus collector. It reads the database each time the metrics are read."""

    def __init__(self, app: App) -> None:
        self._app = app

    def describe(self) -> list[Metric]:
        """Registering a collector calls this; it must not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        since = self._app.clock() - RECENT
        try:
            found = measure_accuracy(self._app.db.ask(lambda tx: list_outcomes(tx, since)))
        except Unavailable:
            return
        families = (
            ("matched", "Estimates of the last hour that could be compared with a patient's wait."),
            ("mean_error_seconds", "Mean absolute error of the last hour's wait estimates."),
            ("bias_seconds", "Mean of estimate minus wait over the last hour."),
            ("p90_error_seconds", "Absolute error that 90 % of the last hour's estimates stay below."),
        )
        for name, sentence in families:
            family = GaugeMetricFamily(f"frontdesk_queue_estimate_{name}", sentence, labels=["plan"])
            for accuracy in found:
                family.add_metric([str(accuracy.plan_id)], getattr(accuracy, name))
            yield family
