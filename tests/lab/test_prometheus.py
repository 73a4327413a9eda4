"""Prometheus with deploy/prometheus: its configuration, its rules, and a scrape by a token that it
gets itself.
"""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.factories import member_body
from tests.faults.callers import call
from tests.faults.server import Server
from tests.lab.conftest import Tell, installed
from tests.lab.parts import give, running
from tests.patience import wait_until
from tests.postgres import free_port

DEPLOY = Path(__file__).parents[2] / "deploy/prometheus"


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(
        ["/usr/bin/promtool", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_configuration(home: Path, **replaced: str) -> Path:
    """A copy of deploy/prometheus whose addresses, client and interval are those of the test."""
    for path in DEPLOY.glob("*.yml"):
        shutil.copy(path, home)
    configuration = home / "prometheus.yml"
    text = configuration.read_text()
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    configuration.write_text(text)
    return configuration


def test_prometheus_scrapes_with_a_token_and_its_rules_pass(
    sqlite_url: str, home: Path, tmp_path: Path, tell: Tell
) -> None:
    lab = installed(sqlite_url)
    port = free_port()
    secret = home / "secret"
    secret.write_text(lab.operator.client_secret)
    with Server(lab.url, tmp_path / "log", with_worker=True) as server:
        configuration = write_configuration(
            home,
            **{
                "service:8000": f"127.0.0.1:{server.port}",
                "scrape_interval: 30s": "scrape_interval: 1s",
                "replace-with-the-client-id": lab.operator.client_id,
                "/run/secrets/metrics_secret": str(secret),
            },
        )
        give(*home.iterdir())
        promtool("check", "config", configuration)
        tested = [promtool("test", "rules", rules) for rules in DEPLOY.glob("*_test.yml")]
        assert call(server.port, "POST", lab.members, member_body(), lab.customer.token)[0] == 201
        options = (
            "--storage.tsdb.path",
            home / "data",
            "--web.listen-address",
            f"127.0.0.1:{port}",
        )
        with running(
            ["/usr/bin/prometheus", "--config.file", configuration, *options], home
        ) as prometheus:

            def ask(query: str) -> Any:
                """The values of a query by the labels of their series."""
                prometheus.has_told("")
                url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
                try:
                    with urllib.request.urlopen(url, timeout=5) as answer:
                        return [
                            float(each["value"][1]) for each in json.load(answer)["data"]["result"]
                        ]
                except OSError:
                    return []

            wait_until(lambda: ask('up{job="frontdesk"}') == [1.0], "a scrape")
            wait_until(
                lambda: ask('sum(frontdesk_requests_total{status="201"})') == [1.0],
                "the POST to be counted",
            )
            assert ask("frontdesk_database_up") == [1.0]
            [series] = ask('count({job="frontdesk"})')
    tell(
        f"{len(tested)} files of tested rules; {series:.0f} series scraped by a token of the service"
    )
