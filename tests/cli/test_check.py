"""What `check` measures: the relay up to AUTH, the clock of the database's host, the room on the
disks; each is a warning.
"""

import json
import shutil
import socket
import ssl
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from frontdesk.cli import installation
from frontdesk.clock import system_clock
from frontdesk.db import Database, checks, locks
from tests.cli.conftest import CommandLine
from tests.conftest import Api
from tests.factories import Customer, member_body
from tests.faults.locks import held_by_another_process
from tests.mail.certificate import certificate_with_key
from tests.mail.relay import Relay

SETTINGS = {"sandbox_recipients": "robin@example.com"}


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def warned(cli: CommandLine, **settings: str) -> list[str]:
    checked = cli.json("check", **settings)
    assert (checked["ok"], checked["problems"]) == (True, [])
    assert all(each["remedy"] for each in checked["warnings"])
    return [each["what"] for each in checked["warnings"] if "Other users" not in each["what"]]


def test_a_relay_is_spoken_to_up_to_rset_and_gets_no_message(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "STEP_SECONDS", 1.0)
    steps: list[str] = []
    with Relay(plan=steps.append, password="hush") as relay:
        address = f"127.0.0.1:{relay.port}"
        assert warned(cli, smtp_url=f"smtp://robin:hush@{address}?tls=off", **SETTINGS) == []
        assert steps == ["greeting", "ehlo", "rset"]
        [what] = warned(cli, smtp_url=f"smtp://robin:wrong@{address}?tls=off", **SETTINGS)
        assert "The relay can't be used: login failed" in what
        [what] = warned(cli, smtp_url=f"smtp://{address}?tls=required", **SETTINGS)
        assert "starttls failed (SMTPNotSupportedError)" in what
    [what] = warned(cli, smtp_url="smtp://127.0.0.1:1", **SETTINGS)
    assert "connect failed (ConnectionRefusedError)" in what


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_relay_of_an_unknown_authority_is_told_with_its_remedy(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "relay.pem").write_bytes(certificate_with_key())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "relay.pem")
    with Relay(tls=server) as relay:
        url = f"smtp://localhost:{relay.port}?tls=required"
        [warning] = [
            each
            for each in cli.json("check", smtp_url=url, **SETTINGS)["warnings"]
            if "relay" in each["what"]
        ]
    assert "starttls failed (certificate_unknown_ca)" in warning["what"]
    assert "a private CA of the relay" in warning["remedy"]


def test_a_silent_relay_is_given_up(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "STEP_SECONDS", 0.3)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        [what] = warned(cli, smtp_url=f"smtp://127.0.0.1:{listener.getsockname()[1]}", **SETTINGS)
    assert "greeting failed (TimeoutError)" in what


@pytest.mark.parametrize(("seconds", "ok"), [(1.5, True), (3, True), (-3, True), (9, False)])
def test_the_clock_of_the_databases_host_is_compared(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, seconds: float, ok: bool
) -> None:
    monkeypatch.setattr(checks, "system_clock", lambda: system_clock() - timedelta(seconds=seconds))
    checked = cli.run("check", "--json")
    is_told = abs(seconds) > 2 and not cli.database_url.startswith("sqlite")
    assert (f"differ by {abs(seconds):.1f} s" in checked.stdout) == is_told
    assert checked.exit_code == (0 if ok or not is_told else 1)


def test_a_lock_of_minutes_is_named_with_its_holder(
    cli: CommandLine, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LONG_SECONDS", 0)
    monkeypatch.setattr(locks, "LOOK_AGAIN_SECONDS", 0.0)
    before = warned(cli)
    assert [what for what in before if "lock" in what] == []
    with held_by_another_process(db) as pid:
        checked = cli.run("check", "--json")
        found = json.loads(checked.stdout)
    [lock] = [each for each in found["warnings"] if "has a lock" in each["what"]]
    assert f" {pid} " in lock["what"]
    if db.is_sqlite:
        assert checked.exit_code == 1
        assert "(python" in lock["what"]
        assert "every write of the database waits for it" in lock["what"]
    else:
        assert checked.exit_code == 0
        assert "idle in transaction) has a lock for 0 min" in lock["what"]
        assert "every write of members waits for it" in lock["what"]
        assert f"pg_terminate_backend({pid})" in lock["remedy"]
    assert warned(cli) == before


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_lock_of_a_role_that_hides_its_age_is_named_if_it_stays(
    cli: CommandLine, superuser: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOOK_AGAIN_SECONDS", 0.0)
    with superuser.write() as tx:
        pid = tx.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        tx.exec_driver_sql("LOCK TABLE members IN ACCESS EXCLUSIVE MODE")
        [what] = [each for each in warned(cli) if "has a lock" in each]
    assert f"Session {pid} of PostgreSQL (role " in what
    assert "has a lock, and every read and write of members waits for it." in what


def test_a_lock_of_seconds_and_a_reader_are_no_warning(cli: CommandLine, db: Database) -> None:
    if db.is_sqlite:
        with db.read() as tx:
            tx.exec_driver_sql("SELECT count(*) FROM members")
            assert [what for what in warned(cli) if "lock" in what] == []
        return
    with held_by_another_process(db):
        assert [what for what in warned(cli) if "lock" in what] == []


@pytest.mark.parametrize(("free", "is_told"), [(2**30, False), (2**30 - 1, True)])
def test_little_room_on_a_disk_is_told(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, *, free: int, is_told: bool
) -> None:
    places: list[Path] = []

    def usage(path: Path) -> Disk:
        places.append(path)
        return Disk(2**40, 2**40 - free, free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    found = warned(cli)
    is_sqlite = cli.database_url.startswith("sqlite")
    assert places[: 1 + is_sqlite][0] == Path(tempfile.gettempdir())
    assert len([what for what in found if "MiB are free" in what]) == (1 + is_sqlite) * is_told


def test_the_note_about_uniqueness_ends_with_the_first_member(
    api: Api, cli: CommandLine, db: Database, customer: Customer
) -> None:
    [note] = cli.json("check")["notes"]
    assert cli.text("check").count(note) == 1
    assert api.post("/v2/plans/1/eligibility", member_body(1)).status_code == 201
    assert cli.json("check")["notes"] == []
