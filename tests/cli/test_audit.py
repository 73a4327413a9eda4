"""The audit trail as an operator reads it."""

import json
import os
import re
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


def test_the_newest_deed_comes_first_with_who_did_it_to_what_and_no_value(
    cli: CommandLine, group: str, plan: str
) -> None:
    cli.json("plan", "set", plan, "--name", "CANARY")
    entries = cli.json("audit", "list")
    actions = ["plan.changed", "plan.created", "account.created", "provider_group.created"]
    assert [entry["action"] for entry in entries] == actions
    assert [entry["subject_id"] for entry in entries] == [int(plan), int(plan), 1, int(group)]
    assert " ".join(entries[0]) == "id at account_id actor action subject_id request_id detail"
    assert entries[0]["actor"].startswith("cli:")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entries[0]["at"])
    text = cli.text("audit", "list")
    assert "fields: name" in text
    assert "CANARY" not in text + str(entries)


def test_entries_are_found_by_account_actor_action_subject_and_time(cli: CommandLine) -> None:
    assert "The audit trail is empty." in cli.text("audit", "list")
    account, other = (
        str(cli.json("account", "create", "--name", name)["id"]) for name in ("One", "Other")
    )
    cli.json("account", "suspend", account)
    cli.json("account", "resume", account)
    client = cli.json("client", "create", "--account", account, "--name", "Feed")

    def found(*options: str) -> list[str]:
        return [entry["action"] for entry in cli.json("audit", "list", *options)]

    of_account = ["account.resumed", "account.suspended", "account.created"]
    assert found("--account", account) == ["client.created", *of_account]
    assert found("--account", account, "--limit", "1") == ["client.created"]
    assert found("--account", account, "--action", "account") == of_account
    assert found("--action", "account.suspended") == ["account.suspended"]
    assert found("--action", "acc") == []
    assert found("--subject", str(client["id"]), "--action", "client") == ["client.created"]
    [actor] = {entry["actor"] for entry in cli.json("audit", "list")}
    assert len(found("--actor", actor)) == 5
    assert found("--since", "2026-01-01", "--account", other) == ["account.created"]
    assert found("--until", "2026-01-01T00:00:00Z") == found("--actor", "cli:nobody") == []
    assert "There is no such entry." in cli.text("audit", "list", "--actor", "cli:nobody")
    assert "must be a date or a time" in cli.refused("audit", "list", "--since", "soon", status=2)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of an export that has every entry, whatever its age."""
    monkeypatch.setattr("frontdesk.cli.audit.SETTLED_SECONDS", -1)
    return tmp_path / "audit.jsonl"


def test_an_export_is_continued_and_verified_in_a_private_file(
    cli: CommandLine, account: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(path)
    before = os.umask(0)
    with monkeypatch.context() as usual:
        usual.setattr("frontdesk.cli.audit.SETTLED_SECONDS", 60)
        assert cli.json("audit", "export", file)["entries"] == 0  # the last minute comes next time
    os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "nothing to verify" in cli.refused("audit", "verify", file)
    monkeypatch.setattr("frontdesk.cli.audit.PAGE_ENTRIES", 1)
    first, second = (cli.json("audit", "export", file) for _ in range(2))
    assert (first["entries"], second["entries"], second["in_file"]) == (2, 1, 3)
    actions = [json.loads(line)["action"] for line in path.read_text().splitlines()]
    assert actions == ["account.created", "audit.exported", "audit.exported"]
    verify = ("audit", "verify", file)
    chain = ("--chain", second["chain"])
    assert cli.json(*verify, *chain, "--entries", "3")["last_id"] == second["last_id"]
    assert "Every line is as it was written." in cli.text(*verify)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert "has 2 entries and not 3" in cli.refused(*verify, "--entries", "3")
    assert "lines are missing" in cli.refused(*verify, *chain)
    assert "Without --chain" in cli.text(*verify)


def test_a_changed_file_is_told_and_never_continued(
    cli: CommandLine, account: str, path: Path
) -> None:
    export, verify = (("audit", word, str(path)) for word in ("export", "verify"))
    cli.json(*export)
    path.write_bytes(path.read_bytes() + b'{"id": 2, "act')  # a killed export
    assert "Line 2" in cli.refused(*verify)
    assert cli.json(*export)["entries"] == 1
    cli.json(*verify)
    path.write_bytes(path.read_bytes().replace(b"account.created", b"account.removed", 1))
    before = path.read_bytes()
    for command in (verify, export):
        assert "Line 1 is not what was exported there" in cli.refused(*command)
    assert path.read_bytes() == before
