"""A serving process says in time that it can soon open no more files."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from frontdesk.server import OpenFiles


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
