from typer.testing import CliRunner

from frontdesk.cli.app import app
from tests.cli.conftest import CommandLine


def test_addresses_are_put_on_the_list_and_taken_off_once(cli: CommandLine) -> None:
    add, remove = ("suppression", "add"), ("suppression", "remove")
    assert cli.json(*add, "Robin@Example.com") == {"changed": 1, "unchanged": 0}
    assert cli.json(*add, "robin@example.com") == {"changed": 0, "unchanged": 1}
    assert "Addresses added: 0; 1 needed no change" in cli.text(*add, "robin@example.com")
    [item] = cli.json("suppression", "list")
    assert (item["address_masked"], item["reason"]) == ("r***@e***.com", "by_hand")
    [item] = cli.json("suppression", "list", "--full")
    assert item["address"] == "robin@example.com"
    assert "Addresses removed: 1; 0" in cli.text(*remove, "ROBIN@example.com")
    assert cli.json(*remove, "robin@example.com") == {"changed": 0, "unchanged": 1}
    assert "No address is suppressed" in cli.text("suppression", "list")
    assert [(entry["action"], entry["detail"]) for entry in cli.audit_trail()] == [
        ("suppression.added", {"count": 1}),
        ("suppression.removed", {"count": 1}),
    ]


def test_addresses_come_from_a_pipe_too_and_a_wrong_line_is_named(cli: CommandLine) -> None:
    runner, env = CliRunner(), {"FRONTDESK_DATABASE_URL": cli.database_url}
    lines = "robin@example.com\n\n  sam@example.com  \nROBIN@example.com\n"
    result = runner.invoke(app, ["suppression", "add", "-"], input=lines, env=env, catch_exceptions=False)
    assert "Addresses added: 2; 1 needed no change" in result.stdout
    result = runner.invoke(app, ["suppression", "add", "-"], input=lines + "nobody\n", env=env)
    assert (result.exit_code, "in line 5" in result.stderr) == (1, True)
    assert "nobody" not in result.stderr
    assert len(cli.json("suppression", "list")) == 2
    assert len(cli.json("suppression", "list", "--limit", "1")) == 1


def test_what_is_no_address_is_refused_without_being_repeated(cli: CommandLine) -> None:
    said = cli.refused("suppression", "add", "robin-at-example")
    assert "ADDRESS must be an e-mail address." in said
    assert "robin" not in said
