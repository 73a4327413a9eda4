"""The worker's door: the loop that delivers invitations (`Worker.turn()` does one round, for tests) and the loader of files."""

from frontdesk.worker.files import FileLoader
from frontdesk.worker.loop import Worker

__all__ = ["FileLoader", "Worker"]
