"""The audit trail as an operator reads it."""

import json
import os
import re
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


def test_the_newest_deed_comes_first_with_who_did_it_and_to_what(
    cli: CommandLine, account: str, group: str
) -> None:
    entries = cli.json("audit", "list")
    assert [entry["action"] for entry in entries] == ["provider_group.created", "account.created"]
    assert [entry["subject_id"] for entry in entries] == [int(group), int(account)]
    assert set(entries[0]) == {
        *("id", "at", "account_id", "actor", "action", "subject_id", "request_id", "detail")
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


def test_the_names_of_changed_fields_are_told_and_no_values(cli: CommandLine, plan: str) -> None:
    cli.json("account", "create", "--name", "CANARY")
    cli.json("plan", "set", plan, "--name", "CANARY")
    text = cli.text("audit", "list")
    assert "fields: name" in text
    assert "CANARY" not in text + str(cli.json("audit", "list"))


def test_an_empty_trail_is_told(cli: CommandLine) -> None:
    assert "The audit trail is empty." in cli.text("audit", "list")
    assert cli.json("audit", "list") == []


def test_entries_are_found_by_actor_action_subject_and_time(cli: CommandLine, account: str) -> None:
    cli.json("account", "suspend", account)
    cli.json("account", "resume", account)
    client = cli.json("client", "create", "--account", account, "--name", "Feed")

    def found(*options: str) -> list[str]:
        return [entry["action"] for entry in cli.json("audit", "list", *options)]

    of_accounts = ["account.resumed", "account.suspended", "account.created"]
    assert found("--action", "account") == of_accounts
    assert found("--action", "account.suspended") == ["account.suspended"]
    assert found("--action", "acc") == []
    assert found("--subject", str(client["id"]), "--action", "client") == ["client.created"]
    [actor] = {entry["actor"] for entry in cli.json("audit", "list")}
    assert len(found("--actor", actor)) == 4
    assert found("--actor", "cli:nobody") == []
    assert found("--since", "2026-01-01", "--action", "account") == of_accounts
    assert found("--until", "2026-01-01T00:00:00Z") == []
    assert "There is no such entry." in cli.text("audit", "list", "--actor", "cli:nobody")
    assert "must be a date or a time" in cli.refused("audit", "list", "--since", "soon", status=2)


def test_a_file_that_a_command_makes_is_its_users_alone(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    before = os.umask(0)
    try:
        cli.json("audit", "export", str(path))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_export_is_continued_verified_and_recorded(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "audit.jsonl")
    cli.json("account", "create", "--name", "Example Health")
    assert cli.json("audit", "export", path)["entries"] == 0  # the last minute comes next time
    assert "nothing to verify" in cli.refused("audit", "verify", path)
    monkeypatch.setattr("frontdesk.cli.audit.SETTLED_SECONDS", -1)
    monkeypatch.setattr("frontdesk.cli.audit.PAGE_ENTRIES", 1)
    first = cli.json("audit", "export", path)
    assert first["entries"] == 2
    second = cli.json("audit", "export", path)
    assert second["entries"] == 1
    actions = [json.loads(line)["action"] for line in Path(path).read_text().splitlines()]
    assert actions == ["account.created", "audit.exported", "audit.exported"]
    assert cli.json("audit", "verify", path, "--chain", second["chain"])["last_id"] == second["last_id"]
    assert "Every line is as it was written." in cli.text("audit", "verify", path)
    assert "lines are missing" in cli.refused("audit", "verify", path, "--chain", first["chain"])


def test_a_file_that_ends_too_early_is_told_by_its_count_or_its_chain(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.cli.audit.SETTLED_SECONDS", -1)
    path = tmp_path / "audit.jsonl"
    for name in ("First", "Second", "Third"):
        cli.json("account", "create", "--name", name)
    noted = cli.json("audit", "export", str(path))
    assert (noted["entries"], noted["in_file"]) == (3, 3)
    both = ("--entries", "3", "--chain", noted["chain"])
    assert cli.json("audit", "verify", str(path), *both)["entries"] == 3
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert "has 2 entries and not 3" in cli.refused("audit", "verify", str(path), *both[:2])
    assert "lines are missing" in cli.refused("audit", "verify", str(path), *both[2:])
    assert "Without --chain" in cli.text("audit", "verify", str(path))


def test_a_changed_file_is_told_and_never_continued(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.cli.audit.SETTLED_SECONDS", -1)
    path = tmp_path / "audit.jsonl"
    for name in ("First", "Second"):
        cli.json("account", "create", "--name", name)
    cli.json("audit", "export", str(path))
    path.write_bytes(path.read_bytes() + b'{"id": 3, "act')  # a killed export
    assert "Line 3" in cli.refused("audit", "verify", str(path))
    assert cli.json("audit", "export", str(path))["entries"] == 1
    cli.json("audit", "verify", str(path))
    path.write_bytes(path.read_bytes().replace(b"account.created", b"account.removed", 1))
    before = path.read_bytes()
    for command in ("verify", "export"):
        assert "Line 1 is not what was exported there" in cli.refused("audit", command, str(path))
    assert path.read_bytes() == before
