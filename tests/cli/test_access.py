"""Accounts and their API clients."""

from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.access.authentication import note_use, recognise_client
from frontdesk.usage.model import GIB, Usage
from frontdesk.usage.store import add_usage
from tests.cli.conftest import CommandLine


@pytest.fixture
def client(cli: CommandLine, account: str) -> Any:
    """What `client create --json` printed."""
    return cli.json("client", "create", "--account", account, "--name", "Nightly upload")


def lets_in(cli: CommandLine, client_id: str, secret: str) -> bool:
    db = cli.open()
    with db.write() as tx:
        now = datetime.now(UTC)
        found = recognise_client(tx, client_id=client_id, client_secret=secret, now=now)
        if found is not None:
            note_use(tx, found, now=now)
    db.close()
    return found is not None


def test_an_account_has_the_time_zone_of_its_members(cli: CommandLine) -> None:
    zone = ("--time-zone", "America/New_York")
    made = cli.json("account", "create", "--name", "Example Health", *zone)
    id_ = str(made["id"])
    assert made["time_zone"] == "America/New_York"
    assert cli.json("account", "time-zone", id_, "America/Denver")["time_zone"] == "America/Denver"
    assert cli.json("account", "time-zone", id_)["time_zone"] == "America/Denver"
    assert "must be a time zone by its name" in cli.refused("account", "time-zone", id_, "EST5")
    both = cli.refused("account", "time-zone", id_, "UTC", "--clear", status=2)
    assert both == "Error: Give either ZONE or --clear.\n"
    assert cli.json("account", "time-zone", id_)["time_zone"] == "America/Denver"
    assert cli.json("account", "time-zone", id_, "--clear")["time_zone"] is None


def test_a_created_account_is_printed_listed_and_audited(cli: CommandLine) -> None:
    assert "frontdesk account create" in cli.text("account", "list")
    for name, rule in (("  ", "blank"), ("\udcff", "control")):
        said = cli.refused("account", "create", "--name", name)
        assert (said.startswith("Error: --name must "), rule in said) == (True, True)
    account = cli.json("account", "create", "--name", "  Éxample Health ")
    limits = ["immediate_hourly_limit", "time_zone", "reopens_absent"]
    assert list(account) == ["id", "name", "created_at", "state", *limits]
    assert account["name"] == "Éxample Health"
    assert cli.json("account", "list") == [account | {"immediate_this_hour": 0}]
    [entry] = cli.audit_trail()
    assert (entry["action"], entry["account_id"]) == ("account.created", account["id"])
    assert entry["subject_id"] == account["id"]
    assert (entry["actor"][:4], entry["request_id"][:4]) == ("cli:", "cli-")


def test_an_operator_changes_how_much_an_account_may_mail_at_once(cli: CommandLine) -> None:
    account = cli.json("account", "create", "--name", "Example Health")
    changed = cli.json("account", "limit", str(account["id"]), "--immediate-per-hour", "5000")
    assert changed == account | {"immediate_hourly_limit": 5000}
    entry = next(entry for entry in cli.audit_trail() if entry["action"] == "account.limited")
    assert entry["account_id"] == account["id"]
    assert "There is no such account" in cli.refused(
        "account", "limit", "77", "--immediate-per-hour", "1"
    )
    cli.refused("account", "limit", "1", "--immediate-per-hour", "0", status=2)


def test_an_operator_sees_what_accounts_store_and_gives_one_another_quota(cli: CommandLine) -> None:
    account = cli.json("account", "create", "--name", "Example Health")
    db = cli.open()
    with db.write() as tx:
        add_usage(tx, datetime.now(UTC).date().isoformat(), {account["id"]: Usage(5, 6, 7)})
        add_usage(tx, "2026-01-01", {account["id"]: Usage(100, 0, 0)})
    db.close()
    [listed] = cli.json("account", "list", "--usage")
    assert listed["today"] == {"history_bytes": 5, "answer_bytes": 6, "file_bytes": 7}
    assert listed["kept"] == {"history_bytes": 105, "answer_bytes": 6, "file_bytes": 7}
    usual = listed["quota"]
    changed = cli.json("account", "quota", str(account["id"]), "--stored-gib", "32")
    assert changed == usual | {"account_id": account["id"], "stored_bytes_per_day": 32 * GIB}
    assert cli.json("account", "list", "--usage")[0]["quota"] == usual | {
        "stored_bytes_per_day": 32 * GIB
    }
    entry = next(entry for entry in cli.audit_trail() if entry["action"] == "account.quota_changed")
    assert (entry["account_id"], entry["detail"]["stored_bytes_per_day"]) == (
        account["id"],
        32 * GIB,
    )
    assert "There is no such account" in cli.refused("account", "quota", "77", "--stored-gib", "1")


@pytest.mark.parametrize("name", ["[red]Health[/red] :smile:", "n" * 255])
def test_people_see_names_as_they_were_typed_and_whole(cli: CommandLine, name: str) -> None:
    assert name in cli.text("account", "create", "--name", name)
    assert name in cli.text("account", "list")


def test_an_account_is_suspended_resumed_and_closed_by_its_name(
    cli: CommandLine, account: str
) -> None:
    assert "must be the name" in cli.refused(
        "account", "close", account, "--confirm", "example health"
    )
    close = ("close", account, "--confirm", "Example Health")
    commands = (("suspend", account), ("suspend", account), ("resume", account), close, close)
    states = [cli.json("account", *command)["state"] for command in commands]
    assert states == ["suspended", "suspended", "active", "closed", "closed"]
    actions = [entry["action"] for entry in cli.audit_trail()]
    assert actions == ["account.created", "account.suspended", "account.resumed", "account.closed"]
    assert "closed for good" in cli.refused("account", "resume", account)


def test_a_created_clients_secret_is_shown_once_and_works(cli: CommandLine, client: Any) -> None:
    assert set(client) == {
        *("id", "account_id", "client_id", "client_secret", "name", "scopes"),
        *("requests_per_minute", "created_at", "revoked_at"),
    }
    assert client["scopes"] == ["customer"]
    assert lets_in(cli, client["client_id"], client["client_secret"])
    [listed] = cli.json("client", "list")
    assert listed == {name: value for name, value in client.items() if name != "client_secret"}
    assert client["client_secret"] not in cli.text("client", "list") + str(cli.audit_trail())


def test_scopes_and_a_limit_are_kept(cli: CommandLine, client: Any) -> None:
    new = ("client", "create", "--account", str(client["account_id"]), "--name", "Reader")
    scopes = ("--scope", "plans:read", "--scope", "eligibility:write")
    narrow = cli.json(*new, *scopes, "--requests-per-minute", "60")
    assert narrow["scopes"] == ["eligibility:write", "plans:read"]
    assert narrow["requests_per_minute"] == 60
    assert "plans:read" in cli.refused(*new, "--scope", "everything", status=2)


def test_a_revoked_client_is_let_in_no_more_and_gets_no_new_secret(
    cli: CommandLine, client: Any
) -> None:
    revoked = cli.json("client", "revoke", client["client_id"])
    assert revoked["revoked_at"] is not None
    assert cli.json("client", "revoke", client["client_id"]) == revoked
    assert not lets_in(cli, client["client_id"], client["client_secret"])
    assert "frontdesk client list" in cli.refused("client", "rotate", client["client_id"])
    actions = [entry["action"] for entry in cli.audit_trail()]
    assert actions == ["account.created", "client.created", "client.revoked"]


def test_an_unknown_account_or_client_is_told_with_the_list_to_look_in(cli: CommandLine) -> None:
    assert "frontdesk account list" in cli.refused(
        "client", "create", "--account", "7", "--name", "x"
    )
    assert "frontdesk client list" in cli.refused("client", "revoke", "nobody")
    assert "CLIENT_ID must not contain control characters" in cli.refused(
        "client", "revoke", "\udcff"
    )


def test_a_client_of_operators_has_no_account_and_each_command(
    cli: CommandLine, client: Any
) -> None:
    made = cli.json("client", "create", "--name", "Monitoring", "--scope", "operator")
    assert (made["account_id"], made["scopes"]) == (None, ["operator"])
    assert [each["name"] for each in cli.json("client", "list")] == ["Nightly upload", "Monitoring"]
    [listed] = cli.json("client", "list", "--account", str(client["account_id"]))
    assert listed["client_id"] == client["client_id"]
    client_id = made["client_id"]
    assert "can't be shown again" in cli.text("client", "rotate", client_id)
    assert lets_in(cli, client_id, made["client_secret"])
    rotated = cli.json("client", "rotate", client_id, "--now", "--expires-in-days", "90")
    assert not lets_in(cli, client_id, made["client_secret"])
    assert lets_in(cli, client_id, rotated["client_secret"])
    new, _, old = cli.json("client", "secrets", client_id)
    assert new["expires_at"] > old["revoked_at"]
    assert old["last_used_on"] == new["last_used_on"] is not None
    cli.json("client", "revoke-secret", client_id, str(new["id"]))
    assert "no such secret" in cli.refused("client", "revoke-secret", client_id, str(new["id"]))
    assert "0 tokens" in cli.text("client", "revoke-tokens", client_id)
    of_it = [entry for entry in cli.audit_trail() if entry["subject_id"] == made["id"]]
    assert {entry["account_id"] for entry in of_it} == {None}
    assert of_it[2]["detail"] == {"client_id": client_id, "leaked": True}
    steps = "created rotated rotated secret_revoked tokens_revoked"
    assert " ".join(entry["action"].partition(".")[2] for entry in of_it) == steps


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--account 1 --scope operator", "--account must be left out where the scope is operator"),
        ("--scope operator --scope customer", "--scope must be operator alone"),
        ("", "--account must be given, unless the scope is operator"),
    ],
)
def test_customers_and_operators_rights_are_never_one_clients(
    cli: CommandLine, client: Any, arguments: str, sentence: str
) -> None:
    assert sentence in cli.refused("client", "create", "--name", "Both", *arguments.split())
    assert len(cli.json("client", "list")) == 1
