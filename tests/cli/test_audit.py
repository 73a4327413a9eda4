"""The audit trail as an operator reads it."""

import re

from tests.cli.conftest import CommandLine


def test_the_newest_deed_comes_first_with_who_did_it_and_to_what(cli: CommandLine) -> None:
    account = cli.json("account", "create", "--name", "Example Health")
    group = cli.json("provider-group", "create", "--name", "Doctors")
    entries = cli.json("audit", "list")
    assert [entry["action"] for entry in entries] == ["provider_group.created", "account.created"]
    assert [entry["subject_id"] for entry in entries] == [group["id"], account["id"]]
    assert set(entries[0]) == {
        *("id", "at", "account_id", "actor", "action", "subject_id", "request_id", "detail"),
    }
    assert entries[0]["actor"].startswith("cli:")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entries[0]["at"])
    assert "account.created" in cli.text("audit", "list")


def test_entries_of_one_account_and_no_more_than_asked_for(cli: CommandLine) -> None:
    first, second = (cli.json("account", "create", "--name", name)["id"] for name in ("First", "Second"))
    for name in ("one", "two"):
        cli.json("client", "create", "--account", str(first), "--name", name)
    entries = cli.json("audit", "list", "--account", str(first))
    assert [entry["action"] for entry in entries] == ["client.created", "client.created", "account.created"]
    assert len(cli.json("audit", "list", "--account", str(first), "--limit", "1")) == 1
    assert [entry["subject_id"] for entry in cli.json("audit", "list", "--account", str(second))] == [second]


def test_the_names_of_changed_fields_are_told_and_no_values(cli: CommandLine) -> None:
    account = cli.json("account", "create", "--name", "CANARY")
    group = cli.json("provider-group", "create", "--name", "Doctors")
    owners = ("--account", str(account["id"]), "--provider-group", str(group["id"]))
    plan = cli.json("plan", "create", *owners, "--external-id", "gold", "--name", "Gold")
    cli.json("plan", "set", str(plan["id"]), "--name", "CANARY")
    text = cli.text("audit", "list")
    assert "fields: name" in text
    assert "CANARY" not in text + str(cli.json("audit", "list"))


def test_an_account_that_is_not_there_is_told(cli: CommandLine) -> None:
    assert "There is no such account." in cli.refused("audit", "list", "--account", "77")


def test_an_empty_trail_is_told(cli: CommandLine) -> None:
    assert "The audit trail is empty." in cli.text("audit", "list")
    assert cli.json("audit", "list") == []
