"""What docs/invitations.md says is so: its commands exist, its example is answered as it says, its lists are whole."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from frontdesk.cli.app import load
from frontdesk.db import Database
from frontdesk.invitations.message import FILTERS, NAMES
from frontdesk.invitations.model import ReportEffect, ReportEvent, SuppressionReason
from frontdesk.mailbox.catcher import ACTING, SLOW_SECONDS
from tests.conftest import Api
from tests.factories import make_operator

PAGE = (Path(__file__).parents[2] / "docs/invitations.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("frontdesk ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_can_be_given(line: str) -> None:
    words = shlex.split(line.partition(" < ")[0])[1:]
    command: Any = load(words.pop(0))
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(
        "frontdesk", words
    )  # raises for an option or a number of arguments that it does not know


def test_the_example_of_events_is_answered_as_the_page_says(api: Api, db: Database) -> None:
    operator = make_operator(db)
    [(path, body)] = re.findall(r"```http\nPOST (\S+)\n(.*?)```", PAGE, re.DOTALL)
    [answer] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert api.as_(operator.token).post(path, json.loads(body)).json() == json.loads(answer)


def test_the_page_names_every_word_that_one_may_meet() -> None:
    words = [
        *(f"| {effect} |" for effect in ReportEffect),
        *(f"| {event} |" for event in ReportEvent),
        *(f"`{reason}`" for reason in SuppressionReason),
        *(f"`{name}@…`" for name in ACTING),
        *(f"`{name}`" for name in FILTERS),
        *(f"`{{{{ {name} }}}}`" for name in NAMES),
        f"after {SLOW_SECONDS} s",
    ]
    assert [word for word in words if word not in PAGE] == []
