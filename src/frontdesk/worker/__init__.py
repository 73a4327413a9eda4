"""The worker's door: the loop that delivers invitations; `Worker.turn()` does one round of it, for tests."""

from frontdesk.worker.loop import Worker

__all__ = ["Worker"]
