from collections.abc import Iterator

import pytest

from tests.histories.judge import Court, court, court_folder


@pytest.fixture(scope="module")
def the_court() -> Iterator[Court]:
    with court_folder() as folder, court(folder) as opened:
        yield opened
