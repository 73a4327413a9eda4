"""What a serving process opens: files, up to a limit that it logs in time, and connections."""

import os
import resource
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import QueuePool

from frontdesk.cli.command_group import migrated_database
from frontdesk.config import ConfigError, read_config
from frontdesk.server import OpenFiles, opened_database


@pytest.fixture
def limit() -> Iterator[int]:
    """How many files this process may open meanwhile: 40 more than it has."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    yield most
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("left", [0, 1])
def test_open_files_near_their_limit_are_logged_once(limit: int, left: int) -> None:
    told: list[tuple[str, Any]] = []
    files = OpenFiles(lambda event, **values: told.append((event, values["limit"])))
    for _ in range(2):
        files.look()
        assert told == []
        opened = list(all_that_can_be_opened())
        for file in opened[:left]:
            os.close(file)
        files.look()
        files.look()
        for file in opened[left:]:
            os.close(file)
        assert told == [("open_files_warning", limit)]
        files.look()
        told.clear()


def all_that_can_be_opened() -> Iterator[int]:
    with suppress(OSError):
        while True:
            yield os.open(os.devnull, os.O_RDONLY)


def test_the_pool_of_each_process_is_as_large_as_the_setting_says(database_url: str) -> None:
    given = {"FRONTDESK_DATABASE_URL": database_url}
    for variables, size in ((given, 16), (given | {"FRONTDESK_POOL_CONNECTIONS": "4"}, 4)):
        config = read_config(variables)
        with closing(opened_database(config)) as serving, migrated_database(config) as worker:
            for db in (serving, worker):
                assert isinstance(db.engine.pool, QueuePool)
                assert db.engine.pool.size() == size
    for wrong in ("3", "17"):
        with pytest.raises(ConfigError, match="connections between 4 and 16"):
            read_config({"FRONTDESK_POOL_CONNECTIONS": wrong})
