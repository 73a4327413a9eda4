"""deploy/nginx/frontdesk.conf in Debian's nginx, with its addresses and files replaced, and a
certificate of a private CA.
"""

import http.client
import json
import os
import re
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from frontdesk.db import open_database
from tests.factories import member_body
from tests.faults.server import Server
from tests.files.loading import csv_of, row
from tests.lab.conftest import Certificate, Installation, Tell, installed
from tests.lab.parts import give, running
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import free_port

SITE = Path(__file__).parents[2] / "deploy/nginx/frontdesk.conf"
PARTS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
MAIN = """
daemon off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{}}
http {{ {folders} include {home}/frontdesk.conf; }}
"""
MIB = 1_048_576
RESTARTS = 10
CALLERS = 12
PER_SECOND = 50
SETTINGS = {
    "FRONTDESK_BASE_URL": "https://api.example.com",
    "FRONTDESK_TRUSTED_PROXIES": "127.0.0.1",
    "FRONTDESK_ENVIRONMENT": "production",
    "FRONTDESK_LINK_SECRET": "an invented secret for tests only",
    "FRONTDESK_SMTP_URL": "smtp://127.0.0.1:9",
    "FRONTDESK_MAIL_FROM": "invitations@example.com",
}


@dataclass(frozen=True)
class Site:
    port: int
    home: Path
    context: ssl.SSLContext

    def connect(self, source: str = "127.0.0.1") -> http.client.HTTPSConnection:
        """As a caller with this address."""
        return http.client.HTTPSConnection(
            "127.0.0.1",
            self.port,
            timeout=PATIENCE_SECONDS,
            context=self.context,
            source_address=(source, 0),
        )

    def ask(
        self, method: str, path: str, body: Any = None, *, source: str = "127.0.0.1", **headers: str
    ) -> Any:
        """The answer, with its `text`."""
        with closing(self.connect(source)) as connection:
            connection.request(
                method,
                path,
                body,
                {name.replace("_", "-"): value for name, value in headers.items()},
            )
            answer: Any = connection.getresponse()
            answer.text = answer.read().decode()
            return answer


def write_configuration(home: Path, *, port: int, service: int, certificate: Certificate) -> Path:
    """The site as it is shipped, but for addresses and paths."""
    replaced = {
        r"127\.0\.0\.1:8000": f"127.0.0.1:{service}",
        r"listen 443": f"listen 127.0.0.1:{port}",
        r"listen \[::\]:443.*": "",
        r"/etc/ssl/frontdesk/fullchain\.pem": str(certificate.chain),
        r"/etc/ssl/frontdesk/key\.pem": str(certificate.key),
        r"/var/log/nginx/frontdesk\.log": f"{home}/frontdesk.log",
    }
    text = SITE.read_text()
    for pattern, value in replaced.items():
        text, count = re.subn(pattern, value, text)
        assert count == 1, pattern
    (home / "frontdesk.conf").write_text(text)
    folders = " ".join(f"{part}_temp_path {home}/{part};" for part in PARTS)
    (home / "nginx.conf").write_text(MAIN.format(home=home, folders=folders))
    give(*home.iterdir())
    return home / "nginx.conf"


@pytest.fixture
def lab(sqlite_url: str) -> Installation:
    return installed(sqlite_url)


@pytest.fixture
def server(lab: Installation, tmp_path: Path) -> Iterator[Server]:
    with Server(lab.url, tmp_path / "log", settings=SETTINGS) as started:
        yield started


@pytest.fixture
def site(server: Server, home: Path, certificate: Certificate) -> Iterator[Site]:
    with serving(server, home, certificate) as found:
        yield found


@contextmanager
def serving(server: Server, home: Path, certificate: Certificate) -> Iterator[Site]:
    port = free_port()
    main = write_configuration(home, port=port, service=server.port, certificate=certificate)
    with running(
        ["/usr/sbin/nginx", "-p", home, "-e", home / "error.log", "-c", main], home
    ) as nginx:
        found = Site(port, home, ssl.create_default_context(cafile=certificate.ca))

        def answers() -> bool:
            nginx.has_told("-")
            try:
                return bool(found.ask("GET", "/readyz").status == 200)
            except ConnectionRefusedError:
                return False

        wait_until(answers, "nginx")
        yield found


def test_nginx_passes_members_by_tls_and_links_lead_to_the_base_url(
    site: Site, lab: Installation, server: Server
) -> None:
    headers = {"Authorization": f"Bearer {lab.customer.token}", "Content_Type": "application/json"}
    for number, host in enumerate(("api.example.com", "evil.example"), start=1):
        answer = site.ask(
            "POST", lab.members, json.dumps(member_body(number)), Host=host, **headers
        )
        assert (answer.status, answer.headers["Eligibility-Outcome"]) == (201, "created")
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
        page = site.ask("GET", "/openapi.json", Host=host)
        assert json.loads(page.text)["servers"][0]["url"] == SETTINGS["FRONTDESK_BASE_URL"]
        assert "evil.example" not in str(page.headers) + page.text
    refused = site.ask("POST", lab.members, b"x" * 10 * MIB, **headers)
    assert (refused.status, refused.headers["Strict-Transport-Security"]) == (
        413,
        "max-age=31536000",
    )
    assert server.told("proxy_not_trusted") == []


def test_failed_attempts_are_counted_by_the_address_of_the_caller(
    site: Site, lab: Installation
) -> None:
    form = {"grant_type": "client_credentials", "client_id": lab.customer.client_id}

    def login(secret: str, source: str, forged: str) -> int:
        body = urlencode(form | {"client_secret": secret})
        kind = "application/x-www-form-urlencoded"
        return int(
            site.ask(
                "POST",
                "/oauth/token",
                body,
                source=source,
                Content_Type=kind,
                X_Forwarded_For=forged,
            ).status
        )

    guesses = [login("wrong", "127.0.0.2", f"198.51.100.{number}") for number in range(12)]
    assert guesses == [401] * 10 + [429] * 2
    assert [
        login(secret, "127.0.0.3", "127.0.0.2") for secret in ("wrong", lab.customer.client_secret)
    ] == [401, 200]
    metrics = [
        site.ask("GET", "/metrics", source=source).status for source in ("127.0.0.1", "127.0.0.2")
    ]
    assert metrics == [401, 403]  # the service asks for a token; others do not get so far


def test_an_upload_goes_straight_through(site: Site, lab: Installation, tell: Tell) -> None:
    rows = (row(number, email=f"{'x' * 60}{number}@example.com") for number in range(80_000))
    content = csv_of(rows)
    assert len(content) > 10 * MIB  # more than nginx takes elsewhere
    head = content[: -4 * MIB]
    tail = content[-4 * MIB :]
    with closing(open_database(lab.url)) as db, closing(site.connect()) as connection:

        def parts() -> int:
            return int(
                db.ask(
                    lambda tx: tx.exec_driver_sql("SELECT count(*) FROM file_parts").scalar_one()
                )
            )

        connection.putrequest("POST", f"{lab.members}-files")
        for name, value in (("Content-Type", "text/csv"), ("Content-Length", str(len(content)))):
            connection.putheader(name, value)
        connection.putheader("Authorization", f"Bearer {lab.customer.token}")
        connection.endheaders(head)
        wait_until(lambda: parts() > 1, "the service to store what has come")
        assert [
            path for part in PARTS for path in (site.home / part).rglob("*") if path.is_file()
        ] == []
        stored = parts()
        connection.send(tail)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["data"]["state"]) == (202, "waiting")
    tell(
        f"of {len(content) // MIB} MiB, {stored} parts were stored before the last 4 MiB were sent"
    )


def test_a_batch_passes_where_nginx_can_write_no_body_to_its_disk(
    site: Site, lab: Installation
) -> None:
    """A folder that is gone can't be written by any user; nginx made it when it started."""
    (site.home / "client_body").rmdir()
    records = [member_body(number) for number in range(1000)]
    lines = [json.dumps(each) for each in records]
    blanks = " " * (1_500_000 // len(lines))  # between the members of an object: 1.5 MB in all
    body = "\n".join(f"{line[0]}{blanks}{line[1:]}" for line in lines).encode()
    assert len(body) > 1_500_000
    answer = site.ask(
        "POST",
        f"{lab.members}/batch",
        body,
        Authorization=f"Bearer {lab.customer.token}",
        Content_Type="application/x-ndjson",
    )
    assert answer.status == 207
    assert answer.text.count('"outcome":"created"') == len(records)
    assert not (site.home / "client_body").exists()


def test_a_body_that_the_service_refuses_gets_the_words_of_the_service(
    site: Site, lab: Installation
) -> None:
    headers = {"Authorization": f"Bearer {lab.customer.token}", "Content_Type": "application/json"}
    # It fits into the buffers of the connection to the service, which does not read it.
    for _ in range(10):
        answer = site.ask("POST", lab.members, b"x" * 100_000, **headers)
        assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")


def drain(server: Server) -> None:
    """Return when it drains: it is not ready any more, and goes on."""
    os.kill(server.pid, signal.SIGTERM)
    wait_until(lambda: not server.ready(), "the drain to begin")


def post_steadily(
    site: Site,
    lab: Installation,
    *,
    caller: int,
    answers: list[tuple[str, str]],
    stopping: threading.Event,
) -> None:
    """Send each member once, on a connection that is kept as long as nginx keeps it."""
    headers = {"Authorization": f"Bearer {lab.customer.token}", "Content-Type": "application/json"}
    connection = site.connect()
    number = 100_000 * (caller + 1)
    while not stopping.is_set():
        number = number + 1
        started = time.monotonic()
        body = member_body(number)
        try:
            connection.request("POST", lab.members, json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            status = str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
            connection.close()
        answers.append((status, body["external_id"]))
        time.sleep(max(0.0, started + CALLERS / PER_SECOND - time.monotonic()))
    connection.close()


def test_ten_restarts_behind_nginx_fail_no_call_and_lose_no_record(
    lab: Installation, home: Path, certificate: Certificate, tmp_path: Path, tell: Tell
) -> None:
    """The next server starts beside the one that drains, on its port; a second signal ends the old
    one.
    """
    # Longer than a start takes: the second signal ends the drain.
    settings = SETTINGS | {"FRONTDESK_DRAIN_SECONDS": "60"}

    def another(old: Server | None = None) -> Server:
        server = Server(lab.url, tmp_path / "log", settings=settings)
        server.port = old.port if old else server.port
        stack.callback(server.kill)
        return server.start()

    def wait_for(more: int) -> None:
        enough = len(answers) + more
        wait_until(lambda: len(answers) >= enough, "callers to be answered")

    answers: list[tuple[str, str]] = []
    stopping = threading.Event()
    post = partial(post_steadily, lab=lab, answers=answers, stopping=stopping)
    with ExitStack() as stack:
        server = another()
        site = stack.enter_context(serving(server, home, certificate))
        threads = stack.enter_context(ThreadPoolExecutor(CALLERS))
        stack.callback(stopping.set)
        done = [threads.submit(post, site, caller=caller) for caller in range(CALLERS)]
        for _ in range(RESTARTS):
            wait_for(PER_SECOND)
            drain(server)
            old = server
            server = another(server)
            wait_for(CALLERS)
            assert old.stop() == 0
        wait_for(PER_SECOND)
        stopping.set()
        assert [future.result() for future in done] == [None] * CALLERS
    with closing(open_database(lab.url)) as db:
        stored = set(
            db.ask(lambda tx: tx.exec_driver_sql("SELECT external_id FROM members").scalars())
        )
    assert Counter(status for status, _ in answers) == {"201": len(answers)}
    assert {external_id for _, external_id in answers} <= stored
    tell(f"{RESTARTS} restarts, {len(answers)} POSTs of {CALLERS} callers, none failed")
