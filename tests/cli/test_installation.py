"""`migrate`, `check`, and what keeps `serve` from starting. What can't be used leads to sentences
with a remedy, never to a traceback.
"""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from frontdesk.db import open_database
from frontdesk.db.checks import HEAD
from tests.cli.conftest import CommandLine
from tests.postgres import OWNER, SERVICE, Databases, as_role

GOOD = {"ok": True, "problems": [], "warnings": [], "database_role": None}


def test_migrate_makes_the_folder_and_the_tables(bare_cli: CommandLine) -> None:
    first = bare_cli.json("migrate")
    assert first["revision"] == first["applied"][-1] == HEAD
    assert bare_cli.json("account", "list") == []
    [entry] = bare_cli.audit_trail()
    assert (entry["action"], entry["detail"]) == (
        "database.migrated",
        {"revisions": first["applied"]},
    )
    [notice] = first["notices"]
    assert "a refusal shows a client that another account uses the value" in notice
    assert bare_cli.json("migrate") == {"applied": [], "revision": HEAD, "notices": []}
    assert "Nothing to do" in bare_cli.text("migrate")
    assert len(bare_cli.audit_trail()) == 1
    assert bare_cli.json("check") == GOOD | {"notes": [notice]}
    assert notice in bare_cli.text("check").replace("\n", " ")
    assert "SQLite has no roles" in bare_cli.refused("migrate", "--service-role", "anybody")


def test_an_installation_for_unrelated_customers_is_checked_against_its_own_setting(
    bare_cli: CommandLine,
) -> None:
    assert f"at revision {HEAD}" in bare_cli.text("migrate", uniqueness="account")
    checked = bare_cli.json("check", uniqueness="account")
    assert checked == GOOD | {"notes": checked["notes"]}
    assert ["answers reveal no other account's" in note for note in checked["notes"]] == [True]
    assert "FRONTDESK_UNIQUENESS=account" in bare_cli.run("check").stdout
    assert "FRONTDESK_UNIQUENESS=account" in bare_cli.refused("serve", "--port", "20003")
    bare_cli.json("migrate")  # with the default setting: what is written down stays
    assert bare_cli.json("check", uniqueness="account") == checked


def test_migrate_asks_a_new_production_database_where_identifiers_are_unique(
    bare_cli: CommandLine,
) -> None:
    asked = bare_cli.refused("migrate", environment="production")
    assert "can't be changed once there are members" in asked.replace("\n", " ")
    assert "--uniqueness service (or account)" in asked
    assert bare_cli.json("migrate", "--uniqueness", "account", environment="production")["applied"]
    # It is asked once: later runs, upgrades and other commands go by what is stored.
    assert bare_cli.json("migrate", environment="production")["applied"] == []
    assert bare_cli.json("check", uniqueness="account")["problems"] == []
    assert "can't be changed" in bare_cli.refused(
        "migrate", "--uniqueness", "service", environment="production"
    )
    assert bare_cli.json("migrate", "--uniqueness", "account")["applied"] == []


def test_migrate_takes_the_uniqueness_of_the_environment(bare_cli: CommandLine) -> None:
    refused = bare_cli.refused("migrate", "--uniqueness", "account", uniqueness="service")
    assert "Make them the same" in refused
    assert "use one of" in bare_cli.run("migrate", uniqueness="tenant").stderr
    assert bare_cli.json("migrate", environment="production", uniqueness="service")["applied"]


def test_migrate_says_that_every_process_needs_the_chosen_uniqueness(bare_cli: CommandLine) -> None:
    first = bare_cli.json("migrate", "--uniqueness", "account", environment="production")
    assert (
        "Set FRONTDESK_UNIQUENESS=account for every process: without it none starts."
        in first["notices"]
    )


def test_a_good_installation_passes_the_check(cli: CommandLine) -> None:
    is_sqlite = cli.database_url.startswith("sqlite")
    role = None if is_sqlite else {"name": SERVICE, "owns_tables": False}
    checked = cli.json("check")
    assert checked == GOOD | {"database_role": role, "notes": checked["notes"]}
    said = cli.text("check")
    assert "All is well" in said
    assert (f"as the role {SERVICE}, which owns none" in said) is not is_sqlite


def test_settings_that_cant_be_used_are_all_named(bare_cli: CommandLine) -> None:
    checked = bare_cli.run("check", "--json", base_url="nowhere", environment="lab")
    assert checked.exit_code == 1
    refused = bare_cli.refused("account", "list", base_url="nowhere", environment="lab")
    for said in (checked.stdout, refused):
        assert "FRONTDESK_BASE_URL: use an absolute http(s) address" in said
        assert "FRONTDESK_ENVIRONMENT: use one of: sandbox, production" in said
    for url in ("postgresql://host:port/frontdesk", "postgresql://[host/frontdesk"):
        assert bare_cli.refused("account", "list", database_url=url).startswith("Error: ")


@pytest.mark.parametrize(
    "words",
    [
        "account list",
        "account create --name Health",
        "worker",
        "serve --port 20004",
        "queue simulate",
    ],
)
def test_only_migrate_makes_a_database(bare_cli: CommandLine, words: str, tmp_path: Path) -> None:
    assert "There is no database here. Run: frontdesk migrate" in bare_cli.refused(*words.split())
    checked = bare_cli.run("check")
    assert checked.exit_code == 1
    assert "Problem: There is no database here." in checked.stdout
    assert "Run: frontdesk migrate" in checked.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_is_to_be_migrated(bare_cli: CommandLine) -> None:
    db = bare_cli.open()
    db.make_missing_file()
    db.close()
    for words in ("account list", "serve --port 20002"):
        said = bare_cli.refused(*words.split())
        assert "The database has no tables yet. Run: frontdesk migrate" in said


def test_a_locked_database_changes_nothing_and_says_so(cli: CommandLine) -> None:
    db = cli.open()
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE installation SET written = written")
        checked = cli.run("check")
        if db.is_sqlite:  # one account more locks nobody out of PostgreSQL
            assert "Nothing was changed." in cli.refused(
                "account", "create", "--name", "Example Health"
            )
    db.close()
    assert checked.exit_code == 1
    assert "The database is busy." in checked.stdout
    assert ("holds a lock" in checked.stdout, "disk" in checked.stdout) == (True, False)
    assert cli.json("account", "list") == []


def test_a_file_that_is_no_database_or_has_no_folder_is_told(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Nothing but notes, and more than enough of them. " * 20)
    told = CommandLine(f"sqlite:///{path}").run("check").stdout
    assert ("not a database" in told, "backup" in told) == (True, True)
    blocked = CommandLine(f"sqlite:///{path}/frontdesk.db")
    assert "file can't be made" in blocked.refused("migrate")
    assert "There is no database here" in blocked.refused("account", "list")


def test_a_database_of_a_newer_version_is_told_with_the_remedy(cli: CommandLine) -> None:
    db = open_database(as_role(cli.database_url, OWNER))
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '9' || version_num")
        tx.exec_driver_sql("UPDATE installation SET compatible_since = '9001'")
    try:
        said = [cli.refused("migrate"), cli.refused("account", "list"), cli.run("check").stdout]
    finally:
        with db.write() as tx:  # other tests have the same database
            tx.exec_driver_sql("UPDATE alembic_version SET version_num = substr(version_num, 2)")
            tx.exec_driver_sql("UPDATE installation SET compatible_since = '0001'")
        db.close()
    for each in said:
        assert f"at revision 9{HEAD}, this program needs {HEAD}" in each
        assert "A newer frontdesk has migrated the database: use that version" in each


REFUSALS = [
    (
        "somebody:hush@{host}/postgres",
        "refuses the user or the password",
        "Correct user and password",
    ),
    ("{owner}@{host}/hidden", "no database of the name", "make the database"),
    (
        "{owner}@nowhere.invalid:1/postgres",
        "host of FRONTDESK_DATABASE_URL is unknown",
        "Correct the host",
    ),
    # Port 1 of the own machine: nothing listens there.
    ("somebody:hush@127.0.0.1:1/postgres", "No database server listens", "Start the server"),
    ("{owner}@{host}/postgres?sslmode=require", "No TLS connection", "Correct sslmode"),
]


@pytest.mark.parametrize(("address", "what", "remedy"), REFUSALS)
def test_a_check_says_why_postgresql_can_not_be_reached_and_no_value(
    bare_cli: CommandLine, postgres: Databases, address: str, what: str, remedy: str
) -> None:
    owner, _, host = urlsplit(postgres.url()).netloc.partition("@")
    url = f"postgresql://{address.format(owner=owner, host=host)}"
    checked = bare_cli.run("check", database_url=url)
    assert (checked.exit_code, what in checked.stdout, remedy in checked.stdout) == (1, True, True)
    refused = bare_cli.refused("account", "list", database_url=url)
    assert (what in refused, "frontdesk check" in refused) == (True, True)
    if "hush@{host}" in address or "hidden" in address:  # waiting would not help
        assert what in bare_cli.refused("worker", database_url=url)
    values = ("hush", "somebody", "hidden", "nowhere")
    assert not any(value in checked.stdout + refused for value in values)


# Nothing is bound to these.
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "192.0.2.1"])  # noqa: S104
def test_a_port_that_is_taken_and_a_host_that_is_elsewhere_are_refused(
    cli: CommandLine, host: str
) -> None:
    with socket.socket() as listener:  # would share its port, as our own server does
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        said = cli.refused("serve", "--host", host, "--port", port)
    assert f"{host} port {port} can't be listened on" in said
    assert "--port" in said


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("http://127.0.0.1:8000", "lead to port 8000."),
        ("http://localhost", "lead to port 80."),
        ("https://[::1]/desk", "lead to port 443."),
        ("http://127.0.0.1:20003", None),
        ("https://api.example.com", None),  # a proxy's
    ],
)
def test_another_port_than_the_base_urls_is_told(
    bare_cli: CommandLine, base_url: str, told: str | None
) -> None:
    said = bare_cli.refused("serve", "--port", "20003", base_url=base_url)
    assert ("links_lead_elsewhere" in said) == (told is not None)
    assert told is None or told in said
