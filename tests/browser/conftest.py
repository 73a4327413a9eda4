"""A browser, and the service that it looks at, for the tests of this folder.

They are one group of xdist: one process runs them, so that one Chromium starts. It ends with the
last of them, because Playwright's event loop would be in the way of tests that run their own.
"""

import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import Database
from tests.browser.chromium import NoChromium, chromium
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.browser.window import Windows
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import Customer
from tests.postgres import free_port

FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        with chromium(tmp_path_factory.mktemp("chromium")) as running:
            yield running
    except NoChromium as reason:
        if "CI" in os.environ:
            raise
        pytest.skip(str(reason))


@pytest.fixture
def database_url(sqlite_of_customer: tuple[Path, Customer], tmp_path: Path) -> str:
    """No page shows which database its service has: SQLite alone, always with the customer."""
    return f"sqlite:///{shutil.copy(sqlite_of_customer[0], tmp_path / 'frontdesk.db')}"


@pytest.fixture
def base_address() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def served(config: Config, clock: SetClock, base_address: str) -> Iterator[Served]:
    """The service at `served.address`, with the test's clock and the database of `db`."""
    port = int(base_address.rpartition(":")[2])

    def make_app() -> App:
        return App(config, open_for_test(config.database_url, "service"), clock)

    with Served(port, make_app) as running:
        yield running


@pytest.fixture
def windows(browser: Browser, served: Served) -> Iterator[Windows]:
    """Opens windows on `served`. After the test no script may have failed, and no request may have
    left the host.
    """
    opened = Windows(browser, served.address)
    yield opened
    opened.close()
    assert opened.errors == []
    assert opened.requests_off_host() == []


@pytest.fixture
def staff(windows: Windows, db: Database, clock: SetClock, customer: Customer) -> Staff:
    """Users of the console, who sign in by `staff.open(Role.EDITOR, "files")`."""
    return Staff(windows, db, clock, customer)


@pytest.fixture
def service(served: Served, customer: Customer) -> Iterator[Api]:
    """The served API as the customer's own program calls it."""
    with httpx.Client(base_url=served.address) as http:
        yield Api(http, customer.token, io.StringIO())  # type: ignore[arg-type]
