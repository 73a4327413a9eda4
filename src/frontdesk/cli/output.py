"""The output of every command: tables and colour for people, JSON for programs, errors as sentences, exit statuses.

Status 0: done; 1: not done, and stderr says why, with the remedy; 2: the command was misused.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from frontdesk.config import Config, ConfigError, read_config
from frontdesk.errors import Conflict, FrontdeskError, Invalid, Unavailable

FAILED, MISUSED = 1, 2

# Output that goes to a file or another program is never wrapped or cut to a terminal's width.
UNWRAPPED_COLUMNS = 10_000

Item = Mapping[str, Any]

# Columns that keep to one line on a narrow terminal, so that they can be read and copied: text gives way first.
_COPIED = {"id", "client_id", "state", "delivery"}

# The next step after an error, by its code.
_REMEDIES = {
    "no_such_account": "`frontdesk account list` shows those there are.",
    "no_such_provider_group": "`frontdesk provider-group list` shows those there are.",
    "no_such_api_client": "`frontdesk client list` shows those there are, and which are revoked.",
    "no_such_invitation": "`frontdesk invitations list` shows the newest.",
    "no_such_message": "`frontdesk mailbox list` shows the newest.",
    "no_such_plan": "`frontdesk plan list` shows those there are.",
}


def settings(variables: Mapping[str, str] | None = None) -> Config:
    """The settings from the environment. Ends the command when one of them can't be used."""
    try:
        return read_config(os.environ if variables is None else variables)
    except ConfigError as error:
        fail(f"The settings can't be used; correct the environment.\n{error}")


def fail(message: str, *, status: int = FAILED) -> NoReturn:
    """Write the message to stderr and end the command."""
    console(stderr=True).print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)
    raise typer.Exit(status)


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """A refusal of the product, or a database that can't be used, ends the command with a sentence."""
    try:
        yield
    except FrontdeskError as error:
        fail(_sentence(error))


def show_one(item: Item, *, as_json: bool, note: str = "") -> None:
    """One object: its fields under each other, or a JSON object. `note` is for people only."""
    if as_json:
        print_json(item)
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in item.items():
        table.add_row(name, _cell(value or None if isinstance(value, Mapping) else value))
    console().print(table)
    if note:
        say(note)


def show_list(items: Sequence[Item], *, columns: Sequence[str], as_json: bool, nothing: str) -> None:
    """A table of the columns (`group.name` looks inside), or a JSON array of the whole objects; `nothing` if none."""
    if as_json:
        print_json(items)
    elif not items:
        say(nothing)
    else:
        print_table(columns, [[_inside(item, column) for column in columns] for item in items])


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    console().print(build_table(columns, rows))


def build_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=(0, 1, 0, 0))
    for column in columns:
        copied = column in _COPIED or column.endswith("_at")
        table.add_column(column.replace(".", " ").replace("_", " "), overflow="fold", no_wrap=copied)
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def print_heading(text: str) -> None:
    console().print(Text(text, style="bold"), soft_wrap=True)


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def say(sentence: str) -> None:
    """A sentence for people, on stdout."""
    console().print(Text(sentence), soft_wrap=True)


def console(*, stderr: bool = False) -> Console:
    """The console that people read. It takes no markup, because typed names may look like it."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else UNWRAPPED_COLUMNS
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def _cell(value: Any) -> Text:
    """A value as people read it. Text is never read as markup: names may look like it."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, Mapping):
        return Text("\n").join(Text.assemble(f"{name}: ", _cell(inner)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return Text(", ").join(map(_cell, value))
    return Text(str(value))


def _inside(item: Item, path: str) -> Any:
    value: Any = item
    for name in path.split("."):
        value = value[name]
    return value


def _sentence(error: FrontdeskError) -> str:
    if isinstance(error, Invalid):
        return "\n".join(f"{_option(fault.field)} {fault.message}." for fault in error.faults)
    if isinstance(error, Unavailable):
        remedy = "`frontdesk check` says what is wrong with the installation."
        return f"{error.detail} {'' if error.outcome_unknown else 'Nothing was changed. '}{remedy}"
    if isinstance(error, Conflict):
        return f"{error.detail} Run the command again."
    return f"{error.detail} {_REMEDIES.get(error.code, '')}".strip()


def _option(field: str) -> str:
    """The option that gives a field its value; a field in capitals is an argument."""
    return field if field.isupper() else "--" + field.replace("_", "-")
