"""`frontdesk worker` leaves nothing behind in its process, however it ends."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from frontdesk.cli import worker as command
from frontdesk.db.notifications import WorkListener
from frontdesk.worker.background import FileLoader, QueuePruner
from frontdesk.worker.delivery import DeliveryWorker
from tests.cli.conftest import CommandLine
from tests.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives the test process its own handlers back; it does not end with its parent."""
    monkeypatch.setattr(command, "stop_with_parent", lambda _stop: None)
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_worker_that_fails_ends_its_other_tasks(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_worker: DeliveryWorker) -> None:
        assert {type(thread) for thread in threading.enumerate()} >= {FileLoader, QueuePruner}
        raise RuntimeError("no delivery any more")

    monkeypatch.setattr(DeliveryWorker, "run", fail)
    with pytest.raises(RuntimeError, match="no delivery any more"):
        cli.run("worker")
    assert {type(thread) for thread in threading.enumerate()}.isdisjoint({FileLoader, QueuePruner})


def test_a_worker_without_a_relay_loads_files(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = FileLoader.join

    def told_to_stop(loader: FileLoader) -> None:
        """The signal comes when the worker has its handlers: before, it would end the test process."""
        os.kill(os.getpid(), signal.SIGTERM)
        join(loader)

    monkeypatch.setattr(FileLoader, "join", told_to_stop)
    result = cli.run("worker", environment="production", link_secret="x" * 40)
    assert (result.exit_code, "Invitations are not delivered" in result.stderr) == (0, True)
    assert {type(thread) for thread in threading.enumerate()}.isdisjoint({FileLoader, QueuePruner})


def test_a_command_wakes_workers_that_wait(cli: CommandLine) -> None:
    woken = threading.Semaphore(0)
    db = cli.open()
    with WorkListener(db.engine, woken.release):
        assert woken.acquire(timeout=PATIENCE_SECONDS)  # it listens
        cli.json("account", "create", "--name", "Example Health")
        assert woken.acquire(timeout=PATIENCE_SECONDS)
    db.close()
