"""A database that no other test has used, for installations that live through a day."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.config import read_config


@pytest.fixture
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty one on the database that the parameter names."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'frontdesk.db'}"
        return
    with request.getfixturevalue("postgres").database() as plain:
        yield read_config({"FRONTDESK_DATABASE_URL": plain}).database_url
