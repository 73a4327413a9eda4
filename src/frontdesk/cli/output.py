"""The output of every command: tables and colour for people, JSON for programs, errors as sentences, exit statuses.

Status 0: done; 1: not done, and stderr says why, with the remedy; 2: the command was misused.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from itertools import cycle
from operator import getitem
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn, cast

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from frontdesk.clock import wire_time
from frontdesk.config import Config, ConfigError, read_config
from frontdesk.errors import Conflict, FrontdeskError, Invalid, Unavailable

FAILED, MISUSED = 1, 2

# Output that goes to a file or another program is never wrapped or cut to a terminal's width.
UNWRAPPED_COLUMNS = 10_000

Item = Mapping[str, Any]
Part = str | Text | Table  # of what people read: a sentence, a heading, a table

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


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: `value` as JSON for programs, or `parts` under each other for people. Then its status."""

    value: object
    parts: Iterable[Part]
    status: int = 0

    def print(self, *, as_json: bool) -> None:
        """Print it and end the command when its status is not 0."""
        if as_json:
            print_json(self.value)
        else:
            for part in self.parts:
                say(part)
        if self.status:
            raise typer.Exit(self.status)


def describe(item: Item, *notes: str) -> Output:
    """One object: its fields under each other. The notes are for people only."""
    return Output(item, [field_table(item), *notes])


def listing(items: Sequence[Item], columns: str, *, nothing: str) -> Output:
    """Objects as a table of the columns (`group.name` looks inside), or the sentence `nothing`."""

    def parts() -> Iterator[Part]:
        yield table_of(items, columns) if items else nothing

    return Output(items, parts())


def table_of(items: Sequence[Item], columns: str) -> Table:
    names = columns.split()
    return table(names, [[reduce(getitem, name.split("."), item) for name in names] for item in items])


def field_table(item: Item) -> Table:
    """The names and values of an object."""
    fields = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    fields.add_column(style="cyan", no_wrap=True)
    fields.add_column(overflow="fold")
    for name, value in item.items():
        fields.add_row(name, _cell(value or None if isinstance(value, Mapping) else value))
    return fields


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    rows_under_heads = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=(0, 1, 0, 0))
    for column in columns:
        copied = column in _COPIED or column.endswith("_at")
        head = column.replace(".", " ").replace("_", " ")
        rows_under_heads.add_column(head, overflow="fold", no_wrap=copied)
    for row in rows:
        rows_under_heads.add_row(*map(_cell, row))
    return rows_under_heads


def picked(thing: object, names: str) -> dict[str, Any]:
    """Some fields of an object, by their names."""
    return {name: getattr(thing, name) for name in names.split()}


def heading(text: str) -> Text:
    return Text(text, style="bold")


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=wire_time)  # all but times are plain


def print_json(value: object) -> None:
    typer.echo(json_text(value))


def say(part: Part) -> None:
    """Print a sentence, a heading or a table for people. Only a table is fitted to the terminal's width."""
    console().print(Text(part) if isinstance(part, str) else part, soft_wrap=not isinstance(part, Table))


@contextmanager
def opened_file(path: str | Path, mode: Literal["rb", "wb", "ab"], failure: str) -> Iterator[BinaryIO]:
    """The file; stdin or stdout for `-`. Ends the command with `failure`, its {} filled with the reason, on an OSError.

    A file that is made is its user's alone, whatever the umask: reports and mails name members.
    """
    standard = sys.stdin if mode == "rb" else sys.stdout
    private = partial(os.open, mode=0o600)
    try:
        with nullcontext(standard.buffer) if path == "-" else open(path, mode, opener=private) as stream:
            yield cast(BinaryIO, stream)
            stream.flush()
    except BrokenPipeError:  # the reader has enough
        raise
    except OSError as error:
        fail(failure.format(error.strerror))


def console(*, stderr: bool = False) -> Console:
    """The console that people read. It takes no markup, because typed names may look like it."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else UNWRAPPED_COLUMNS
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def progress(*more: ProgressColumn) -> Progress:
    """A bar on stderr that shows how far a command is; on a terminal only. `more` columns stand before the time left."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), *more, TimeRemainingColumn())
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


def minutes_text(seconds: float) -> str:
    minutes, rest = divmod(round(abs(seconds)), 60)
    return f"{'-' if seconds < 0 else ''}{minutes}:{rest:02d} min"


def share_text(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"


def bars(heads: Sequence[str], seconds: Sequence[float], *, width: int, marks: str = "█") -> list[str]:
    """A line with a bar for each head, the longest one `width` wide. The `marks` of the bars alternate."""
    longest = max([*seconds, 1.0])
    lines = zip(heads, cycle(marks), seconds, strict=False)
    return [
        f"{head} {mark * round(each / longest * width):<{width}} {minutes_text(each)}"
        for head, mark, each in lines
    ]


def _cell(value: Any) -> Text:
    """A value as people read it. Text is never read as markup: names may look like it."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, datetime):
        return Text(wire_time(value))
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, Mapping):
        return Text("\n").join(Text.assemble(f"{name}: ", _cell(inner)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return Text(", ").join(map(_cell, value))
    return Text(str(value))


def sentence(error: FrontdeskError) -> str:
    """A refusal of the product, or a database that can't be used, as people read it."""
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
