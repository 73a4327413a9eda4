"""What holds for every command, taken from the command tree itself."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from frontdesk.cli.app import COMMANDS as TOP_COMMANDS
from frontdesk.cli.app import load
from tests.cli.conftest import CommandLine


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with its words."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield path, command


COMMANDS = {path: command for name in TOP_COMMANDS for path, command in leaves(load(name), (name,))}
each_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


GROUPS = {
    "account": "create list limit time-zone collisions suspend resume close quota",
    "provider-group": "create list set",
    "client": "create list rotate revoke secrets revoke-secret revoke-tokens",
    "user": "invite list show roles end reset sessions",
    "plan": "create list show set",
    "deliverability": "check set show",
    "duty": "on off list",
    "queue": "join leave list watch accuracy backtest simulate rebuild prune",
    "member": "show eligible erase export hold release holds duplicates merge distinct rename",
    "file": "load resume list show report approve accept cancel undo mapping mappings settings suggest",
    "invitations": "list show cancel resend settle forecast hold release",
    "suppression": "add remove list",
    "bounces": "address read",
    "template": "show set preview",
    "mailbox": "list show open clear",
    "audit": "list export verify",
    "requests": "top",
}


def test_the_command_tree_is_the_documented_one() -> None:
    assert {" ".join(path) for path in COMMANDS} == {
        *("serve", "worker", "migrate", "demo", "check", "sample", "retention"),
        *(f"{group} {name}" for group, names in GROUPS.items() for name in names.split()),
    }


@each_command
def test_help_has_an_example_and_explains_every_word_and_json_is_to_be_had(
    bare_cli: CommandLine, path: tuple[str, ...]
) -> None:
    words = " ".join(bare_cli.text(*path, "--help").split())
    assert f"Example: frontdesk {' '.join(path)}" in words
    parameters = COMMANDS[path].params
    assert [parameter.name for parameter in parameters if not parameter.help] == []
    stays = path in (("serve",), ("worker",))  # and prints nothing
    assert any("--json" in parameter.opts for parameter in parameters) is not stays
    assert "--nonsense" in bare_cli.refused(*path, "--nonsense", status=2)


ONLY_AN_ACCOUNT = [
    path
    for path, command in COMMANDS.items()
    if any("--account" in parameter.opts for parameter in command.params)
    and not any(parameter.required and parameter.name != "account" for parameter in command.params)
    and path[-1] != "set"  # wants something to set as well
]


CHANGES = [("deliverability", "set", "--enabled"), ("template", "set", "--default")]


@pytest.mark.parametrize("path", [*ONLY_AN_ACCOUNT, *CHANGES], ids=" ".join)
def test_an_account_that_is_not_there_is_told(cli: CommandLine, path: tuple[str, ...]) -> None:
    assert "There is no such account." in cli.refused(*path, "--account", "77")
    assert cli.audit_trail() == []


@pytest.mark.parametrize(
    "words", ["plan set 1", "deliverability set --account 1", "template set --account 1"]
)
def test_a_set_without_anything_to_set_is_misuse(bare_cli: CommandLine, words: str) -> None:
    assert f"{words.split(maxsplit=1)[0]} set --help)" in bare_cli.refused(*words.split(), status=2)


def test_the_version_is_told_and_an_unknown_command_is_misuse(bare_cli: CommandLine) -> None:
    assert bare_cli.text("--version").startswith("frontdesk ")
    assert "nonsense" in bare_cli.refused("nonsense", status=2)
    assert "Did you mean 'account'?" in bare_cli.refused("accout", status=2)


@pytest.mark.parametrize("name", TOP_COMMANDS)
def test_the_list_of_commands_says_what_each_command_says_of_itself(name: str) -> None:
    first_paragraph = load(name).help.partition("\n\n")[0].replace("\n", " ").strip()
    assert TOP_COMMANDS[name] == first_paragraph


def test_the_list_of_commands_loads_none_of_them() -> None:
    code = "import sys; from frontdesk.cli.app import main; main()"
    asked = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = re.findall(r"\| +(frontdesk\.\S+)$", asked.stderr, re.MULTILINE)
    assert set(loaded) <= {"frontdesk.cli", "frontdesk.cli.app"}
    assert "provider-group" in asked.stdout
