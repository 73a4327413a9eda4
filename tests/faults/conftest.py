"""A server that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.server import Server


@pytest.fixture(scope="module")
def server(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """On SQLite, beside its log. For tests of what is said on the wire: the database is not the point."""
    folder = tmp_path_factory.mktemp("server")
    database = folder / "frontdesk.db"
    database.write_bytes(sqlite_template.read_bytes())
    with Server(f"sqlite:///{database}", folder / "log") as running:
        yield running
