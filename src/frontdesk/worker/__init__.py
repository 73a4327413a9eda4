"""The worker's door: delivery of invitations (`Worker.turn()` does one round, for tests), loading of files, forgetting."""

from frontdesk.worker.delivery import DeliveryWorker
from frontdesk.worker.files import FileLoader
from frontdesk.worker.queues import QueuePruner

__all__ = ["DeliveryWorker", "FileLoader", "QueuePruner"]
