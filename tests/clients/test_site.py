"""The site in a simulated browser: accessible pages, a search that finds, a reference that asks
before it changes something.

No browser is among the tools of the tests; jsdom runs the scripts, and axe looks at everything but
colours.
"""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from frontdesk.api.site import SECTIONS
from frontdesk.app import App
from frontdesk.config import Config, Environment
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.clients.node import TOOLS, run
from tests.conftest import Api, SetClock, open_for_test

SCRIPT = Path(__file__).with_name("site.mjs")
FILES = ("site.js", "reference.js", "search.json")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_site_can_be_used_by_everybody_and_asks_first(
    api: Api, config: Config, clock: SetClock, tmp_path: Path
) -> None:
    slugs = [slug for section in SECTIONS.values() for slug in section]
    for name in (*slugs, "reference"):
        (tmp_path / f"{name}.html").write_bytes(api.get(f"/docs/{name}").content)
    for name in FILES:
        (tmp_path / name).write_bytes(api.get(f"/docs/{name}").content)
    (tmp_path / "problems.html").write_bytes(api.get("/problems").content)
    (tmp_path / "openapi.json").write_bytes(api.get("/openapi.json").content)
    in_production = replace(config, environment=Environment.PRODUCTION)
    app = App(in_production, open_for_test(config.database_url, "service"), clock)
    with TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http:
        (tmp_path / "production.html").write_bytes(http.get("/docs/reference").content)
    run("node", SCRIPT, TOOLS, tmp_path, folder=tmp_path)
